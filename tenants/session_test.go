package tenants_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// site is a web site with nothing but sessions.
type site struct {
	t     *testing.T
	db    *dbtest.Database
	super *pgxpool.Pool
	store *tenants.SessionStore
	scs   *scs.SessionManager
	user  tenants.UserID
}

func openSite(t *testing.T) *site {
	db := dbtest.Open(t)
	_, user := db.Tenant(t)
	sessions := scs.New()
	store := tenants.NewSessionStore(db.DB)
	sessions.Store = store
	sessions.Lifetime = tenants.SessionLifetime
	return &site{t, db, db.Super(t), store, sessions, user}
}

// get answers a request with the given session cookie, running do in it, and returns
// the cookie that the browser has afterwards.
func (s *site) get(token string, do func(ctx context.Context)) string {
	s.t.Helper()
	handler := s.scs.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { do(r.Context()) }))
	request := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/", nil)
	if token != "" {
		request.AddCookie(&http.Cookie{Name: s.scs.Cookie.Name, Value: token})
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	require.Equal(s.t, http.StatusOK, answer.Code)
	for _, cookie := range answer.Result().Cookies() {
		token = cookie.Value
	}
	return token
}

func (s *site) signIn(token string) string {
	return s.get(token, func(ctx context.Context) {
		require.NoError(s.t, s.scs.RenewToken(ctx))
		s.scs.Put(ctx, tenants.SessionUser, s.user.String())
	})
}

func (s *site) userOf(token string) string {
	var user string
	s.get(token, func(ctx context.Context) { user = s.scs.GetString(ctx, tenants.SessionUser) })
	return user
}

func (s *site) live() []tenants.Session {
	var live []tenants.Session
	inSystem(s.t, s.db, func(ctx context.Context, stx tenants.SystemTx) {
		var err error
		live, err = tenants.SessionsOf(ctx, stx, s.user)
		require.NoError(s.t, err)
	})
	return live
}

func (s *site) count(where string) int {
	var n int
	require.NoError(s.t, s.super.QueryRow(s.t.Context(), `SELECT count(*) FROM sessions WHERE `+where).Scan(&n))
	return n
}

func (s *site) age(by time.Duration) {
	_, err := s.super.Exec(s.t.Context(), `UPDATE sessions SET seen_at = seen_at - $1::interval`, by)
	require.NoError(s.t, err)
}

func TestSessionRemembersThePerson(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	token := s.signIn("")
	require.Equal(t, s.user.String(), s.userOf(token))
	live := s.live()
	require.Len(t, live, 1)
	require.WithinDuration(t, time.Now().Add(tenants.SessionLifetime), live[0].ExpiresAt, time.Minute)
	require.Empty(t, s.userOf(token+"x"))
	require.Empty(t, s.userOf(""))
}

func TestSessionTokenIsNowhereInTheDatabase(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	token := s.signIn("")
	var row string
	require.NoError(t, s.super.QueryRow(t.Context(), `SELECT s::text || encode(data, 'escape') || encode(token_hash, 'escape') FROM sessions s`).Scan(&row))
	require.NotContains(t, row, token)
	require.Equal(t, 1, s.count(fmt.Sprintf(`token_hash = sha256('%s')`, token)))
}

// Somebody who planted a cookie before the sign-in must not be signed in by it.
func TestSignInRenewsTheToken(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	planted := s.get("", func(ctx context.Context) { s.scs.Put(ctx, "next", "/runs") })
	token := s.signIn(planted)
	require.NotEqual(t, planted, token)
	require.Empty(t, s.userOf(planted))
	require.Equal(t, s.user.String(), s.userOf(token))
	s.get(token, func(ctx context.Context) { require.Equal(t, "/runs", s.scs.GetString(ctx, "next")) })

	made := s.get("chosen-by-the-attacker", func(ctx context.Context) { s.scs.Put(ctx, "next", "/") })
	require.NotEqual(t, "chosen-by-the-attacker", made, "a token is never taken from outside")
}

func TestRevokeEndsAllSessionsOfOnePerson(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	first, second := s.signIn(""), s.signIn("")
	_, other := s.db.Tenant(t)
	mine := s.user
	s.user = other
	others := s.signIn("")
	s.user = mine
	require.Len(t, s.live(), 2)

	inSystem(t, s.db, func(ctx context.Context, stx tenants.SystemTx) {
		require.NoError(t, tenants.RevokeSessions(ctx, stx, s.user))
	})
	require.Empty(t, s.userOf(first))
	require.Empty(t, s.userOf(second))
	require.Empty(t, s.live())
	require.Equal(t, other.String(), s.userOf(others))
	require.Zero(t, s.count(`ended_at IS NOT NULL AND data <> ''`), "nothing of an ended session is kept")
}

// A request that was under way when its session ended saves it afterwards.
func TestEndedSessionStaysEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site, string){
		"revoked": func(s *site, _ string) {
			inSystem(s.t, s.db, func(ctx context.Context, stx tenants.SystemTx) {
				require.NoError(s.t, tenants.RevokeSessions(ctx, stx, s.user))
			})
		},
		"signed out": func(s *site, token string) {
			s.get(token, func(ctx context.Context) { require.NoError(s.t, s.scs.Destroy(ctx)) })
		},
		"renewed": func(s *site, token string) { s.signIn(token) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t)
			token := s.signIn("")
			after := s.get(token, func(ctx context.Context) {
				end(s, token)
				s.scs.Put(ctx, "flash", "saved")
			})
			require.Empty(t, s.userOf(after))
			require.Empty(t, s.userOf(token))
			require.Zero(t, s.count(`ended_at IS NOT NULL AND data <> ''`), "nothing is written into an ended session")
		})
	}
}

func TestSessionEndsAtItsLifetime(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	s.scs.Lifetime = 0
	token := s.signIn("")
	require.Equal(t, 1, s.count("true"))
	require.Empty(t, s.userOf(token))
	require.Empty(t, s.live())
}

func TestSessionEndsWhenIdle(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	token := s.signIn("")
	s.age(tenants.SessionIdle - time.Minute)
	require.Equal(t, s.user.String(), s.userOf(token), "just in time")
	s.age(tenants.SessionIdle - time.Minute)
	require.Equal(t, s.user.String(), s.userOf(token), "the request before has renewed it")
	s.age(tenants.SessionIdle)
	require.Empty(t, s.userOf(token))
	require.Empty(t, s.live())
}

func TestReadingASessionSetsNoCookieAndWritesAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	token := s.signIn("")
	seen := s.live()[0].SeenAt
	require.Equal(t, token, s.get(token, func(ctx context.Context) { s.scs.GetString(ctx, tenants.SessionUser) }))
	require.Equal(t, seen, s.live()[0].SeenAt)
	s.age(2 * time.Minute)
	s.userOf(token)
	require.False(t, s.live()[0].SeenAt.Before(seen))
}

func TestSweepRemovesWhatIsOver(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	kept := s.signIn("")
	ended := s.signIn("")
	s.get(ended, func(ctx context.Context) { require.NoError(t, s.scs.Destroy(ctx)) })
	s.scs.Lifetime = 0
	s.signIn("")
	sweep := func(at time.Time) {
		inSystem(t, s.db, func(ctx context.Context, stx tenants.SystemTx) {
			if !at.IsZero() {
				stx.Now = at
			}
			require.NoError(t, tenants.SweepSignIns(ctx, stx))
		})
	}
	inSystem(t, s.db, func(ctx context.Context, stx tenants.SystemTx) {
		_, err := tenants.RequestCode(ctx, stx, "ana@example.com", anywhere)
		require.NoError(t, err)
	})
	codes := func() (n int) {
		require.NoError(t, s.super.QueryRow(t.Context(), `SELECT count(*) FROM login_codes`).Scan(&n))
		return n
	}
	sweep(time.Time{})
	require.Equal(t, 2, s.count("true"), "the live one, and the ended one until it would have expired")
	require.Equal(t, s.user.String(), s.userOf(kept))
	require.Equal(t, 1, codes())
	sweep(time.Now().Add(25 * time.Hour))
	require.Zero(t, codes())
	sweep(time.Now().Add(tenants.SessionLifetime + time.Hour))
	require.Zero(t, s.count("true"))
}

func TestSessionStoreRefusesForeignData(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	require.ErrorContains(t, s.store.Commit("token", []byte("no gob"), time.Now()), "read a session's data")
	bad, err := s.scs.Codec.Encode(time.Now(), map[string]any{tenants.SessionUser: "nobody"})
	require.NoError(t, err)
	require.ErrorContains(t, s.store.Commit("token", bad, time.Now()), "not an id")
	require.NoError(t, s.store.Delete("unknown"))
	_, found, err := s.store.Find("unknown")
	require.NoError(t, err)
	require.False(t, found)
}
