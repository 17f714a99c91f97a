package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5"
)

// How long a session lasts: at most SessionLifetime after the sign-in, and no longer
// than SessionIdle without a request.
const (
	SessionLifetime = 30 * 24 * time.Hour
	SessionIdle     = 7 * 24 * time.Hour
)

// SessionUser is the session key under which web keeps the signed-in user's id, as
// text. The store copies it beside the data, so that a person's sessions can be found.
const SessionUser = "user_id"

// seenEvery is how exactly a session's last request is kept: a write for each request
// would buy nothing.
const seenEvery = time.Minute

// SessionStore keeps sessions for scs.SessionManager. The token is stored as its
// SHA-256 only. The manager's own IdleTimeout stays unset: with it scs would save the
// session and set the cookie anew in every answer; the store watches over idleness
// itself.
type SessionStore struct {
	db *DB
}

var _ scs.CtxStore = (*SessionStore)(nil)

// NewSessionStore keeps sessions in the database's table.
func NewSessionStore(db *DB) *SessionStore { return &SessionStore{db: db} }

// FindCtx returns the data of a live session.
func (s *SessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	var data []byte
	err := s.db.InSystemTx(ctx, func(ctx context.Context, stx SystemTx) error {
		var seen time.Time
		err := stx.QueryRow(ctx, `
			SELECT data, seen_at FROM sessions
			WHERE token_hash = $1 AND ended_at IS NULL AND expires_at > $2 AND seen_at > $3`,
			HashToken(token), stx.Now, stx.Now.Add(-SessionIdle)).Scan(&data, &seen)
		if err != nil || stx.Now.Sub(seen) < seenEvery {
			return err
		}
		_, err = stx.Exec(ctx, `UPDATE sessions SET seen_at = $2 WHERE token_hash = $1`, HashToken(token), stx.Now)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find a session: %w", err)
	}
	return data, true, nil
}

// CommitCtx saves a session, unless it was ended in the meantime: a request that began
// before a sign-out must not undo it.
func (s *SessionStore) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	user, err := userOf(data)
	if err != nil {
		return err
	}
	err = s.db.InSystemTx(ctx, func(ctx context.Context, stx SystemTx) error {
		_, err := stx.Exec(ctx, `
			INSERT INTO sessions (token_hash, user_id, data, created_at, seen_at, expires_at)
			VALUES ($1, $2, $3, $4, $4, $5)
			ON CONFLICT (token_hash) DO UPDATE
			SET user_id = excluded.user_id, data = excluded.data, seen_at = excluded.seen_at, expires_at = excluded.expires_at
			WHERE sessions.ended_at IS NULL`, HashToken(token), user, data, stx.Now, expiry)
		return err
	})
	if err != nil {
		return fmt.Errorf("save a session: %w", err)
	}
	return nil
}

// DeleteCtx ends one session.
func (s *SessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.db.InSystemTx(ctx, func(ctx context.Context, stx SystemTx) error {
		return endSessions(ctx, stx, `token_hash = $1`, HashToken(token))
	})
}

// Find, Commit and Delete are for callers without a context; scs itself never uses
// them on a store that has the others.

// Find is FindCtx without a context.
func (s *SessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context.
func (s *SessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx without a context.
func (s *SessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// Session is what is known of one sign-in.
type Session struct {
	CreatedAt time.Time
	SeenAt    time.Time // to the minute
	ExpiresAt time.Time
}

// SessionsOf lists a person's live sessions, the last used first.
func SessionsOf(ctx context.Context, stx SystemTx, user UserID) ([]Session, error) {
	rows, _ := stx.Query(ctx, `
		SELECT created_at, seen_at, expires_at FROM sessions
		WHERE user_id = $1 AND ended_at IS NULL AND expires_at > $2 AND seen_at > $3
		ORDER BY seen_at DESC, created_at DESC`, user, stx.Now, stx.Now.Add(-SessionIdle))
	sessions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Session])
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return sessions, nil
}

// RevokeSessions ends all sessions of a person.
func RevokeSessions(ctx context.Context, stx SystemTx, user UserID) error {
	return endSessions(ctx, stx, `user_id = $1`, user)
}

// SweepSignIns removes what sign-in needs no more: sessions past their time and login
// codes that no limit counts any longer.
func SweepSignIns(ctx context.Context, stx SystemTx) error {
	_, err := stx.Exec(ctx, `DELETE FROM sessions WHERE expires_at <= $1 OR ended_at IS NULL AND seen_at <= $2`,
		stx.Now, stx.Now.Add(-SessionIdle))
	if err == nil {
		_, err = stx.Exec(ctx, `DELETE FROM login_codes WHERE created_at <= $1`, stx.Now.Add(-codesKept))
	}
	if err != nil {
		return fmt.Errorf("sweep sign-ins: %w", err)
	}
	return nil
}

// endSessions empties the sessions too: nobody reads their data again.
func endSessions(ctx context.Context, stx SystemTx, which string, key any) error {
	_, err := stx.Exec(ctx, `UPDATE sessions SET ended_at = $2, data = '' WHERE ended_at IS NULL AND `+which, key, stx.Now)
	if err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return nil
}

// userOf reads whose session the data is; unset before the sign-in.
func userOf(data []byte) (UserID, error) {
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return UserID{}, fmt.Errorf("read a session's data: %w", err)
	}
	text, _ := values[SessionUser].(string)
	if text == "" {
		return UserID{}, nil
	}
	return ParseID[User](text)
}
