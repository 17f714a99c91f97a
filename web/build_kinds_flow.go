package web

import (
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// branch is a decision: its cases in order, each with a condition.
func (f *stepForm) branch(with *pipeline.Branch) {
	taken := map[string]bool{"otherwise": true, "steps": true}
	for _, one := range with.Cases {
		taken[one.ID] = true
	}
	rows(f, rowList[pipeline.Case]{
		Name: "with.cases", Label: "Ways, in order", Help: "The first whose condition holds is taken; where none does, “Otherwise”. The steps of each are added in the outline.",
		Shape: "cases", Add: "Add a way", First: true, Ordered: true,
		Blank: func() pipeline.Case { return pipeline.Case{} },
		Keep:  func(one pipeline.Case) bool { return one.Name != "" || one.When != "" || len(one.Steps) > 0 },
		Draw: func(f *stepForm, at string, row *pipeline.Case) ([]templ.Component, templ.Component) {
			cell := f.cell(func() { f.words(ui.Field{Name: at + ".name", Label: "Name, such as “If yes”"}, &row.Name) })
			below := f.apart(func() { f.condition(at+".when", "Taken if", "", &row.When, pipeline.ListRoot) })
			if f.sent != nil && row.ID == "" {
				row.ID = pipeline.FreshName(row.Name, "way", taken)
			}
			return []templ.Component{cell}, several(below)
		},
	}, &with.Cases)
}

func (f *stepForm) repeat(with *pipeline.Repeat) {
	f.condition("with.until", "Until", "Looked at behind each round; the steps inside are in the outline.", &with.Until, pipeline.ListSteps)
	f.oneLine("with.limits", "At most", "All three bound it.", func() {
		f.whole(ui.Field{Name: "with.max_rounds", Label: "Rounds"}, &with.MaxRounds)
		f.dollars(ui.Field{Name: "with.max_cost", Label: "AI cost"}, &with.MaxCost)
		limit := &with.MaxTime
		f.span(ui.Field{Name: "with.max_time", Label: "Time", Placeholder: "1h"}, &limit)
		if limit != nil {
			with.MaxTime = *limit
		} else {
			f.faulty("with.max_time", "Say how long it may take, such as 20m.")
		}
	})
	choose(f, ui.Field{Name: "with.at_limit", Label: "At a limit", Compact: true, None: "-", Options: []ui.Option{
		{Value: string(pipeline.LimitFail), Label: "Fail"}, {Value: string(pipeline.LimitBest), Label: "Go on with the best round so far"},
		{Value: string(pipeline.LimitAsk), Label: "Ask a person"},
	}}, &with.AtLimit)
	f.formula(ui.Field{Name: "with.score", Label: "How good is a round?", Help: "A number; the higher the better. Needed for the best round.", Optional: true}, &with.Score, pipeline.ListSteps, isNumber)
	if with.AtLimit == pipeline.LimitAsk || len(with.Ask) > 0 {
		f.people("with.ask", "Who is asked at a limit?", "", &with.Ask)
	}
	f.formula(ui.Field{Name: "with.result", Label: "Result of a round", Help: "Empty: what its last step gives.", Optional: true}, &with.Result, pipeline.ListSteps, nil)
}

func (f *stepForm) each(with *pipeline.Each) {
	f.formula(ui.Field{Name: "with.items", Label: "For each of", Help: "A list: of the input, or what an earlier step gave."}, &with.Items, pipeline.ListRoot, isList)
	f.oneLine("with.limits", "How", "", func() {
		f.whole(ui.Field{Name: "with.at_once", Label: "At a time"}, &with.AtOnce)
		f.whole(ui.Field{Name: "with.max_failed", Label: "So many may fail", Placeholder: "0", Optional: true}, &with.MaxFailed)
	})
	f.formula(ui.Field{Name: "with.result", Label: "Result of an item", Help: "Empty: what its last step gives.", Optional: true}, &with.Result, pipeline.ListSteps, nil)
}

func (f *stepForm) parallel(with *pipeline.Parallel) {
	taken := map[string]bool{"otherwise": true, "steps": true}
	for _, one := range with.Branches {
		taken[one.ID] = true
	}
	rows(f, rowList[pipeline.Lane]{
		Name: "with.branches", Label: "Branches", Help: "Their steps are added in the outline.", Columns: []string{"Name", "Result; empty: what the last step gives"}, Shape: "pairs", Add: "Add a branch",
		Blank: func() pipeline.Lane { return pipeline.Lane{} },
		Keep:  func(one pipeline.Lane) bool { return one.Name != "" || len(one.Steps) > 0 },
		Draw: func(f *stepForm, at string, row *pipeline.Lane) ([]templ.Component, templ.Component) {
			name := f.cell(func() { f.words(ui.Field{Name: at + ".name", Label: "Name"}, &row.Name) })
			behind := pipeline.ListKey(row.ID)
			result := f.cell(func() {
				f.formula(ui.Field{Name: at + ".result", Label: "Result", Optional: true}, &row.Result, behind, nil)
			})
			if f.sent != nil && row.ID == "" {
				row.ID = pipeline.FreshName(row.Name, "branch", taken)
			}
			return []templ.Component{name, result}, nil
		},
	}, &with.Branches)
	f.oneLine("with.joins", "Goes on", "", func() {
		choose(f, ui.Field{Name: "with.wait_for", Label: "When", Compact: true, None: "all branches are done", Options: []ui.Option{
			{Value: string(pipeline.WaitFirst), Label: "the first has a good result"},
		}}, &with.WaitFor)
		choose(f, ui.Field{Name: "with.combine", Label: "With", Compact: true, None: "all results", Options: []ui.Option{
			{Value: string(pipeline.CombineMajority), Label: "what more than half of them say"}, {Value: string(pipeline.CombineBest), Label: "the best result, by a score"},
		}}, &with.Combine)
	})
	f.formula(ui.Field{Name: "with.score", Label: "How good is a result?", Help: "A number; the higher the better. Needed for the best result.", Optional: true}, &with.Score, pipeline.ListRoot, nil)
	if with.WaitFor == pipeline.WaitFirst || with.Good != "" {
		f.condition("with.good", "A result is good if", "", &with.Good, pipeline.ListRoot)
	}
}

func (f *stepForm) wait(with *pipeline.Wait) {
	f.span(ui.Field{Name: "with.for", Label: "How long", Optional: true, Needed: "or a date"}, &with.For)
	f.formula(ui.Field{Name: "with.until", Label: "Until the date", Optional: true, Needed: "or how long"}, &with.Until, pipeline.ListRoot, isDate)
}

func (f *stepForm) event(with *pipeline.Event) {
	f.words(ui.Field{Name: "with.name", Label: "Event", Help: "The name that the sender uses, such as “payment received”."}, &with.Name)
	f.text(ui.Field{Name: "with.key", Label: "Only where its key is", Help: "Such as the number of the order. Empty: any.", Optional: true}, &with.Key)
	f.oneLine("with.limit", "Time limit", "", func() {
		f.span(ui.Field{Name: "with.deadline", Label: "At most", Optional: true}, &with.Deadline)
		choose(f, ui.Field{Name: "with.on_deadline", Label: "If it never comes", Compact: true, None: "The step fails", Options: []ui.Option{
			{Value: string(pipeline.DeadlineContinue), Label: "The run goes on, and knows"},
		}}, &with.OnDeadline)
	})
	f.tick(ui.Field{Name: "with.callback", Label: "Another system answers at an address of its own, which earlier steps hand on"}, &with.Callback)
}

func (f *stepForm) emit(with *pipeline.Emit) {
	f.words(ui.Field{Name: "with.name", Label: "Event", Help: "The name that the waiting side uses."}, &with.Name)
	f.text(ui.Field{Name: "with.key", Label: "Key", Help: "What the waiting side must match, such as the number of the order.", Optional: true}, &with.Key)
	f.valueRows("with.data", "Data it carries", "", "Add a value", pipeline.ListRoot, &with.Data)
}

func (f *stepForm) stop(with *pipeline.Stop) {
	choose(f, ui.Field{Name: "with.outcome", Label: "How does the run end?", Compact: true, None: "It is done", Options: []ui.Option{
		{Value: string(pipeline.StopRaise), Label: "With an exception, which steps around may handle"},
	}}, &with.Outcome)
	if with.Outcome == pipeline.StopRaise || with.Exception != "" {
		f.named(ui.Field{Name: "with.exception", Label: "Exception", Help: "Such as regulatory_hold."}, &with.Exception)
	}
	f.text(ui.Field{Name: "with.message", Label: "What people are told", Optional: true}, &with.Message)
}

// child starts another pipeline, whose start form is filled in by values of this one.
func (f *stepForm) child(with *pipeline.Child) {
	var options []ui.Option
	for _, one := range f.d.Others {
		if one.ID != f.d.Draft.ID {
			options = append(options, ui.Option{Value: one.ID.String(), Label: one.Name})
		}
	}
	choose(f, ui.Field{Name: "with.pipeline", Label: "Pipeline", Compact: true, None: "Choose a pipeline", Options: options}, &with.Pipeline)
	var asks []string
	for _, one := range f.d.Others {
		if one.ID.String() == with.Pipeline {
			for _, field := range one.Draft.Input {
				asks = append(asks, field.Name)
			}
		}
	}
	help := "A value for each field of its start form."
	if len(asks) > 0 {
		help += " It asks for: " + strings.Join(asks, ", ") + "."
	}
	f.valueRows("with.input", "What it starts with", help, "Add a value", pipeline.ListRoot, &with.Input)
	f.tick(ui.Field{Name: "with.wait", Label: "Wait until it is done, and use its result"}, &with.Wait)
	f.whole(ui.Field{Name: "with.version", Label: "Version", Help: "Empty: the one that is live when it starts.", Optional: true}, &with.Version)
}
