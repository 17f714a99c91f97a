package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// bulkView asks what is to be done to all runs of a filter, and says what that means.
type bulkView struct {
	v         *visit
	Key       string
	Action    engine.BulkAction
	Filter    runFilter
	Pipelines []pipeline.Pipeline
	Plan      engine.BulkPlan
	Moved     ui.Sentence
}

// bulkWords are the actions, as they are offered and as they are told.
var bulkWords = []struct {
	action      engine.BulkAction
	offer, done string
	means       string
}{
	{engine.BulkRetry, "Try the failed step again", "tried again", "Each goes on as the same run, from the step that failed. Finished steps are kept."},
	{engine.BulkRerun, "Run again from the start", "run again", "Each is done again as a new run that is linked to it. Everything is done and paid anew, and what they sent goes out again."},
	{engine.BulkPause, "Pause", "paused", "Each ends the steps it is at, and begins no more until it is resumed."},
	{engine.BulkResume, "Resume", "resumed", "Each goes on from where it was paused."},
	{engine.BulkCancel, "Cancel", "cancelled", "Each stops for good. It cannot go on afterwards, and whoever was asked is not asked any more."},
}

// bulkPage asks; only its form does anything.
func (s *Server) bulkPage(v *visit) error {
	view, err := v.readBulk(v.QueryParam)
	if err != nil {
		return err
	}
	view.Key = newFormKey()
	return view.show(http.StatusOK)
}

// readBulk reads what is to be done, and to which runs.
func (v *visit) readBulk(value func(string) string) (bulkView, error) {
	view := bulkView{v: v, Action: engine.BulkAction(value("action"))}
	var err error
	if view.Filter, err = v.readRunFilter(value); err != nil {
		return view, err
	}
	if view.Action == "" {
		view.Action = usualBulk[view.Filter.Group]
	}
	return view, v.inTx(view.read)
}

// usualBulk is what runs of a group are mostly gathered for.
var usualBulk = map[engine.Group]engine.BulkAction{
	engine.GroupFailed: engine.BulkRetry, engine.GroupPaused: engine.BulkResume,
	engine.GroupCompleted: engine.BulkRerun, engine.GroupCancelled: engine.BulkRerun, "": engine.BulkCancel,
	engine.GroupOpen: engine.BulkPause, engine.GroupPerson: engine.BulkPause, engine.GroupCapped: engine.BulkPause, engine.GroupQueued: engine.BulkCancel,
}

func (b *bulkView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if b.Pipelines, err = pipeline.List(ctx, tx); err != nil {
		return err
	}
	if !b.Filter.Pipeline.IsZero() {
		if _, err := pipeline.ByID(ctx, tx, b.Filter.Pipeline); err != nil {
			return err
		}
	}
	b.Plan, err = engine.PlanBulk(ctx, tx, b.Action, b.Filter.folded())
	return err
}

func (b *bulkView) show(status int) error {
	frame := b.v.frame("Do something to many runs", inRuns)
	frame.Narrow = true
	return b.v.page(status, frame, bulkBody(*b))
}

// startBulk begins it, or shows the page again where other runs fit by now.
func (s *Server) startBulk(v *visit) error {
	view, err := v.readBulk(v.FormValue)
	if err != nil {
		return err
	}
	if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
		return trigger.ErrNoFormKey
	}
	var id engine.BulkID
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = s.Engine.StartBulk(ctx, tx, view.Action, view.Filter.folded(), v.me, engine.Mark(v.FormValue(markName)), v.hand().Key)
		return err
	})
	if errors.Is(err, engine.ErrMoved) {
		v.saved = false
		view.Key = newFormKey()
		view.Moved = ui.Sentence{ui.Strong("Nothing was begun."), ui.Plain(" Other runs fit the filter than when you opened this page. Below is what it would mean now.")}
		return view.show(http.StatusConflict)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("bulk", id.String()))
}

// address is the page's with one part of the filter changed.
func (b bulkView) address(name, value string) string {
	query := b.values()
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return b.v.path("bulk") + "?" + query.Encode()
}

// values are the filter and the action as a form sends them.
func (b bulkView) values() url.Values {
	query := b.Filter.values()
	query.Set("action", string(b.Action))
	return query
}

// hidden are what the form that begins it carries.
func (b bulkView) hidden() []ui.Hidden {
	hidden := []ui.Hidden{{Name: formKeyName, Value: b.Key}, {Name: markName, Value: string(b.Plan.Mark)}}
	values := b.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		hidden = append(hidden, ui.Hidden{Name: name, Value: values.Get(name)})
	}
	return hidden
}

// kept are the parts of the filter that the form does not ask for.
func (b bulkView) kept() []ui.Hidden {
	var hidden []ui.Hidden
	values := b.values()
	for _, name := range []string{"find", "field", "how", "under", "children", "class", "cause"} {
		if values.Has(name) {
			hidden = append(hidden, ui.Hidden{Name: name, Value: values.Get(name)})
		}
	}
	return hidden
}

// narrowed says what else the runs have in common, and leads to all of them.
func (b bulkView) narrowed() ui.Sentence {
	var out ui.Sentence
	f := b.Filter
	switch {
	case f.Find != "" && f.Exact:
		out = ui.Sentence{ui.Plain("Only runs in which a field is “"), ui.Name(f.Find), ui.Plain("”. ")}
	case f.Find != "":
		out = ui.Sentence{ui.Plain("Only runs in which a field begins with “"), ui.Name(f.Find), ui.Plain("”. ")}
	}
	if !f.Under.IsZero() {
		out = append(out, ui.Plain("Only runs below one other. "))
	}
	if f.folded().Top {
		out = append(out, ui.Plain("Without runs that other runs began. "))
	}
	if len(out) == 0 {
		return nil
	}
	f.Find, f.Field, f.Exact, f.Under, f.Children = "", "", false, engine.RunID{}, true
	query := f.values()
	query.Set("action", string(b.Action))
	return append(out, ui.LinkTo("Take all others, too", b.v.path("bulk")+"?"+query.Encode()))
}

// fields choose what is done and to which runs.
func (b bulkView) fields() []ui.Field {
	actions := ui.Field{Kind: ui.ChoiceField, Name: "action", Label: "What to do", Value: string(b.Action)}
	for _, one := range bulkWords {
		actions.Options = append(actions.Options, ui.Option{Value: string(one.action), Label: one.offer})
	}
	states := ui.Field{Kind: ui.ChoiceField, Name: "state", Label: "Runs that are", Value: string(b.Filter.Group), Optional: true}
	for _, one := range groupWords[1:] {
		states.Options = append(states.Options, ui.Option{Value: string(one.group), Label: one.words})
	}
	of := ui.Field{Kind: ui.ChoiceField, Name: "pipeline", Label: "Of the pipeline", Optional: true}
	if !b.Filter.Pipeline.IsZero() {
		of.Value = b.Filter.Pipeline.String()
	}
	for _, one := range b.Pipelines {
		of.Options = append(of.Options, ui.Option{Value: one.ID.String(), Label: one.Name})
	}
	if len(of.Options) <= mostRadios {
		of.Options = append([]ui.Option{{Value: "", Label: "Any"}}, of.Options...)
	}
	return []ui.Field{actions, states, of, {Kind: ui.DateField, Name: "from", Label: "Started on or after", Value: b.Filter.Day, Optional: true}}
}

// mostRadios is how many pipelines are offered side by side; more are a list, in which
// nothing can be chosen anyway.
const mostRadios = 5

// bulkButton leads from a filtered list to what can be done to all of its runs.
func (r runsView) bulkButton() templ.Component {
	if r.Filter.Group == "" && !r.Filter.chooses() || len(r.News) == 0 || !r.v.me.Role.May(tenants.StartRuns) {
		return nil
	}
	return ui.Button{Text: "Do something to all of these", Href: r.v.path("bulk") + "?" + r.Filter.values().Encode(), TestID: "bulk"}
}
