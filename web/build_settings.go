package web

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// settingsView is the form of what belongs to the pipeline itself: its name, what it
// starts with, what a run may cost, and what it hands back.
type settingsView struct {
	d    *draftView
	Form *stepForm
	Seen string
	Late bool // somebody saved the same form meanwhile
}

func (d *draftView) showSettings(status int, form *stepForm) error {
	if form == nil {
		form = d.form("", nil)
		own := d.Draft.Draft
		form.settings(&own)
	}
	title := "Edit " + d.Draft.Name
	if status != http.StatusOK {
		title = "Error: " + title
	}
	return d.page(status, title, settingsBody(settingsView{d: d, Form: form, Seen: settingsDigest(d.Draft.Draft), Late: status == http.StatusConflict}))
}

// settingsDigest tells whether the settings are those that a form was drawn for.
func settingsDigest(d pipeline.Document) string {
	d.Steps, d.Sample, d.Semantics = nil, nil, 0
	sum := sha256.Sum256(d.JSON())
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// settings describe the form.
func (f *stepForm) settings(d *pipeline.Document) {
	f.words(ui.Field{Name: "name", Label: "Name", MaxLength: pipeline.MaxName}, &d.Name)
	f.words(ui.Field{Kind: ui.LongField, Name: "note", Label: "What it is for", Optional: true, Rows: 3}, &d.Note)
	f.fieldRows("input", "What it starts with", "The start form: a field for each thing that a run needs.", true, &d.Input)
	f.text(ui.Field{Name: "run_name", Label: "Name of each run", Optional: true, Help: "Made of the input, such as “Invoice [Input › Number]”."}, &d.RunName)
	limit := int64(0)
	if d.RunCap != nil {
		limit = *d.RunCap
	}
	f.oneLine("limits", "Limits of a run", "", func() {
		if f.d.v.maySeeMoney() {
			f.dollars(ui.Field{Name: "run_cap", Label: "AI spend cap of a run", Optional: true}, &limit)
		}
		f.concurrency(d)
	})
	if f.sent.Has("run_cap") {
		if d.RunCap = nil; f.sent.Get("run_cap") != "" {
			d.RunCap = &limit
		}
	}
	f.valueRows("result", "What it hands back", "Values of a finished run, in this order.", "Add a value", pipeline.ListRoot, &d.Result)
	f.search(d)
}

// search chooses the fields that runs are found by, in the order of the document. What was
// named and is no field any more stays, so that its problem can be told.
func (f *stepForm) search(d *pipeline.Document) {
	possible := d.Searchable()
	if f.sent != nil {
		d.Search = slices.Compact(slices.Clone(f.sent["search"]))
	}
	for _, name := range d.Search {
		if !slices.ContainsFunc(possible, func(one pipeline.SearchField) bool { return one.Name == name }) {
			possible = append(possible, pipeline.SearchField{Name: name, Title: name})
		}
	}
	if len(possible) == 0 {
		return
	}
	picks := ui.Picks{Name: "search", Label: "Runs are found by", Help: "Such as an order number. Runs that begin once this is published can be found by it in the list of runs."}
	for _, one := range possible {
		picks.Options = append(picks.Options, ui.Pick{Value: one.Name, Label: one.Title, On: slices.Contains(d.Search, one.Name)})
	}
	f.add(picks)
}

// concurrency bounds how many runs are open at once.
func (f *stepForm) concurrency(d *pipeline.Document) {
	own := pipeline.Concurrency{}
	if d.Concurrency != nil {
		own = *d.Concurrency
	}
	f.whole(ui.Field{Name: "concurrency.limit", Label: "Runs at once", Optional: true}, &own.Limit)
	choose(f, ui.Field{Name: "concurrency.policy", Label: "More than that", Compact: true, None: "wait for their turn", Options: []ui.Option{
		{Value: string(pipeline.ConcurrencySkip), Label: "are skipped"}, {Value: string(pipeline.ConcurrencyCancelOldest), Label: "cancel the oldest"},
	}}, &own.Policy)
	if f.sent.Has("concurrency.limit") {
		if d.Concurrency = nil; own.Limit != 0 {
			d.Concurrency = &own
		}
	}
}

// saveSettings keeps what was typed. Where somebody else changed the same form meanwhile
// nothing is kept, and what was typed is shown again.
func (s *Server) saveSettings(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	sent, err := v.FormParams()
	if err != nil {
		return err
	}
	var form *stepForm
	_, err = v.edit(func(d pipeline.Document) (pipeline.Document, string, string, error) {
		before := d
		form = view.form("", cloneValues(sent))
		form.insertSent()
		moved := settingsDigest(d) != v.FormValue("seen")
		form.settings(&d)
		switch {
		case moved:
			return d, "", "", errStepMoved
		case len(form.faults) > 0:
			return d, "", "", errFaulty
		}
		return d, saysOf(before, d, d.Name), "", nil
	})
	invalid, bad := errors.AsType[*pipeline.Invalid](err)
	switch {
	case bad:
		form.faulty("name", "%s", invalid.Problems[0].Message)
		v.saved = false
		again := view.form("", form.sent)
		again.faults = form.faults
		own := view.Draft.Draft
		again.settings(&own)
		return view.showSettings(http.StatusUnprocessableEntity, again)
	case errors.Is(err, errFaulty):
		v.saved = false
		return view.showSettings(http.StatusUnprocessableEntity, form)
	case errors.Is(err, errStepMoved):
		v.saved = false
		return view.showSettings(http.StatusConflict, form)
	case err != nil:
		return err
	}
	return v.redirect(view.afterSettings(v.FormValue("do")))
}

func (d *draftView) afterSettings(do string) string {
	return d.path() + d.afterSave("", do, "")[len(d.stepPath("")):]
}
