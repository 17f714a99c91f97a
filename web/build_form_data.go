package web

import (
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// mostOffered bounds the values that one field offers; those from the nearest steps stay.
const mostOffered = 120

// dataAt are the values that a place of the form's step may read.
func (f *stepForm) dataAt(behind pipeline.ListKey) []pipeline.Datum {
	if known, ok := f.data[behind]; ok {
		return known
	}
	f.data[behind] = f.d.Sketch.DataAt(f.step, behind)
	return f.data[behind]
}

// offers are the values to insert, by what gives them.
func (f *stepForm) offers(behind pipeline.ListKey, fits func(pipeline.Datum) bool) []ui.DataGroup {
	var groups []ui.DataGroup
	data := f.dataAt(behind)
	var fitting []pipeline.Datum
	for _, one := range data {
		if f.d.Names.Of(one.Ref) != "" && (fits == nil || fits(one)) {
			fitting = append(fitting, one)
		}
	}
	if len(fitting) > mostOffered {
		fitting = append(fitting[:mostOffered/4:mostOffered/4], fitting[len(fitting)-mostOffered*3/4:]...)
	}
	for _, one := range fitting {
		if len(groups) == 0 || groups[len(groups)-1].From != f.from(one) {
			groups = append(groups, ui.DataGroup{From: f.from(one)})
		}
		last := &groups[len(groups)-1]
		last.Items = append(last.Items, ui.DataItem{Value: "[" + f.d.Names.Of(one.Ref) + "]", Text: f.offer(one)})
	}
	return groups
}

// from names the step that gives a value, with its number.
func (f *stepForm) from(one pipeline.Datum) string {
	if node := f.d.Sketch.Node(one.Step); node != nil && one.Step != "" {
		return node.Number + " " + one.From
	}
	return one.From
}

// offer is a value with what it is in the sample.
func (f *stepForm) offer(one pipeline.Datum) string {
	text := one.Label
	if shown, ok := f.d.Samples.shows(f.ctx, one.Ref); ok {
		text += ": " + firstOf(shown, 40)
	}
	if one.May {
		text += " (may be empty)"
	}
	return text
}

// insertNames are the button's value that asks to insert into a field, and the name of the
// choice beside it.
func insertNames(name string) (button, choice string) { return "insert:" + name, "data:" + name }

// withData lets values be inserted into a field.
func (f *stepForm) withData(field ui.Field, behind pipeline.ListKey, fits func(pipeline.Datum) bool) ui.Field {
	button, choice := insertNames(field.Name)
	field.After = ui.InsertData{Into: field.Anchor(), Name: choice, Button: button, About: field.Label, Groups: f.offers(behind, fits)}
	return field
}

// text is a text into which values are inserted. People read and type their names.
func (f *stepForm) text(field ui.Field, to *string) { f.add(f.textField(field, to, pipeline.ListRoot)) }

func (f *stepForm) textField(field ui.Field, to *string, behind pipeline.ListKey) ui.Field {
	if typed, ok := f.typed(field.Name); ok {
		*to = f.d.Names.StoredText(typed)
	}
	field = f.withData(f.field(field, f.d.Names.ShownText(*to)), behind, nil)
	if strings.Contains(*to, "{{") {
		field.After = templ.Join(field.After, f.reads(field.Label, *to, behind))
	}
	return field
}

// formula is a value that is picked, or worked out.
func (f *stepForm) formula(field ui.Field, to *string, behind pipeline.ListKey, fits func(pipeline.Datum) bool) {
	f.add(f.formulaField(field, to, behind, fits))
}

func (f *stepForm) formulaField(field ui.Field, to *string, behind pipeline.ListKey, fits func(pipeline.Datum) bool) ui.Field {
	if typed, ok := f.typed(field.Name); ok {
		*to = f.d.Names.StoredFormula(strings.TrimSpace(typed))
	}
	field = f.withData(f.field(field, f.d.Names.ShownFormula(*to)), behind, fits)
	if shown, ok := f.d.Samples.shows(f.ctx, *to); ok {
		field.After = templ.Join(field.After, gives(shown))
	}
	return field
}

// reads shows a text with its insertions as pills.
func (f *stepForm) reads(label, stored string, behind pipeline.ListKey) ui.Reads {
	out := ui.Reads{Label: label + " reads"}
	here := map[string]pipeline.Datum{}
	for _, one := range f.dataAt(behind) {
		here[one.Ref] = one
	}
	for at := 0; at < len(stored); {
		found := insertion.FindStringSubmatchIndex(stored[at:])
		if found == nil {
			out.Parts = append(out.Parts, ui.ReadPart{Text: stored[at:]})
			break
		}
		if found[0] > 0 {
			out.Parts = append(out.Parts, ui.ReadPart{Text: stored[at : at+found[0]]})
		}
		out.Parts = append(out.Parts, f.pill(strings.TrimSpace(stored[at+found[2]:at+found[3]]), here))
		at += found[1]
	}
	return out
}

// pill is one insertion: a value by its name, with what it is in the sample.
func (f *stepForm) pill(formula string, here map[string]pipeline.Datum) ui.ReadPart {
	part := ui.ReadPart{Pill: true, Text: f.d.Names.ShownFormula(formula)}
	compiled, err := expr.Compile(formula)
	if err != nil {
		part.Wrong, part.Note = true, "cannot be read"
		return part
	}
	for _, ref := range compiled.Refs() {
		datum, known := here[ref.String()]
		switch {
		case !known && (ref.Root == "steps" || ref.Root == "input"):
			part.Wrong, part.Note = !f.reaches(ref, here), ""
		case datum.May && !ref.Guarded:
			part.Unsure, part.Note = true, "may be empty"
		}
	}
	if len(compiled.Refs()) == 1 {
		if name := f.d.Names.Of(compiled.Refs()[0].String()); name != "" {
			part.Text = name
		}
	}
	if shown, ok := f.d.Samples.shows(f.ctx, formula); ok && !part.Wrong && part.Note == "" {
		part.Note = firstOf(shown, 40)
	}
	return part
}

// reaches tells whether a value sits inside of one that is offered.
func (f *stepForm) reaches(ref expr.Ref, here map[string]pipeline.Datum) bool {
	for end := len(ref.Path); end > 0; end-- {
		if _, ok := here[expr.Ref{Root: ref.Root, Path: ref.Path[:end]}.String()]; ok {
			return true
		}
	}
	if ref.Root != "steps" || len(ref.Path) != 1 {
		return false
	}
	for place := range here {
		if strings.HasPrefix(place, ref.String()+".") {
			return true
		}
	}
	return false
}

// insertSent puts a value that was chosen into its field, for browsers without scripts.
func (f *stepForm) insertSent() {
	name, ok := strings.CutPrefix(f.do, "insert:")
	if !ok {
		return
	}
	_, choice := insertNames(name)
	if picked := f.sent.Get(choice); picked != "" {
		before := f.sent.Get(name)
		if before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\n") {
			before += " "
		}
		f.sent.Set(name, before+picked)
	}
}

func isList(one pipeline.Datum) bool {
	return one.Field.Type == pipeline.TypeList || one.Field.Type == ""
}

func isNumber(one pipeline.Datum) bool {
	return one.Field.Type == pipeline.TypeNumber || one.Field.Type == ""
}

func isDate(one pipeline.Datum) bool {
	switch one.Field.Type {
	case pipeline.TypeDate, pipeline.TypeDateTime, "":
		return true
	}
	return false
}

func isFile(one pipeline.Datum) bool {
	return one.Field.Type == pipeline.TypeFile || one.Field.Type == pipeline.TypeList || one.Field.Type == ""
}
