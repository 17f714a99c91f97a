package web

import (
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// fieldTypes are the types that a field of a form or an answer may be given.
var fieldTypes = []ui.Option{
	{Value: "text", Label: "Text"}, {Value: "long", Label: "Long text"}, {Value: "number", Label: "Number"}, {Value: "money", Label: "Money"},
	{Value: "date", Label: "Date"}, {Value: "datetime", Label: "Date and time"}, {Value: "yesno", Label: "Yes or no"}, {Value: "choice", Label: "Choice"},
	{Value: "list:text", Label: "List of texts"}, {Value: "list:number", Label: "List of numbers"},
}

// fieldRows are fields: what people fill in, a model answers, or a reviewer may change.
func (f *stepForm) fieldRows(name, label, help string, files bool, to *[]pipeline.Field) {
	rows(f, rowList[pipeline.Field]{
		Name: name, Label: label, Help: help, Columns: []string{"Field", "Type", "Meaning"}, Shape: "fields", Add: "Add a field",
		Blank: func() pipeline.Field { return pipeline.Field{Type: pipeline.TypeText, Required: true} },
		Keep:  func(one pipeline.Field) bool { return one.Name != "" },
		Draw: func(f *stepForm, at string, row *pipeline.Field) ([]templ.Component, templ.Component) {
			return f.fieldCells(at, files, row)
		},
	}, to)
	seen := map[string]bool{}
	for i := range *to {
		(*to)[i].Name = unlike((*to)[i].Name, seen)
	}
}

// unlike keeps two fields that got the same name apart.
func unlike(name string, seen map[string]bool) string {
	base := name
	for n := 2; seen[name]; n++ {
		name = base + "_" + string(rune('0'+n%10))
		if n > 9 {
			break // the check tells
		}
	}
	seen[name] = true
	return name
}

// fieldCells are a field's label, type and meaning, and below what its type asks for. A
// field keeps its name in formulas when its label changes.
func (f *stepForm) fieldCells(at string, files bool, row *pipeline.Field) ([]templ.Component, templ.Component) {
	label := row.Title()
	cells := []templ.Component{f.cell(func() { f.words(ui.Field{Name: at + ".label", Label: "Field"}, &label) })}
	if f.sent != nil && label != row.Title() {
		row.Label = strings.TrimSpace(label)
		if row.Name == "" || row.Label == "" {
			row.Name = pipeline.NameOf(row.Label)
		}
	}
	kind := typeOf(*row)
	options := fieldTypes
	if files {
		options = append(options[:len(options):len(options)], ui.Option{Value: "file", Label: "File"})
	}
	if kind == "record" || kind == "list:record" || kind == "list" {
		options = append(options[:len(options):len(options)], ui.Option{Value: kind, Label: "Record (edit as text)"})
	}
	cells = append(cells,
		f.cell(func() {
			choose(f, ui.Field{Name: at + ".type", Label: "Type", Compact: true, None: "-", Options: options}, &kind)
		}),
		f.cell(func() { f.words(ui.Field{Name: at + ".help", Label: "Meaning", Optional: true}, &row.Help) }))
	if f.sent != nil && kind != typeOf(*row) {
		retype(row, kind)
	}
	return cells, f.fieldBelow(at, row)
}

// fieldBelow asks for what the type of a field needs.
func (f *stepForm) fieldBelow(at string, row *pipeline.Field) templ.Component {
	var parts []templ.Component
	switch row.Type {
	case pipeline.TypeChoice:
		choices := choicesText(row.Choices)
		parts = append(parts, f.cell(func() {
			f.words(ui.Field{Name: at + ".choices", Label: "Choices, apart by commas"}, &choices)
		}))
		if f.sent != nil && f.sent.Has(at+".choices") {
			row.Choices = choicesOf(choices, row.Choices)
		}
	case pipeline.TypeMoney:
		parts = append(parts, f.cell(func() {
			f.words(ui.Field{Name: at + ".currency", Label: "Currency, such as EUR; empty: any", Optional: true}, &row.Currency)
		}))
	}
	parts = append(parts, f.cell(func() { f.tick(ui.Field{Name: at + ".required", Label: "Has to be filled in"}, &row.Required) }))
	return several(parts)
}

// typeOf is a field's type as the form offers it.
func typeOf(field pipeline.Field) string {
	switch {
	case field.Type == pipeline.TypeText && field.Long:
		return "long"
	case field.Type == pipeline.TypeList && field.Of != nil:
		return "list:" + string(field.Of.Type)
	}
	return string(field.Type)
}

// retype gives a field another type, without what only the old one had.
func retype(row *pipeline.Field, kind string) {
	row.Long, row.Of, row.Fields, row.Choices, row.Currency = false, nil, nil, nil, ""
	inner, isList := strings.CutPrefix(kind, "list:")
	switch {
	case kind == "long":
		row.Type, row.Long = pipeline.TypeText, true
	case isList:
		row.Type, row.Of = pipeline.TypeList, &pipeline.Field{Type: pipeline.FieldType(inner)}
	default:
		row.Type = pipeline.FieldType(kind)
	}
}

func choicesText(choices []pipeline.Choice) string {
	var words []string
	for _, one := range choices {
		words = append(words, one.Title())
	}
	return strings.Join(words, ", ")
}

// choicesOf reads choices apart by commas. One that was there keeps its value.
func choicesOf(typed string, before []pipeline.Choice) []pipeline.Choice {
	var out []pipeline.Choice
	for word := range strings.SplitSeq(typed, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		one := pipeline.Choice{Value: word}
		for _, old := range before {
			if old.Title() == word {
				one = old
			}
		}
		out = append(out, one)
	}
	return out
}
