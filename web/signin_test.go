package web

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// codeFor reads the newest code that was mailed to an address.
func (s *site) codeFor(email string) string {
	s.t.Helper()
	var code string
	require.NoError(s.t, s.db.InSystemTx(s.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		mails, err := s.outbox.ListSystem(ctx, stx)
		require.NoError(s.t, err)
		for _, one := range mails {
			if one.To.Email == email {
				_, composed, err := s.outbox.SystemByID(ctx, stx, one.ID)
				code = regexp.MustCompile(`\d{3} \d{3}`).FindString(composed.Text)
				return err
			}
		}
		return nil
	}))
	require.NotEmpty(s.t, code, "no code was mailed to %s", email)
	return code
}

func TestSignInByCode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.visitor()
	b.get("/").leadsTo("/signin")
	p := b.get("/signin").is(200)
	require.Equal(t, "Sign in or sign up", p.heading())
	code := b.post("/signin", "email", " New.Person@Example.com ").leadsTo("/signin/code").follow().is(200).
		says("new.person@example.com", "10 minutes")
	require.Equal(t, "one-time-code", attr(code.all("input", "name", "code")[0], "autocomplete"))
	require.Equal(t, "numeric", attr(code.all("input", "name", "code")[0], "inputmode"))
	b.post("/signin/code", "code", s.codeFor("new.person@example.com")).leadsTo("/")
	b.get("/").leadsTo("/workspaces").follow().is(200).says("Name your workspace")
}

func TestSignInLeadsBackToWhereOneWantedToGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	owner := s.home.people[tenants.Owner].User
	b := s.visitor()
	page := b.get(s.at() + "?state=failed").is(http.StatusSeeOther).follow().is(200)
	require.Equal(t, s.at()+"?state=failed", page.field("next"))
	b.post("/signin", "email", owner.Email, "next", page.field("next")).leadsTo("/signin/code")
	b.post("/signin/code", "code", s.codeFor(owner.Email)).leadsTo(s.at() + "?state=failed").follow().is(200)
}

func TestSignInNeverLeavesTheSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	email := s.home.people[tenants.Viewer].User.Email
	for _, next := range []string{"//evil.example", `/\evil.example`, "/%5Cevil.example", "https:evil.example", "/\t/evil.example"} {
		b := s.visitor()
		b.get("/signin?next=" + strings.NewReplacer("%", "%25", "\t", "%09", `\`, "%5C").Replace(next)).is(200).hides("evil.example")
		s.forgetCodes()
		b.post("/signin", "email", email, "next", next).leadsTo("/signin/code")
		b.post("/signin/code", "code", s.codeFor(email)).leadsTo("/")
	}
}

// forgetCodes makes room below the limit on codes.
func (s *site) forgetCodes() {
	s.t.Helper()
	_, err := s.db.Super(s.t).Exec(s.t.Context(), `DELETE FROM login_codes`)
	require.NoError(s.t, err)
}

// Nobody learns from the answers who is known here.
func TestKnownAndUnknownAddressesLookTheSame(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer := func(email string) string {
		b := s.visitor()
		first := b.post("/signin", "email", email)
		second := first.follow().is(200)
		wrong := b.post("/signin/code", "code", "000000").is(422)
		all := first.body + first.header.Get("Location") + second.body + wrong.body
		return strings.ReplaceAll(strings.ReplaceAll(all, email, "EMAIL"), "autofocus", "")
	}
	require.Equal(t, answer(s.home.people[tenants.Owner].User.Email), answer("never.seen@example.com"))
}

func TestABadAddressIsToldAndKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, email := range []string{"", "nonsense", "a@b", hostile + "@example.com", "a@example.com\r\nBcc: x@evil.example", "\x00@example.com", "\xff@example.com", strings.Repeat("a", 300) + "@example.com"} {
		p := s.visitor().post("/signin", "email", email, "next", "/workspaces").is(http.StatusUnprocessableEntity)
		require.True(t, strings.HasPrefix(p.title(), "Error: "), p.title())
		require.Len(t, p.all("", "data-testid", "faults"), 1)
		require.Equal(t, "true", attr(p.all("input", "name", "email")[0], "aria-invalid"))
		require.Equal(t, "/workspaces", p.field("next"))
		if strings.HasPrefix(email, "<") {
			require.Equal(t, email, p.field("email"))
			require.Empty(t, p.all("img", "", ""))
		}
	}
}

func TestABadCodeIsToldAndCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.visitor()
	b.get("/signin/code").leadsTo("/signin")
	b.post("/signin/code", "code", "123456").leadsTo("/signin")
	b.post("/signin", "email", "slow@example.com").leadsTo("/signin/code")
	right := s.codeFor("slow@example.com")
	wrong := "111 111"
	if right == wrong {
		wrong = "222 222"
	}
	b.post("/signin/code", "code", "12").is(422).says("A code has six digits")
	p := b.post("/signin/code", "code", wrong).is(422).says("wrong or no longer valid")
	require.Equal(t, wrong, p.field("code"), "what was typed is kept")
	for range tenants.CodeTries - 1 {
		b.post("/signin/code", "code", wrong)
	}
	b.post("/signin/code", "code", right).is(http.StatusTooManyRequests).says("Too many tries", "ask for a new code")
	b.get(s.at()).is(http.StatusSeeOther)
}

func TestAskingForCodesHasALimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 5 {
		s.visitor().post("/signin", "email", "many@example.com").leadsTo("/signin/code")
	}
	p := s.visitor().post("/signin", "email", "many@example.com").is(http.StatusTooManyRequests).says("Too many tries", "ask for a new code again in 14 min")
	require.NotEmpty(t, p.header.Get("Retry-After"))
	s.visitor().post("/signin", "email", "other@example.com").leadsTo("/signin/code")
}

// A session that somebody else knew or planted is worth nothing after the sign-in.
func TestTheSessionIsNewAfterSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.visitor()
	b.post("/signin", "email", "new@example.com")
	before := *b.cookies["tollgate"]
	require.Less(t, before.MaxAge, int((3 * tenants.CodeLifetime).Seconds()), "before the sign-in it is short")
	b.post("/signin/code", "code", s.codeFor("new@example.com")).leadsTo("/")
	require.NotEqual(t, before.Value, b.cookies["tollgate"].Value)
	require.Greater(t, b.cookies["tollgate"].MaxAge, int((tenants.SessionLifetime - time.Hour).Seconds()))
	old := s.visitor()
	old.cookies["tollgate"] = &before
	old.get("/workspaces").is(http.StatusSeeOther)
	planted := s.visitor()
	planted.cookies["tollgate"] = &http.Cookie{Name: "tollgate", Value: strings.Repeat("x", 43)}
	planted.get("/signin").is(200)
	planted.post("/signin", "email", "new2@example.com")
	require.NotEqual(t, strings.Repeat("x", 43), planted.cookies["tollgate"].Value)
}

func TestSignOutEndsTheSessionForGood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Owner)
	b.get(s.at()).is(200)
	stolen := *b.cookies["tollgate"]
	b.post("/signout").leadsTo("/signin")
	require.Empty(t, b.cookies, "the cookie is taken back")
	thief := s.visitor()
	thief.cookies["tollgate"] = &stolen
	thief.get(s.at()).is(http.StatusSeeOther)
	s.visitor().post("/signout").leadsTo("/signin")
}

func TestTheCookieIsBoundToUs(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.BaseURL, c.Secure = "https://tollgate.test", true })
	p := s.visitor().post("/signin", "email", "a@example.com")
	cookie := p.header.Get("Set-Cookie")
	require.True(t, strings.HasPrefix(cookie, "__Host-tollgate="))
	for _, want := range []string{"; HttpOnly", "; Secure", "; SameSite=Lax", "; Path=/"} {
		require.Contains(t, cookie, want)
	}
	require.NotContains(t, cookie, "Domain")
}

// Whoever is removed from the workspace or from everywhere is out at the next request.
func TestRemovedPeopleAreOutAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	viewer, builder := s.home.people[tenants.Viewer].User.ID, s.home.people[tenants.Builder].User.ID
	b, c := s.as(viewer), s.as(builder)
	b.get(s.at()).is(200)
	_, err := s.db.Super(t).Exec(t.Context(), `DELETE FROM members WHERE user_id = $1`, viewer)
	require.NoError(t, err)
	b.get(s.at()).is(404)
	require.NoError(t, s.db.InSystemTx(t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		return tenants.RevokeSessions(ctx, stx, builder)
	}))
	c.get(s.at()).is(http.StatusSeeOther)
}

func TestGoingOnAsADemoPerson(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	outsider := s.home.people[tenants.Owner].User.ID // a real person, in a workspace that is no demo
	s.seedDemo()
	b := s.visitor()
	p := b.get("/signin").is(200).says("Ana Berger", "can do everything", "Nordlicht Handel")
	require.Len(t, p.all("form", "action", "/signin/as"), len(tenants.Roles()))
	ana, mia := s.home.people[tenants.Owner].User.ID, s.home.people[tenants.Viewer].User.ID
	b.post("/signin/as", "user", ana.String()).leadsTo(s.at()).follow().is(200).says("Ana Berger", "Switch person")
	// And on as another, on the same page.
	b.get("/signin?next=" + s.at()).is(200).says("You are signed in as this person")
	b.post("/signin/as", "user", mia.String(), "next", s.at()+"?state=open").leadsTo(s.at() + "?state=open")
	b.get(s.at()).is(200).says("Mia Satō")
	b.post("/signin/as", "user", mia.String(), "next", "/workspaces").leadsTo(s.at())
	for _, user := range []string{outsider.String(), "", "nonsense", tenants.NewID[tenants.User]().String()} {
		s.visitor().post("/signin/as", "user", user).is(404)
	}
}
