package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// shared is what every kind of step has: what is done if it fails, how often it is tried,
// its time limit, a note.
func (f *stepForm) shared(step *pipeline.Step) {
	f.fold("fails", "If it fails", failsWords(step), false, func() {
		f.catches(step)
		f.retry(step)
	})
	f.fold("note-fold", "Note and time limit", "", false, func() {
		f.words(ui.Field{Kind: ui.LongField, Name: "note", Label: "Note for those who edit", Optional: true}, &step.Note)
		f.span(ui.Field{Name: "timeout", Label: "Longest time", Help: "Of one try. Empty: the limit of its kind.", Optional: true}, &step.Timeout)
	})
}

// failsWords answer the heading.
func failsWords(step *pipeline.Step) string {
	if len(step.OnError) == 0 {
		return "the run fails"
	}
	return ui.Plural(int64(len(step.OnError)), "answer", "answers")
}

func (f *stepForm) retry(step *pipeline.Step) {
	retry := pipeline.Retry{}
	if step.Retry != nil {
		retry = *step.Retry
	}
	f.oneLine("retry", "Tries", "Of failures that may pass by themselves.", func() {
		f.whole(ui.Field{Name: "retry.attempts", Label: "In all", Optional: true, Placeholder: "as usual"}, &retry.Attempts)
		f.span(ui.Field{Name: "retry.first", Label: "First pause", Optional: true, Placeholder: "2s"}, &retry.First)
		f.span(ui.Field{Name: "retry.longest", Label: "Longest pause", Optional: true, Placeholder: "5m"}, &retry.Longest)
	})
	if f.sent != nil && f.sent.Has("retry.attempts") {
		step.Retry = nil
		if retry.Attempts != 0 || retry.First != nil || retry.Longest != nil {
			step.Retry = &retry
		}
	}
}

// catches are what is done about failures; the first that fits counts.
func (f *stepForm) catches(step *pipeline.Step) {
	rows(f, rowList[pipeline.Catch]{
		Name: "on_error", Label: "What is done about a failure", Help: "The first line that fits counts. Without one the run fails.",
		Columns: []string{"What is done", "Of which failures; empty: all"}, Shape: "pairs", Add: "Add an answer to a failure", Ordered: true,
		Blank: func() pipeline.Catch { return pipeline.Catch{} },
		Keep:  func(one pipeline.Catch) bool { return one.Do != "" },
		Draw: func(f *stepForm, at string, row *pipeline.Catch) ([]templ.Component, templ.Component) {
			return f.catch(at, row)
		},
	}, &step.OnError)
}

func (f *stepForm) catch(at string, row *pipeline.Catch) ([]templ.Component, templ.Component) {
	classes := strings.Join(row.Classes, ", ")
	cells := []templ.Component{
		f.cell(func() {
			choose(f, ui.Field{Name: at + ".do", Label: "What is done", Compact: true, None: "Nothing", Options: []ui.Option{
				{Value: string(pipeline.CatchSteps), Label: "Run other steps"}, {Value: string(pipeline.CatchDefault), Label: "Go on with a value"},
				{Value: string(pipeline.CatchAsk), Label: "Ask a person"}, {Value: string(pipeline.CatchFail), Label: "Fail as something else"},
			}}, &row.Do)
		}),
		f.cell(func() {
			f.words(ui.Field{Name: at + ".classes", Label: "Of which failures", Optional: true, Placeholder: "timeout, exception"}, &classes)
		}),
	}
	if f.sent != nil {
		row.Classes = nil
		for one := range strings.SplitSeq(classes, ",") {
			if one = strings.TrimSpace(one); one != "" {
				row.Classes = append(row.Classes, one)
			}
		}
	}
	return cells, several(f.apart(func() { f.catchBelow(at, row) }))
}

// catchBelow asks for what the answer to a failure needs. Its steps are in the outline.
func (f *stepForm) catchBelow(at string, row *pipeline.Catch) {
	switch row.Do {
	case pipeline.CatchDefault:
		f.plainValue(ui.Field{Name: at + ".default", Label: "Value to go on with", Help: `A text, a number, or a record such as {"total": 0}.`}, &row.Default)
	case pipeline.CatchAsk:
		ask := pipeline.Review{}
		if row.Ask != nil {
			ask = *row.Ask
		}
		f.text(ui.Field{Name: at + ".ask.question", Label: "Question", Help: "A yes goes on with the fields that may be changed; a no lets it fail."}, &ask.Question)
		f.people(at+".ask.people", "Who is asked?", "", &ask.People)
		if f.sent != nil {
			row.Ask = &ask
		}
	case pipeline.CatchFail:
		f.named(ui.Field{Name: at + ".exception", Label: "As the exception", Optional: true, Help: "Empty: as it failed."}, &row.Exception)
		f.text(ui.Field{Name: at + ".message", Label: "What people are told", Optional: true}, &row.Message)
	}
}

// plainValue is JSON, or a text that is none.
func (f *stepForm) plainValue(field ui.Field, to *json.RawMessage) {
	shown := string(*to)
	if text, err := expr.DecodeJSON(*to); err == nil {
		if words, ok := text.(string); ok {
			shown = words
		}
	}
	if typed, ok := f.typed(field.Name); ok {
		*to = jsonOf(typed)
	}
	f.add(f.field(field, shown))
}

func jsonOf(typed string) json.RawMessage {
	typed = strings.TrimSpace(typed)
	if typed == "" {
		return nil
	}
	if _, err := expr.DecodeJSON([]byte(typed)); err == nil {
		return json.RawMessage(typed)
	}
	encoded, err := expr.EncodeJSON(expr.Plain(typed))
	if err != nil {
		return json.RawMessage(fmt.Sprintf("%q", ""))
	}
	return encoded
}
