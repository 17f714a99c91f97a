package web

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"tollgate/tenants"
)

// visit is one request with what is known of the person behind it. It lives as long as
// the request.
type visit struct {
	echo.Context
	s     *Server
	route route
	ref   string // what a person can quote, and the log is searched by

	user  tenants.UserID     // of the session; zero for the signed-out
	me    tenants.Membership // in the workspace of the address; set for its routes only
	now   time.Time          // the database's clock when membership was read
	asked int                // how many reviews wait for her

	whole io.ReadCloser // the body without its limit
	saved bool          // a change was committed, whatever becomes of the page
}

// Reasons of our own why a visit ends early; problem.go words them.
var (
	errNotFound  = errors.New("there is nothing at this address")
	errSignedOut = errors.New("nobody is signed in")
	errForeign   = errors.New("the change was asked for by another site, or the browser does not say by which")
	errHost      = errors.New("this computer is not called so")
	errTooOften  = errors.New("too many requests")
)

// ctx ends when the browser leaves or the route's time is up.
func (v *visit) ctx() context.Context { return v.Request().Context() }

// inTx is the one transaction in which a visit to a workspace does its work. fn may run
// more than once, so it only reads, writes rows, and sets what it read.
func (v *visit) inTx(fn func(ctx context.Context, tx tenants.Tx) error) error {
	if err := v.s.DB.InTx(v.ctx(), v.me.Tenant.ID, fn); err != nil {
		return err
	}
	v.saved = !v.reads()
	return nil
}

// inSystemTx is inTx for the visits that belong to no workspace: signing in, choosing
// one.
func (v *visit) inSystemTx(fn func(ctx context.Context, stx tenants.SystemTx) error) error {
	if err := v.s.DB.InSystemTx(v.ctx(), fn); err != nil {
		return err
	}
	v.saved = !v.reads()
	return nil
}

// admit lets in whoever may use the route. A workspace that she is not in does not
// exist for her.
func (v *visit) admit() error {
	who := v.route.Who
	if who.local && !v.isLocal() {
		return errNotFound
	}
	if who.signedIn && v.user.IsZero() {
		return errSignedOut
	}
	if who.operator {
		return v.admitOperator()
	}
	if v.route.inWorkspace() {
		return v.enter(who.action)
	}
	return nil
}

// enter reads the membership anew for each request, so that whoever was removed or got
// another role feels it at once.
func (v *visit) enter(action tenants.Action) error {
	tenant, err := idParam[tenants.Tenant](v, "tenant")
	if err != nil {
		return err
	}
	err = v.s.DB.InTx(v.ctx(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		v.now = tx.Now
		if v.me, err = tenants.MemberByUser(ctx, tx, v.user); err != nil {
			return err
		}
		v.asked, err = v.s.Reviews.OpenCount(ctx, tx, v.user)
		return err
	})
	if err != nil {
		return err
	}
	return v.me.Require(action)
}

// idParam reads an id from the address. What is no id is not found.
func idParam[Of any](v *visit, name string) (tenants.IDOf[Of], error) {
	id, err := tenants.ParseID[Of](v.Param(name))
	if err != nil {
		return id, errNotFound
	}
	return id, nil
}

// path is an address inside the visit's workspace: path("runs", id) is /w/…/runs/….
func (v *visit) path(parts ...string) string { return pathIn(v.me.Tenant.ID, parts...) }

// PathIn is the path of a workspace's page, for rooms that lead there.
func PathIn(tenant tenants.ID, parts ...string) string { return pathIn(tenant, parts...) }

// pathIn is an address inside a workspace.
func pathIn(tenant tenants.ID, parts ...string) string {
	var b strings.Builder
	b.WriteString("/w/" + tenant.String())
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String()
}

// zone is where the person reads times: her own zone, else the workspace's.
func (v *visit) zone() *time.Location {
	name := v.me.Tenant.Zone
	if own := v.me.User.Zone; own != "" {
		name = own
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}
