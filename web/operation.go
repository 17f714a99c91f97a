package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// operation is a page that asks before something is done to a run, and says what it
// means. Its form carries where things stood, so that what is done is what was told.
type operation struct {
	v      *visit
	Run    engine.Run
	Mark   engine.Mark
	Key    string // the form's own: sending it again does nothing
	Moved  ui.Sentence
	Crumb  string
	Title  string
	Lead   ui.Sentence
	Means  []ui.Row
	Fields []ui.Field
	Folded []ui.Field // that are seldom changed
	Picks  []ui.Picks
	More   []ui.Hidden
	Action string // where the form goes
	Keep   string // the way back, in words
	Do     ui.Button
}

// The names of what travels with a confirmation.
const (
	markName  = "seen"
	valueName = "value"
)

func (o operation) hidden() []ui.Hidden {
	return append([]ui.Hidden{{Name: formKeyName, Value: o.Key}, {Name: markName, Value: string(o.Mark)}}, o.More...)
}

func (o operation) crumbs() []ui.Link {
	return append(runCrumbs(o.v, o.Run), ui.Link{Text: o.Crumb})
}

func (o operation) back() string { return o.v.path("runs", o.Run.ID.String()) }

func (o operation) faults() []ui.Fault {
	return ui.Faults(append(slices.Clone(o.Fields), o.Folded...)...)
}

// folded tells whether the fields that are seldom changed are open: where one is wrong.
func (o operation) folded() ui.Fold {
	return ui.Fold{ID: "more", Title: "Change what an earlier step gave", Answer: ui.Plural(int64(len(o.Folded)), "step", "steps"),
		Open: len(ui.Faults(o.Folded...)) > 0, Body: fieldsOf(o.Folded)}
}

// show draws the page.
func (o operation) show(status int) error {
	title := o.Title
	if faults := o.faults(); len(faults) > 0 {
		title = "Error: " + ui.Plural(int64(len(faults)), "thing", "things") + " to fix"
	}
	frame := o.v.frame(title, inRuns)
	frame.Narrow = true
	return o.v.page(status, frame, operationBody(o))
}

// hand is the person of the visit, with the key of the form that she sent.
func (v *visit) hand() engine.Hand {
	return engine.Hand{By: tenants.ByMember(v.me), Key: "form:" + v.me.User.ID.String() + ":" + v.FormValue(formKeyName)}
}

// planning plans an operation for its page.
type planning func(ctx context.Context, tx tenants.Tx) (operation, error)

// askFirst draws the page of an operation.
func (v *visit) askFirst(plan planning) error {
	var page operation
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		page, err = plan(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	page.Key = newFormKey()
	return page.show(http.StatusOK)
}

// doing does what the page asked about, and gives the run to look at then.
type doing func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error)

// operate does what the page asked about. Where things moved meanwhile nothing is done,
// and the page says what changed and what it would mean now; where what was typed cannot
// be taken, it says why.
func (v *visit) operate(plan planning, do doing) error {
	return v.operateTo(plan, func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (string, error) {
		to, err := do(ctx, tx, seen)
		return v.path("runs", to.String()), err
	})
}

// operateTo is operate for what leads to another page than a run's.
func (v *visit) operateTo(plan planning, do func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (string, error)) error {
	seen := engine.Mark(v.FormValue(markName))
	var to string
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
			if _, err := plan(ctx, tx); err != nil {
				return err
			}
			return trigger.ErrNoFormKey
		}
		var err error
		to, err = do(ctx, tx, seen)
		return err
	})
	fault := badField{valueName, valueFault(v.jsonValue(), err)}
	if bad, ok := errors.AsType[*badField](err); ok {
		fault = *bad
	}
	switch {
	case errors.Is(err, engine.ErrMoved), fault.fault != "":
		return v.askAnew(plan, seen, fault)
	case err != nil:
		return err
	}
	return v.redirect(to)
}

// askAnew draws the page once more, with what is wrong with what was typed, or with what
// moved since it was drawn.
func (v *visit) askAnew(plan planning, seen engine.Mark, bad badField) error {
	v.saved = false
	var page operation
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		page, err = plan(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	if bad.fault == "" {
		page.Key, page.Moved = newFormKey(), sinceWords(seen, page.Mark)
		return page.show(http.StatusConflict)
	}
	page.Key = v.FormValue(formKeyName)
	for _, fields := range [][]ui.Field{page.Fields, page.Folded} {
		for i := range fields {
			if fields[i].Name == bad.field {
				fields[i].Error = bad.fault
			}
		}
	}
	return page.show(http.StatusUnprocessableEntity)
}

// valueFault says what is wrong with a value that was typed; empty where nothing is.
func valueFault(value []byte, err error) string {
	if bad, ok := errors.AsType[*expr.BadJSON](err); ok {
		return badJSONWords(string(value), *bad)
	}
	if errors.Is(err, engine.ErrTooLarge) {
		return "This is too long. A value by hand can have up to 256 KB."
	}
	return ""
}

// sinceWords say what changed between two moments.
func sinceWords(then, now engine.Mark) ui.Sentence {
	words := "Something was done to this run after you opened this page"
	if a, b := then.Run(), now.Run(); a != b && a != "" {
		words = "After you opened this page the run went from " + string(a) + " to " + string(b)
	} else if a, b := then.Step(), now.Step(); a != b && a != "" {
		words = "After you opened this page the step went from " + string(a) + " to " + string(b)
	}
	return ui.Sentence{ui.Strong("Nothing was done."), ui.Plain(" " + words + ". Below is what it would mean now.")}
}

// jsonValue is what was typed into a field for a value.
func (v *visit) jsonValue() []byte {
	text := strings.TrimSpace(strings.ReplaceAll(v.FormValue(valueName), "\r\n", "\n"))
	if text == "" {
		text = "null"
	}
	return []byte(text)
}

// line is one thing that an operation means.
func line(parts ...ui.Span) ui.Row { return ui.Row{Reason: ui.Sentence(parts)} }
