package web

import (
	"context"
	"errors"
	"net/http"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// bulkShown is how far something has come that is done to many runs.
type bulkShown struct {
	v        *visit
	Bulk     engine.Bulk
	Refusals []engine.BulkRefusal
}

const mostRefusals = 50

// bulkProgress shows how far it has come.
func (s *Server) bulkProgress(v *visit) error {
	id, err := idParam[engine.Bulk](v, "bulk")
	if err != nil {
		return err
	}
	view := bulkShown{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if view.Bulk, err = engine.BulkByID(ctx, tx, id); err != nil {
			return err
		}
		view.Refusals, err = engine.BulkRefusals(ctx, tx, id, mostRefusals)
		return err
	})
	if err != nil {
		return err
	}
	frame := v.frame(view.title(), inRuns)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, bulkShownBody(view))
}

// stopBulk leaves the rest alone. Pressed again, or too late, it shows how it ended.
func (s *Server) stopBulk(v *visit) error {
	id, err := idParam[engine.Bulk](v, "bulk")
	if err != nil {
		return err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		return s.Engine.StopBulk(ctx, tx, id, tenants.ByMember(v.me))
	})
	if err != nil && !errors.Is(err, engine.ErrBulkEnded) {
		return err
	}
	return v.redirect(v.path("bulk", id.String()))
}

func (b bulkShown) title() string {
	return ui.Count(int64(b.Bulk.Done)) + " of " + ui.Plural(int64(b.Bulk.Total), "run", "runs") + " " + bulkDone(b.Bulk.Action)
}

// lead says how it stands.
func (b bulkShown) lead() ui.Sentence {
	began := "Begun by " + b.Bulk.ByName + " " + inSentence(ui.When(b.Bulk.CreatedAt, b.v.now, b.v.zone())) + "."
	switch b.Bulk.State {
	case "done":
		return ui.Sentence{ui.Strong("Done."), ui.Plain(" " + began)}
	case "stopped":
		return ui.Sentence{ui.Strong("Stopped."), ui.Plain(" " + ui.Plural(int64(b.Bulk.Left), "run was", "runs were") + " left alone. " + began)}
	}
	return ui.Sentence{ui.Strong("Under way."), ui.Plain(" " + began)}
}

// bar is how far it has come.
func (b bulkShown) bar() ui.Progress {
	share := func(n int) float64 {
		if b.Bulk.Total == 0 {
			return 0
		}
		return 100 * float64(n) / float64(b.Bulk.Total)
	}
	return ui.Progress{Label: b.title(), Pieces: []ui.Piece{
		{Status: ui.Done, Share: share(b.Bulk.Done)}, {Status: ui.Skipped, Share: share(b.Bulk.Refused)}, {Status: ui.Cancelled, Share: share(b.Bulk.Left)},
	}}
}

func (b bulkShown) facts() ui.Facts {
	open := b.Bulk.Total - b.Bulk.Done - b.Bulk.Refused - b.Bulk.Left
	return ui.Facts{
		{Label: sentenceCase(bulkDone(b.Bulk.Action)), Value: ui.Count(int64(b.Bulk.Done))},
		{Label: "Passed over", Value: ui.Count(int64(b.Bulk.Refused))},
		{Label: "Left alone", Value: ui.Count(int64(b.Bulk.Left))},
		{Label: "To go", Value: ui.Count(int64(open))},
	}
}

// refusals are the runs that were passed over, and why.
func (b bulkShown) refusals() []ui.Row {
	var rows []ui.Row
	for _, one := range b.Refusals {
		rows = append(rows, ui.Row{Name: one.Name, Href: b.v.path("runs", one.Run.String()), Reason: ui.Sentence{ui.Name(one.Why)}})
	}
	return rows
}

// actions are to look again and to stop, while it goes on.
func (b bulkShown) actions() ui.Actions {
	if b.Bulk.EndedAt != nil {
		return ui.Actions{ui.Button{Text: "Back to the runs", Href: b.v.path("runs")}}
	}
	here := b.v.path("bulk", b.Bulk.ID.String())
	actions := ui.Actions{ui.Button{Text: "Look again", Icon: ui.IconRetry, Href: here}}
	if b.v.me.Role.May(tenants.StartRuns) {
		actions = append(actions, ui.PostButton{Action: here + "/stop", Button: ui.Button{Text: "Stop", TestID: "stop-bulk"}})
	}
	return actions
}
