package web

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// stepForm is the form of one step, described once: each of its methods puts what was sent
// into the setting it is given, where something was sent, and draws the setting with what
// was typed or what is stored. Names of fields are places in the document, such as
// "with.prompt", and so are those of problems, which are told beside their field.
type stepForm struct {
	d     *draftView
	ctx   context.Context
	step  string     // id; empty for the settings of the pipeline itself
	sent  url.Values // nil: nothing was sent
	parts []templ.Component

	faults map[string]string // by name: what cannot be kept at all
	told   map[string]bool   // names of fields whose problems have found a place
	quiet  bool              // a step that was just added is not told what it lacks
	more   string            // list that one more row was asked for
	do     string            // the button that was pressed
	data   map[pipeline.ListKey][]pipeline.Datum
}

func (d *draftView) form(step string, sent url.Values) *stepForm {
	return &stepForm{
		d: d, ctx: d.v.ctx(), step: step, sent: sent, do: sent.Get("do"), faults: map[string]string{}, told: map[string]bool{},
		data: map[pipeline.ListKey][]pipeline.Datum{}, more: d.v.QueryParam("more"), quiet: d.v.QueryParam("new") != "",
	}
}

func (f *stepForm) add(part templ.Component) { f.parts = append(f.parts, part) }

// apart collects what describe draws, to stand elsewhere.
func (f *stepForm) apart(describe func()) []templ.Component {
	before := f.parts
	f.parts = nil
	describe()
	apart := f.parts
	f.parts = before
	return apart
}

// fold puts settings that few need behind a heading.
func (f *stepForm) fold(id, title, answer string, open bool, describe func()) {
	parts := f.apart(describe)
	f.add(ui.Fold{ID: id, Title: title, Answer: answer, Open: open || f.anyFault(), Body: several(parts)})
}

// oneLine puts short fields beside each other, as one sentence.
func (f *stepForm) oneLine(name, label, help string, describe func()) {
	parts := f.apart(describe)
	f.add(withChildren(ui.Fieldset{ID: anchor(name), Label: label, Help: help}, withChildren(ui.Inline{}, several(parts))))
}

func (f *stepForm) anyFault() bool { return len(f.faults) > 0 }

// faulty notes what cannot be kept of what was typed.
func (f *stepForm) faulty(name, format string, args ...any) {
	if _, told := f.faults[name]; !told {
		f.faults[name] = fmt.Sprintf(format, args...)
	}
}

// typed is what was sent for a field, line ends as documents have them.
func (f *stepForm) typed(name string) (string, bool) {
	if f.sent == nil || !f.sent.Has(name) {
		return "", false
	}
	return strings.ReplaceAll(f.sent.Get(name), "\r\n", "\n"), true
}

// field completes a field with its value, its fault, and what checks say of it.
func (f *stepForm) field(field ui.Field, shown string) ui.Field {
	field.Value = shown
	if typed, ok := f.typed(field.Name); ok {
		field.Value = typed
	}
	field.Error = f.faults[field.Name]
	field.Flags = append(field.Flags, f.flags(field.Name)...)
	return field
}

// flags are what checks say of a field, and of what is in it.
func (f *stepForm) flags(name string) []ui.Flag {
	f.told[name] = true
	var out []ui.Flag
	for _, problem := range f.d.Problems {
		if problem.Step == f.step && (problem.Field == name || strings.HasPrefix(problem.Field, name+"[")) && !f.toldWithin(name, problem.Field) {
			out = append(out, ui.Flag{Status: severityStatus(problem.Severity), Text: f.d.readableProblem(sentenceStart(problem.Says))})
		}
	}
	if f.quiet {
		return nil
	}
	return out
}

// toldWithin tells whether a problem has a field of its own inside a list.
func (f *stepForm) toldWithin(list, field string) bool {
	for told := range f.told {
		if told != list && strings.HasPrefix(told, list+"[") && (field == told || strings.HasPrefix(field, told+"[")) {
			return true
		}
	}
	return false
}

func severityStatus(severity pipeline.Severity) ui.Status {
	switch severity {
	case pipeline.Blocks:
		return ui.Failed
	case pipeline.Warning:
		return ui.Stuck
	}
	return ""
}

// words is a text of one line, or of several, that nothing is inserted into.
func (f *stepForm) words(field ui.Field, to *string) {
	if typed, ok := f.typed(field.Name); ok {
		*to = typed
	}
	f.add(f.field(field, *to))
}

// tick is a setting that is on or off.
func (f *stepForm) tick(field ui.Field, to *bool) {
	if f.sent != nil {
		*to = f.sent.Get(field.Name) == "true"
	}
	field.Kind = ui.TickField
	f.add(f.field(field, strconv.FormatBool(*to)))
}

// choose is one of a few words of the document.
func choose[T ~string](f *stepForm, field ui.Field, to *T) {
	if typed, ok := f.typed(field.Name); ok {
		*to = T(typed)
	}
	if field.Kind == "" {
		field.Kind = ui.ChoiceField
	}
	if current := string(*to); current != "" && !slices.ContainsFunc(field.Options, func(o ui.Option) bool { return o.Value == current }) {
		field.Options = append(field.Options, ui.Option{Value: current, Label: current})
	}
	f.add(f.field(field, string(*to)))
}

// whole is a number without decimals; nothing typed is 0.
func (f *stepForm) whole(field ui.Field, to *int) {
	if typed, ok := f.typed(field.Name); ok {
		n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(typed), ",", ""))
		switch {
		case strings.TrimSpace(typed) == "":
			*to = 0
		case err != nil:
			f.faulty(field.Name, "Write a whole number for “%s”.", field.Label)
		default:
			*to = n
		}
	}
	field.Kind = ui.NumberField
	shown := ""
	if *to != 0 {
		shown = strconv.Itoa(*to)
	}
	f.add(f.field(field, shown))
}

// dollars is an amount of money; nothing typed is 0.
func (f *stepForm) dollars(field ui.Field, to *int64) {
	shown := shownDollars(*to)
	if typed, ok := f.typed(field.Name); ok && typed != shown { // what is shown may be rounded
		*to = f.amount(field, typed)
		shown = shownDollars(*to)
	}
	field.Kind, field.Currency = ui.MoneyField, "USD"
	f.add(f.field(field, shown))
}

func shownDollars(micros int64) string {
	if micros == 0 {
		return ""
	}
	return strings.TrimPrefix(ledger.Micros(micros).String(), "$")
}

func (f *stepForm) amount(field ui.Field, typed string) int64 {
	typed = strings.TrimPrefix(strings.TrimSpace(typed), "$")
	if typed == "" {
		return 0
	}
	amount, err := ledger.ParseDollars(typed)
	if err != nil {
		f.faulty(field.Name, "Write an amount in dollars for “%s”, such as 0.50.", field.Label)
	}
	return int64(amount)
}

// span is a span of time; nothing typed is none.
func (f *stepForm) span(field ui.Field, to **pipeline.Duration) {
	if typed, ok := f.typed(field.Name); ok {
		*to = nil
		if strings.TrimSpace(typed) != "" {
			span, err := pipeline.ParseDuration(typed)
			if err != nil {
				f.faulty(field.Name, "“%s” is not a span of time. Write one like 90s, 15m, 2h or 3d.", firstOf(typed, 40))
			}
			*to = &span
		}
	}
	shown := ""
	if *to != nil {
		shown = (*to).String()
	}
	if field.Placeholder == "" {
		field.Placeholder = "such as 15m, 2h or 3d"
	}
	f.add(f.field(field, shown))
}

// several draws components one after the other.
func several(parts []templ.Component) templ.Component { return templ.Join(parts...) }

// withChildren puts components inside another.
func withChildren(around, inside templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return around.Render(templ.WithChildren(ctx, inside), w)
	})
}

// anchor is the id of the field with a name.
func anchor(name string) string { return ui.Field{Name: name}.Anchor() }

// sentenceStart makes the first letter of a sentence large.
func sentenceStart(sentence string) string {
	for i, r := range sentence {
		if i == 0 {
			return strings.ToUpper(string(r)) + sentence[len(string(r)):]
		}
	}
	return sentence
}
