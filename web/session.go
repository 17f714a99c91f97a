package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"tollgate/tenants"
)

// newSessions keeps sessions in the database. A browser sends the cookie only to us,
// only by https if that is how it comes, and not with requests that other sites make.
func newSessions(db *tenants.DB, secure bool) *scs.SessionManager {
	manager := scs.New()
	manager.Store = tenants.NewSessionStore(db)
	manager.Lifetime = tenants.SessionLifetime
	manager.Cookie = scs.SessionCookie{
		Name: "tollgate", HttpOnly: true, Persist: true, Path: "/", SameSite: http.SameSiteLaxMode, Secure: secure,
	}
	if secure {
		manager.Cookie.Name = "__Host-tollgate" // no other host of the domain can set it
	}
	return manager
}

// loadSession finds out who visits. An unknown or ended session is a visit without one.
func (v *visit) loadSession() error {
	token := ""
	if cookie, err := v.Cookie(v.s.sessions.Cookie.Name); err == nil {
		token = cookie.Value
	}
	ctx, err := v.s.sessions.Load(v.ctx(), token)
	if err != nil {
		return fmt.Errorf("load the session: %w", err)
	}
	v.SetRequest(v.Request().WithContext(ctx))
	if text := v.s.sessions.GetString(ctx, tenants.SessionUser); text != "" {
		v.user, err = tenants.ParseID[tenants.User](text)
	}
	return err
}

// saveSession stores the session and gives the browser its cookie.
func (v *visit) saveSession() error {
	token, expiry, err := v.s.sessions.Commit(v.ctx())
	if err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	v.s.sessions.WriteSessionCookie(v.ctx(), v.Response(), token, expiry)
	return nil
}

// signIn makes the visit that of a person. The session begins anew under a new token,
// so one that somebody else knew or set is worth nothing.
func (v *visit) signIn(user tenants.UserID) error {
	sessions, ctx := v.s.sessions, v.ctx()
	if err := sessions.Clear(ctx); err != nil {
		return fmt.Errorf("empty the session: %w", err)
	}
	if err := sessions.RenewToken(ctx); err != nil {
		return fmt.Errorf("renew the session: %w", err)
	}
	sessions.Put(ctx, tenants.SessionUser, user.String())
	v.user = user
	return v.saveSession()
}

// signOut ends the session and takes the cookie back.
func (v *visit) signOut() error {
	if err := v.s.sessions.Destroy(v.ctx()); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	v.s.sessions.WriteSessionCookie(v.ctx(), v.Response(), "", time.Time{})
	v.user = tenants.UserID{}
	return nil
}
