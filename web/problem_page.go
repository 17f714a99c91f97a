package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// nothingHere is every address of a workspace that is no page, with the navigation
// around it for its members.
func (s *Server) nothingHere(*visit) error { return errNotFound }

// timeToFail is what an error page may take, also when the visit's own time is up.
const timeToFail = 5 * time.Second

// fail answers a visit that ended in an error. If part of an answer is out already
// there is nothing more to say.
func (v *visit) fail(err error) {
	if v.Response().Committed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx()), timeToFail)
	defer cancel()
	v.SetRequest(v.Request().WithContext(ctx))
	if errors.Is(err, errSignedOut) && !v.wantsPart() {
		_ = v.redirect(signInThen(v.wayBack()))
		return
	}
	p := v.named(problemOf(err), err)
	if p.wait > 0 {
		v.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.wait.Seconds()))))
	}
	if err := v.page(p.status, v.problemFrame(p), v.problemBody(p, err)); err != nil {
		v.s.Log.ErrorContext(v.ctx(), "an error page could not be sent", "ref", v.ref, "error", err)
	}
	if p.status == http.StatusRequestEntityTooLarge {
		v.drain()
	}
}

// signInThen is the sign-in page that leads on to another.
func signInThen(next string) string { return "/signin?next=" + url.QueryEscape(next) }

// wayBack is the page to return to after signing in: this one, or for a form that
// cannot be sent again its workspace.
func (v *visit) wayBack() string {
	if v.reads() {
		return v.Request().URL.RequestURI()
	}
	if tenant, err := idParam[tenants.Tenant](v, "tenant"); err == nil {
		return pathIn(tenant)
	}
	return "/"
}

// named adds to a refusal whom one can ask, by name.
func (v *visit) named(p problem, err error) problem {
	forbidden, ok := errors.AsType[*tenants.Forbidden](err)
	if !ok || v.me.Tenant.ID.IsZero() {
		return p
	}
	var members []tenants.Membership
	err = v.s.DB.InTx(v.ctx(), v.me.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		members, err = tenants.Members(ctx, tx)
		return err
	})
	if err == nil {
		p.sentence = forbidden.Action.Refusal(members)
	}
	return p
}

func (v *visit) problemFrame(p problem) frame {
	title := p.heading
	if v.me.Tenant.ID.IsZero() {
		around := v.alone(title)
		around.End = "Request " + v.ref
		return around
	}
	around := v.frame(title, inNone)
	around.Narrow = true
	around.Foot = append(around.Foot, ui.Link{Text: "Request " + v.ref})
	return around
}

func (v *visit) problemBody(p problem, err error) ui.Lost {
	text := ui.Sentence{ui.Plain(p.sentence)}
	if p.status >= http.StatusInternalServerError {
		text = append(text, ui.Plain(v.whatWasSaved(err)), ui.Plain(" If it goes on, tell us this reference: "), ui.Strong(v.ref), ui.Plain("."))
	}
	home := ui.Button{Text: "Go to the start page", Kind: ui.Primary, Href: "/", TestID: "home"}
	if !v.me.Tenant.ID.IsZero() {
		home = ui.Button{Text: "Go to home", Kind: ui.Primary, Href: v.path(), TestID: "home"}
	}
	if p.status == http.StatusUnauthorized {
		home = ui.Button{Text: "Sign in", Kind: ui.Primary, Href: signInThen(v.wayBack()), TestID: "home"}
	}
	return ui.Lost{
		Kind:    kindOf(p.status),
		Title:   p.heading,
		Text:    text,
		Actions: ui.Actions{home},
		Links:   v.nearby(p),
	}
}

// nearby is where what was looked for may be.
func (v *visit) nearby(p problem) ui.Sentence {
	if p.status != http.StatusNotFound || v.me.Tenant.ID.IsZero() {
		return nil
	}
	return ui.Sentence{
		ui.Plain("Or look among the "), ui.LinkTo("runs", v.path("runs")), ui.Plain(", the "), ui.LinkTo("pipelines", v.path("pipelines")),
		ui.Plain(" and the "), ui.LinkTo("reviews", v.path("reviews")), ui.Plain("."),
	}
}

// kindOf is a status in words with its number, which people search for.
func kindOf(status int) string {
	words := http.StatusText(status)
	if status == http.StatusRequestEntityTooLarge {
		words = "Too large"
	}
	return fmt.Sprintf("%s%s (%d)", words[:1], strings.ToLower(words[1:]), status)
}

// whatWasSaved answers what everybody asks first after a failure. A database that went
// away in the middle may have saved it before it could say so.
func (v *visit) whatWasSaved(err error) string {
	switch {
	case v.saved:
		return " What you did was saved; only the page about it failed."
	case !v.reads() && tenants.IsTrouble(err):
		return " It may or may not be saved: look before you do it again."
	case !v.reads():
		return " What you did was not saved."
	}
	return ""
}

// paceOfForms is how often one network may send forms and open links: as often as an
// office behind one address does.
func paceOfForms() *pace { return newPace(time.Second/2, 60) }
