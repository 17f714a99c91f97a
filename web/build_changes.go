package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// changesView shows in what one definition differs from another.
type changesView struct {
	d       *draftView
	Changes []pipeline.Change
}

// changesPage shows what the draft changes in the live version.
func (s *Server) changesPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	return view.page(http.StatusOK, "Changes of "+view.Draft.Name, changesBody(changesView{view, view.Changes}))
}

// discardDraft makes the draft what the live version is. It can be undone.
func (s *Server) discardDraft(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	if view.Draft.Live == 0 {
		return engine.ErrNotLive
	}
	var live pipeline.Version
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		live, err = pipeline.VersionByNumber(ctx, tx, view.Draft.ID, view.Draft.Live)
		return err
	})
	if err != nil {
		return err
	}
	_, err = v.edit(func(pipeline.Document) (pipeline.Document, string, string, error) {
		return live.Document, fmt.Sprintf("Discarded all changes since v%d", live.Number), "", nil
	})
	if err != nil {
		return err
	}
	return v.backTo("")
}

// publishView asks before the draft becomes the live version.
type publishView struct {
	d      *draftView
	Open   []engine.OpenRuns
	Note   string
	Fault  string
	Blocks []pipeline.Problem
}

func (s *Server) publishPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	return view.showPublish(http.StatusOK, "", "")
}

func (d *draftView) showPublish(status int, note, fault string) error {
	view := publishView{d: d, Note: note, Fault: fault, Blocks: pipeline.Blocking(d.Problems)}
	err := d.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		view.Open, _, err = engine.OpenByVersion(ctx, tx, d.Draft.ID)
		return err
	})
	if err != nil {
		return err
	}
	title := "Publish " + d.Draft.Name
	if fault != "" {
		title = "Error: " + title
	}
	return d.page(status, title, publishBody(view))
}

// maxNote bounds what is noted of a version, in characters.
const maxNote = 500

// publishDraft makes the draft that was seen the live version.
func (s *Server) publishDraft(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	note := v.FormValue("note")
	switch {
	case note == "" && view.Draft.Live > 0:
		return view.showPublish(http.StatusUnprocessableEntity, note, "Say in a few words what this version changes, and why.")
	case len([]rune(note)) > maxNote:
		return view.showPublish(http.StatusUnprocessableEntity, note, fmt.Sprintf("A note has up to %d characters. Shorten it.", maxNote))
	case len(pipeline.Blocking(view.Problems)) > 0:
		return view.showPublish(http.StatusUnprocessableEntity, note, "")
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		one, err := pipeline.Lock(ctx, tx, view.Draft.ID)
		switch {
		case err != nil:
			return err
		case strconv.FormatInt(one.Revision, 10) != v.FormValue("seen"):
			return pipeline.ErrDraftMoved
		case strconv.Itoa(one.Live) != v.FormValue("live"):
			return errChangedSince
		}
		number, err := pipeline.Publish(ctx, tx, one.ID, note, v.me.User.ID)
		if err != nil {
			return err
		}
		return v.auditPublished(ctx, tx, one.ID, map[string]any{"version": number})
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", view.Draft.ID.String()))
}

func (v *visit) auditPublished(ctx context.Context, tx tenants.Tx, id pipeline.ID, detail map[string]any) error {
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(v.me), Action: "pipeline.published", Target: tenants.Target{Kind: "pipeline", ID: id}, Detail: detail,
	})
}

// effects say what publishing means for runs.
func (p publishView) effects() []ui.Row {
	rows := []ui.Row{{Reason: ui.Words(fmt.Sprintf("New runs take v%d from now on.", p.next()))}}
	for _, one := range p.Open {
		rows = append(rows, ui.Row{Reason: ui.Sentence{
			ui.Strong(ui.Plural(int64(one.All()), "open run stays", "open runs stay") + fmt.Sprintf(" on v%d.", one.Version)),
			ui.Plain(" One that waits or is paused can be moved on its page."),
		}})
	}
	if len(p.Open) == 0 {
		rows = append(rows, ui.Row{Reason: ui.Words("No run is open now.")})
	}
	return append(rows, ui.Row{Reason: ui.Words("It can be taken back: “Versions” makes an earlier version live again in two clicks.")})
}

// next is the number that the draft gets. Versions are counted on, also after an earlier
// one was made live again, which is a version of its own.
func (p publishView) next() int { return p.d.Draft.Live + 1 }
