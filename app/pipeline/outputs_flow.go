package pipeline

import (
	"reflect"

	"tollgate/app/expr"
)

func repeatOutputs(c *Repeat) []Field {
	best := resultOf(c.Steps, c.Result)
	best.Name, best.Label = "best", "Best result"
	return []Field{
		{Name: "rounds", Label: "Rounds", Type: TypeNumber, Required: true},
		{Name: "reason", Label: "Why it ended", Type: TypeChoice, Required: true, Choices: []Choice{
			{EndUntil, "Its condition held"}, {EndRounds, "Limit of rounds"}, {EndCost, "Limit of money"}, {EndTime, "Limit of time"},
		}},
		best,
	}
}

// The results of items that failed are empty.
func eachOutputs(c *Each) []Field {
	result := resultOf(c.Steps, c.Result)
	result.Required = c.MaxFailed == 0
	failed := Field{Type: TypeRecord, Required: true, Fields: []Field{
		{Name: "index", Label: "Place in the list", Type: TypeNumber, Required: true},
		{Name: "message", Label: "What happened", Type: TypeText, Required: true},
	}}
	return []Field{
		{Name: "results", Label: "Results", Type: TypeList, Of: &result, Required: true},
		{Name: "failed", Label: "Items that failed", Type: TypeList, Of: &failed, Required: true},
	}
}

// Where only the first good result is taken, the other branches may have none.
func parallelOutputs(c *Parallel) []Field {
	results := Field{Name: "results", Label: "Results", Type: TypeRecord, Required: true}
	for _, l := range c.Branches {
		result := resultOf(l.Steps, l.Result)
		result.Name, result.Label, result.Required = l.ID, l.Name, c.WaitFor != WaitFirst
		results.Fields = append(results.Fields, result)
	}
	combined := c.lane()
	if c.WaitFor != WaitFirst && (c.Combine == "" || c.Combine == CombineCollect) {
		entry := combined
		combined = Field{Type: TypeList, Of: &entry}
	}
	combined.Name, combined.Label = "combined", "Combined"
	combined.Required = c.Combine != CombineMajority
	return []Field{results, combined}
}

// lane is the type of a branch's result, where all branches have the same.
func (c *Parallel) lane() Field {
	var common Field
	for i, l := range c.Branches {
		one := resultOf(l.Steps, l.Result)
		if i > 0 && !reflect.DeepEqual(one, common) {
			return Field{Type: anything, Required: true}
		}
		common = one
	}
	return common
}

func eventOutputs() []Field {
	return []Field{
		{Name: "outcome", Label: "What happened", Type: TypeChoice, Required: true, Choices: []Choice{
			{EventReceived, "The event came"}, {EventTimeout, "No event in time"},
		}},
		{Name: "data", Label: "Data of the event", Type: anything},
	}
}

// resultOf is the type of what a list of steps gives: its result formula, where that
// only names a value of a step of the list, or the output of the last step.
func resultOf(steps []Step, formula string) Field {
	unknown := Field{Type: anything, Required: true}
	if formula == "" {
		if len(steps) == 0 {
			return unknown
		}
		return outputOf(steps[len(steps)-1])
	}
	ref, ok := expr.Place(formula)
	if !ok || ref.Root != "steps" || len(ref.Path) == 0 {
		return unknown
	}
	for _, s := range steps {
		if s.ID == ref.Path[0] {
			return plain(outputOf(s).at(ref.Path[1:]))
		}
	}
	return unknown
}

// outputOf is the whole output of a step as one value.
func outputOf(s Step) Field {
	fields := Outputs(s)
	if len(fields) == 0 {
		return Field{Type: anything, Required: true}
	}
	return Field{Type: TypeRecord, Fields: fields, Required: true}
}

// at follows names into a field; what only the value itself can tell is anything.
func (f Field) at(path []string) Field {
	for _, name := range path {
		fields, known := f.parts()
		inner, ok := findField(fields, name)
		if !known || !ok {
			return Field{Type: anything, Required: true}
		}
		inner.Required = inner.Required && f.Required
		f = inner
	}
	return f
}

// plain is the type without the words of the place that it was found at.
func plain(f Field) Field {
	f.Name, f.Label, f.Help = "", "", ""
	return f
}

// itemOf is the type of what a list's steps see as item, where its items are a value
// whose type is known.
func (c *checker) itemOf(each *Node) Field {
	unknown := Field{Type: anything, Required: true}
	w, ok := each.Step.With.(*Each)
	if !ok {
		return unknown
	}
	ref, ok := expr.Place(w.Items)
	if !ok {
		return unknown
	}
	list := unknown
	switch {
	case ref.Root == "input":
		list = Field{Type: TypeRecord, Fields: c.doc.Input, Required: true}.at(ref.Path)
	case ref.Root == "steps" && len(ref.Path) > 0 && c.tree.byID[ref.Path[0]] != nil:
		list = outputOf(*c.tree.byID[ref.Path[0]].Step).at(ref.Path[1:])
	case ref.Root == "item":
		if outer := (reader{checker: c, node: each}).around(KindEach); outer != nil {
			list = c.itemOf(outer).at(ref.Path)
		}
	}
	if list.Type != TypeList || list.Of == nil {
		return unknown
	}
	return *list.Of
}
