package web

import (
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

var testOptions = []ui.Option{
	{Value: string(pipeline.TestIs), Label: "is"}, {Value: string(pipeline.TestIsNot), Label: "is not"},
	{Value: string(pipeline.TestMore), Label: "is more than"}, {Value: string(pipeline.TestAtLeast), Label: "is at least"},
	{Value: string(pipeline.TestLess), Label: "is less than"}, {Value: string(pipeline.TestAtMost), Label: "is at most"},
	{Value: string(pipeline.TestContains), Label: "contains"}, {Value: string(pipeline.TestLacks), Label: "does not contain"},
	{Value: string(pipeline.TestFilled), Label: "is filled in"}, {Value: string(pipeline.TestEmpty), Label: "is empty"},
}

// condition is a formula that gives yes or no: as tests of values, or written out where it
// says more than those can.
func (f *stepForm) condition(name, label, help string, to *string, behind pipeline.ListKey) {
	stored, reads := pipeline.ReadCondition(*to)
	written := ""
	if !reads {
		written = f.d.Names.ShownFormula(*to)
	}
	typed, sent := f.typed(name)
	if sent {
		written = typed
	}
	parts := f.apart(func() { f.tests(name, &stored, behind) })
	if sent {
		if *to = stored.Formula(); strings.TrimSpace(typed) != "" {
			*to = f.d.Names.StoredFormula(strings.TrimSpace(typed))
		}
	}
	parts = append(parts, f.writtenOut(name, written, behind))
	if shown, ok := f.d.Samples.shows(f.ctx, *to); ok {
		parts = append(parts, gives(shown))
	}
	f.add(withChildren(ui.Fieldset{ID: anchor(name) + "-is", Label: label, Help: help, Flags: f.flags(name)}, several(parts)))
}

// writtenOut is the formula behind a condition, for what tests cannot say.
func (f *stepForm) writtenOut(name, written string, behind pipeline.ListKey) templ.Component {
	field := ui.Field{
		Kind: ui.LongField, Name: name, Label: "Formula", Rows: 2, Optional: true, Value: written, Error: f.faults[name],
		Help: "Where it is filled in, it counts in place of the lines above.",
	}
	return ui.Fold{ID: anchor(name) + "-formula", Title: "Write a formula", Open: written != "", Body: f.withData(field, behind, nil)}
}

// tests are the lines of a condition: a value, how it is tested, and what with.
func (f *stepForm) tests(name string, c *pipeline.Condition, behind pipeline.ListKey) {
	rows(f, rowList[pipeline.Test]{
		Name: name + ".tests", Label: "Tests", Columns: []string{"Value", "", "With"}, Shape: "tests", Add: "Add a line", First: true,
		Blank: func() pipeline.Test { return pipeline.Test{Op: pipeline.TestIs} },
		Keep:  func(t pipeline.Test) bool { return t.Value != "" },
		Draw: func(f *stepForm, at string, row *pipeline.Test) ([]templ.Component, templ.Component) {
			return f.test(at, row, behind), nil
		},
	}, &c.Tests)
	if len(c.Tests) > 1 || f.sent.Has(name+".any") {
		any := map[bool]string{true: "any", false: "all"}[c.Any]
		choose(f, ui.Field{Name: name + ".any", Label: "It holds if", Compact: true, None: "-", Options: []ui.Option{
			{Value: "all", Label: "all lines hold"}, {Value: "any", Label: "any line holds"},
		}}, &any)
		c.Any = any == "any"
	}
}

func (f *stepForm) test(at string, row *pipeline.Test, behind pipeline.ListKey) []templ.Component {
	value, with := pipeline.ShownTest(*row, f.datum(bareValue(*row), behind), f.d.Names)
	op := row.Op
	cells := []templ.Component{
		f.cell(func() { f.pick(ui.Field{Name: at + ".value", Label: "Value"}, &value, behind) }),
		f.cell(func() {
			choose(f, ui.Field{Name: at + ".op", Label: "Test", Compact: true, None: "-", Options: testOptions}, &op)
		}),
		f.cell(func() { f.words(ui.Field{Name: at + ".with", Label: "With", Optional: true}, &with) }),
	}
	if f.sent != nil {
		if *row = (pipeline.Test{Op: op}); value != "" {
			*row = pipeline.TypedTest(f.datum(value, behind), op, with, f.d.Names)
		}
	}
	return cells
}

// bareValue is the place that a test reads.
func bareValue(t pipeline.Test) string {
	return strings.TrimSuffix(strings.TrimPrefix(t.Value, "timestamp("), ")")
}

// datum is a value by its place; one that is not offered has no type.
func (f *stepForm) datum(ref string, behind pipeline.ListKey) pipeline.Datum {
	for _, one := range f.dataAt(behind) {
		if one.Ref == ref {
			return one
		}
	}
	return pipeline.Datum{Ref: ref}
}

// pick is a choice among the values that a place may read.
func (f *stepForm) pick(field ui.Field, to *string, behind pipeline.ListKey) {
	field.Compact, field.None, field.Kind = true, "Choose a value", ui.ChoiceField
	offered := false
	for _, group := range f.offers(behind, nil) {
		for _, item := range group.Items {
			ref := f.d.Names.StoredFormula(item.Value)
			offered = offered || ref == *to
			field.Options = append(field.Options, ui.Option{Value: ref, Label: fmt.Sprintf("%s › %s", group.From, item.Text)})
		}
	}
	if !offered && *to != "" {
		field.Options = append(field.Options, ui.Option{Value: *to, Label: f.d.Names.ShownFormula(*to)})
	}
	if typed, ok := f.typed(field.Name); ok {
		*to = ""
		for _, option := range field.Options {
			if option.Value == typed {
				*to = typed
			}
		}
	}
	f.add(f.field(field, *to))
}
