package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// maxRows bounds the rows of one list that a form may send.
const maxRows = 200

// rowList is a list of a step that is edited as a table.
type rowList[T any] struct {
	Name, Label, Help string
	Columns           []string
	Shape             string
	Add               string // "Add a field"
	First             bool   // an empty list begins with a row to fill in
	Ordered           bool   // rows can be moved up
	Blank             func() T
	Keep              func(T) bool // rows that are left empty are dropped
	// Draw draws a row, and what is to be below it, with names that begin with at.
	Draw func(f *stepForm, at string, row *T) (cells []templ.Component, below templ.Component)
}

// rows reads a list and draws it. Buttons of the list take a row away, move one up, or ask
// for one more.
func rows[T any](f *stepForm, l rowList[T], to *[]T) {
	drawn := slices.Clone(*to)
	if f.sent != nil && f.sent.Has(l.Name+".n") {
		drawn = sentRows(f, l, *to)
	} else if f.more == l.Name || l.First && len(drawn) == 0 {
		drawn = append(drawn, l.Blank())
	}
	grid := ui.Grid{
		ID: anchor(l.Name), Label: l.Label, Help: l.Help, Columns: l.Columns, Shape: l.Shape, Error: f.faults[l.Name],
		Hidden: []ui.Hidden{{Name: l.Name + ".n", Value: strconv.Itoa(len(drawn))}},
		Add:    ui.Button{Text: l.Add, Kind: ui.Quiet, Little: true, Icon: ui.IconPlus, Name: "do", Value: "more:" + l.Name},
	}
	var kept []T
	for i := range drawn {
		at := fmt.Sprintf("%s[%d]", l.Name, i)
		cells, below := l.Draw(f, at, &drawn[i])
		grid.Rows = append(grid.Rows, ui.GridRow{ID: anchor(at), Cells: cells, Below: below, Tools: rowTools(l.Label, at, i, l.Ordered)})
		if l.Keep(drawn[i]) && f.do != "remove:"+at {
			kept = append(kept, drawn[i])
			if f.do == "up:"+at && len(kept) > 1 {
				kept[len(kept)-1], kept[len(kept)-2] = kept[len(kept)-2], kept[len(kept)-1]
			}
		}
	}
	if f.sent != nil {
		*to = kept
	}
	grid.Flags = f.flags(l.Name)
	f.add(grid)
}

// sentRows are as many rows as were sent, each with what the stored one at its place holds
// besides what the form shows.
func sentRows[T any](f *stepForm, l rowList[T], stored []T) []T {
	n, err := strconv.Atoi(f.sent.Get(l.Name + ".n"))
	if err != nil || n < 0 || n > maxRows {
		n = 0
		f.faulty(l.Name, "%s: the list cannot be read. Load the page again.", l.Label)
	}
	out := make([]T, n)
	for i := range out {
		if out[i] = l.Blank(); i < len(stored) {
			out[i] = stored[i]
		}
	}
	return out
}

func rowTools(label, at string, i int, ordered bool) []ui.GridTool {
	var tools []ui.GridTool
	if ordered && i > 0 {
		tools = append(tools, ui.GridTool{Icon: ui.IconUp, Text: fmt.Sprintf("Move row %d of “%s” up", i+1, label), Name: "do", Value: "up:" + at})
	}
	return append(tools, ui.GridTool{Icon: ui.IconTrash, Text: fmt.Sprintf("Remove row %d of “%s”", i+1, label), Name: "do", Value: "remove:" + at})
}

// cell draws what describe adds to the form as a cell: bare, its label spoken only.
func (f *stepForm) cell(describe func()) templ.Component {
	var out []templ.Component
	for _, part := range f.apart(describe) {
		if field, ok := part.(ui.Field); ok {
			part = ui.Bare(field)
		}
		out = append(out, part)
	}
	return several(out)
}

// valueRows are named formulas.
func (f *stepForm) valueRows(name, label, help, add string, behind pipeline.ListKey, to *[]pipeline.Value) {
	rows(f, rowList[pipeline.Value]{
		Name: name, Label: label, Help: help, Columns: []string{"Name", "Value"}, Shape: "pairs", Add: add, First: true,
		Blank: func() pipeline.Value { return pipeline.Value{} },
		Keep:  func(v pipeline.Value) bool { return v.Name != "" || v.Formula != "" },
		Draw: func(f *stepForm, at string, row *pipeline.Value) ([]templ.Component, templ.Component) {
			return []templ.Component{
				f.cell(func() { f.named(ui.Field{Name: at + ".name", Label: "Name"}, &row.Name) }),
				f.cell(func() { f.formula(ui.Field{Name: at + ".formula", Label: "Value"}, &row.Formula, behind, nil) }),
			}, nil
		},
	}, to)
}

// named is a name that formulas use. People may type it as they like; it is kept in small
// letters and with _ for spaces.
func (f *stepForm) named(field ui.Field, to *string) {
	if typed, ok := f.typed(field.Name); ok && typed != *to {
		*to = pipeline.NameOf(typed)
	}
	f.add(f.field(field, *to))
}

// textRows are texts with insertions, one a row.
func (f *stepForm) textRows(name, label, help, add string, first bool, to *[]string) {
	rows(f, rowList[string]{
		Name: name, Label: label, Help: help, Columns: []string{""}, Shape: "one", Add: add, First: first,
		Blank: func() string { return "" }, Keep: func(s string) bool { return strings.TrimSpace(s) != "" },
		Draw: func(f *stepForm, at string, row *string) ([]templ.Component, templ.Component) {
			return []templ.Component{f.cell(func() { f.text(ui.Field{Name: at, Label: label}, row) })}, nil
		},
	}, to)
}

// people are those who are asked.
func (f *stepForm) people(name, label, help string, to *[]pipeline.Person) {
	rows(f, rowList[pipeline.Person]{
		Name: name, Label: label, Help: help, Columns: []string{"Who", "Address or name"}, Shape: "even", Add: "Ask somebody else, too", First: true,
		Blank: func() pipeline.Person { return pipeline.Person{} },
		Keep:  func(p pipeline.Person) bool { return p != pipeline.Person{} },
		Draw: func(f *stepForm, at string, row *pipeline.Person) ([]templ.Component, templ.Component) {
			who, text := whoOf(*row)
			if typed, ok := f.typed(at + ".who"); ok {
				who = typed
			}
			address := f.cell(func() {
				f.text(ui.Field{Name: at + ".email", Label: "Address or name", Placeholder: "ana@company.example"}, &text)
			})
			choice := f.cell(func() {
				choose(f, ui.Field{Name: at + ".who", Label: "Who", Compact: true, None: "Choose who", Options: whoOptions}, &who)
			})
			if f.sent != nil {
				*row = personOf(who, text)
			}
			if who != "email" && who != "user" && who != "" {
				address = several(nil)
			}
			return []templ.Component{choice, address}, nil
		},
	}, to)
}

var whoOptions = []ui.Option{
	{Value: "everyone", Label: "Everybody who may decide"}, {Value: "role:reviewer", Label: "All reviewers"}, {Value: "role:owner", Label: "All owners"},
	{Value: "role:admin", Label: "All admins"}, {Value: "role:builder", Label: "All builders"}, {Value: "role:finance", Label: "All of finance"},
	{Value: "role:auditor", Label: "All auditors"}, {Value: "role:viewer", Label: "All viewers"},
	{Value: "user", Label: "A member, by address"}, {Value: "email", Label: "An e-mail address"},
}

func whoOf(p pipeline.Person) (who, text string) {
	switch {
	case p.Everyone:
		return "everyone", ""
	case p.Role != "":
		return "role:" + p.Role, ""
	case p.User != "":
		return "user", p.User
	case p.Email != "":
		return "email", p.Email
	}
	return "", ""
}

// personOf takes an address that was typed without a choice for what it is.
func personOf(who, text string) pipeline.Person {
	role, isRole := strings.CutPrefix(who, "role:")
	switch {
	case who == "everyone":
		return pipeline.Person{Everyone: true}
	case isRole:
		return pipeline.Person{Role: role}
	case who == "user":
		return pipeline.Person{User: text}
	}
	return pipeline.Person{Email: text}
}
