package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// shareView is the page on which links to a run are made and ended.
type shareView struct {
	v       *visit
	Run     engine.Run
	Allowed bool
	Shares  []engine.Share
	Helpers string // who may allow links, where she may not
	Key     string
}

// The choices of how long a link lasts, in days.
var shareDays = []int{1, 7, 30, 90}

func (s *Server) sharePage(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	view := shareView{v: v, Key: newFormKey()}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) }); err != nil {
		return err
	}
	frame := v.frame("Share “"+view.Run.Name+"”", inRuns)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, shareBody(view))
}

func (s *shareView) read(ctx context.Context, tx tenants.Tx, id engine.RunID) error {
	var err error
	if s.Run, err = engine.RunByID(ctx, tx, id); err != nil {
		return err
	}
	if s.Allowed, err = engine.SharesAllowed(ctx, tx); err != nil {
		return err
	}
	members, err := tenants.Members(ctx, tx)
	if err != nil {
		return err
	}
	s.Helpers = tenants.AllowSharing.Refusal(members)
	s.Shares, err = engine.SharesOf(ctx, tx, id)
	return err
}

// shareRun makes a link, or says for the whole workspace whether there are any.
func (s *Server) shareRun(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	days, _ := strconv.Atoi(v.FormValue("days"))
	allow := v.FormValue("allow")
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if _, err := engine.RunByID(ctx, tx, id); err != nil {
			return err
		}
		if allow != "" {
			return engine.AllowShares(ctx, tx, allow == "yes", v.me)
		}
		if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
			return trigger.ErrNoFormKey
		}
		return s.Engine.ShareRun(ctx, tx, id, time.Duration(days)*24*time.Hour, v.me, v.hand().Key)
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("runs", id.String(), "share"))
}

// endShare ends a link.
func (s *Server) endShare(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	link, err := idParam[engine.Share](v, "link")
	if err != nil {
		return err
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return engine.EndShare(ctx, tx, id, link, v.me) }); err != nil {
		return err
	}
	return v.redirect(v.path("runs", id.String(), "share"))
}

// shareButton leads to the links of the run, for who may give them.
func (r runView) shareButton() templ.Component {
	if !r.v.me.Role.May(tenants.StartRuns) {
		return templ.NopComponent
	}
	return ui.Button{Text: "Share a link", Icon: ui.IconPeople, Href: r.path("share"), TestID: "share-run"}
}

func (s shareView) mayAllow() bool { return s.v.me.Role.May(tenants.AllowSharing) }

func (s shareView) path(parts ...string) string {
	return s.v.path(append([]string{"runs", s.Run.ID.String(), "share"}, parts...)...)
}

func (s shareView) address(share engine.Share) string {
	return s.v.s.origin + sharedRoot + s.v.s.Engine.ShareToken(share.ID)
}

func (s shareView) days() ui.Field {
	field := ui.Field{Kind: ui.ChoiceField, Name: "days", Label: "The link works for", Value: "7"}
	for _, days := range shareDays {
		field.Options = append(field.Options, ui.Option{Value: strconv.Itoa(days), Label: ui.Plural(int64(days), "day", "days")})
	}
	return field
}
