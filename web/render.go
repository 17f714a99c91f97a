package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/a-h/templ"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// frame is what stands around the body of a page: ui.Layout or ui.PlainLayout.
type frame = templ.Component

// page sends a body inside its frame, or alone where htmx asks for that part of a page
// that is already there.
func (v *visit) page(status int, around frame, body templ.Component) error {
	v.Response().Header().Add("Vary", "HX-Request")
	if v.wantsPart() {
		return v.render(status, body)
	}
	return v.render(status, templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return around.Render(templ.WithChildren(ctx, body), w)
	}))
}

// render draws into memory first, so that a page that cannot be drawn is an error page
// and not half a page.
func (v *visit) render(status int, component templ.Component) error {
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := component.Render(v.ctx(), buffer); err != nil {
		return fmt.Errorf("draw a page: %w", err)
	}
	return v.HTMLBlob(status, buffer.Bytes())
}

// wantsPart tells whether htmx will put the answer into a page. A whole page is what it
// asks for when it stands in for the browser itself.
func (v *visit) wantsPart() bool {
	h := v.Request().Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Boosted") == "" && h.Get("HX-History-Restore-Request") == ""
}

// redirect sends the browser on with a GET, which is how every change ends.
func (v *visit) redirect(path string) error { return v.Redirect(http.StatusSeeOther, path) }

// section is an entry of the main navigation.
type section string

// The sections.
const (
	inHome      section = "home"
	inPipelines section = "pipelines"
	inTemplates section = "templates"
	inRuns      section = "runs"
	inReviews   section = "reviews"
	inUsage     section = "usage"
	inNone      section = ""
)

// frame is the frame of a workspace's page, with the navigation at one section.
func (v *visit) frame(title string, here section) ui.Layout {
	user := ui.User{Name: v.me.User.Name, Email: v.me.User.Email, SignOut: ui.Form{Action: "/signout"}}
	if v.isLocal() {
		user.Links = []ui.Link{{Text: "Switch person", Href: signInThen(v.here()), Icon: ui.IconPeople}}
	}
	user.Links = append(user.Links, ui.Link{Text: "Quotas", Href: v.path("settings", "quotas"), Icon: ui.IconSettings})
	if v.me.Role.May(tenants.ManageWorkspace) {
		user.Links = append(user.Links, ui.Link{Text: "Provider keys", Href: v.path("settings", "keys"), Icon: ui.IconKey},
			ui.Link{Text: "Secrets", Href: v.path("secrets"), Icon: ui.IconLock})
	}
	if v.s.operates(v.me.User.Email) {
		user.Links = append(user.Links, ui.Link{Text: "Operations", Href: operatePath, Icon: ui.IconStuck})
	}
	layout := ui.Layout{
		Title:     title,
		Workspace: v.me.Tenant.Name,
		Switch:    "/workspaces",
		Home:      v.path(),
		Nav: []ui.NavItem{
			{Text: "Home", Href: v.path(), Icon: ui.IconHome, Here: here == inHome},
			{Text: "Pipelines", Href: v.path("pipelines"), Icon: ui.IconPipelines, Here: here == inPipelines},
			{Text: "Templates", Href: v.path("templates"), Icon: ui.IconTemplates, Here: here == inTemplates},
			{Text: "Runs", Href: v.path("runs"), Icon: ui.IconRuns, Here: here == inRuns},
			{Text: "Reviews", Href: v.path("reviews"), Icon: ui.IconReviews, Here: here == inReviews, Count: v.asked, Counted: "waiting for you"},
		},
		User:   user,
		Zone:   ui.Zone(v.now, v.zone()),
		Ribbon: v.ribbon(),
	}
	if v.maySeeMoney() {
		layout.Nav = append(layout.Nav, ui.NavItem{Text: "Usage", Href: v.path("usage"), Icon: ui.IconUsage, Here: here == inUsage})
	}
	return layout
}

// alone is the frame of a page outside a workspace.
func (v *visit) alone(title string) ui.PlainLayout {
	return ui.PlainLayout{Title: title, Home: "/", Ribbon: v.ribbon()}
}

// ribbon reminds of local mode. Its links are for this computer only.
func (v *visit) ribbon() *ui.Ribbon {
	if !v.isLocal() {
		return nil
	}
	links := []ui.Link{{Text: "Mailbox", Href: "/mail"}, {Text: "Switch person", Href: signInThen(v.here())}}
	if v.s.Local.Break != nil && v.route.inWorkspace() && v.me.Role.May(tenants.StartRuns) {
		links = append(links, ui.Link{Text: breakPageName, Href: v.path("break")})
	}
	return &ui.Ribbon{Text: ui.Words("Local mode: no mail leaves this computer."), Links: links}
}

// here is the page to come back to as another person.
func (v *visit) here() string {
	if v.reads() && v.route.inWorkspace() {
		return v.Request().URL.RequestURI()
	}
	return "/"
}

// newFormKey is the one-time key of a form: sending the same form again is the same
// action.
func newFormKey() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails: the program ends if there is no randomness
	return base64.RawURLEncoding.EncodeToString(random[:])
}
