package engine

import (
	"slices"

	"tollgate/app/pipeline"
)

// Trace is what a run has come to at one step of its document, over all items and rounds.
type Trace struct {
	StepID string
	Kind   pipeline.Kind    // of a part: round, item or lane
	List   pipeline.ListKey // of a part: the list that it goes through
	Chosen pipeline.ListKey // the list that a branch, or what handles a failure, goes through
	Ended  bool             // one of its rows at least has ended
}

// MisfitReason is why a run cannot go on under another version.
type MisfitReason string

// Why a run does not fit. But for the first three they are about steps that have begun.
const (
	MisfitRules   MisfitReason = "rules"   // the version follows older rules
	MisfitInput   MisfitReason = "input"   // a field of the input is new and required, or is another one
	MisfitUnrun   MisfitReason = "unrun"   // a step stands before what was done, and would never run
	MisfitGone    MisfitReason = "gone"    // the step does not exist any more
	MisfitMoved   MisfitReason = "moved"   // the step is at another place
	MisfitChanged MisfitReason = "changed" // the step does something else
	MisfitCatches MisfitReason = "catches" // its failure is being handled, and would be handled differently
)

// Misfit is one reason why a run cannot go on under another version.
type Misfit struct {
	Reason MisfitReason
	Number string // of the step as people count it: of a new one in the new version, else in the old
	Name   string // of the step, or of the input's field
}

// Misfits lists what keeps a run from going on under another version of its pipeline.
// What was begun must be there unchanged, in the same order, with nothing new before it:
// then all that later steps may read is there, and waits keep their meaning.
func Misfits(from, to *pipeline.Program, traces []Trace) []Misfit {
	f := &fitting{from: from, to: to, begun: map[string]bool{}, lists: map[listOf]bool{{}: false}}
	for _, trace := range traces {
		f.note(trace)
	}
	f.document()
	f.walk(from.Roots(), f.step)
	f.walk(to.Roots(), f.added)
	return f.misfits
}

// fitting is a comparison under way.
type fitting struct {
	from, to *pipeline.Program
	begun    map[string]bool
	lists    map[listOf]bool // that were gone into; whether anybody has come to an end there
	handled  []string        // steps whose failures are, or were, handled
	misfits  []Misfit
}

// listOf names a list of steps; the zero value is the outermost.
type listOf struct {
	step string
	key  pipeline.ListKey
}

func (f *fitting) note(t Trace) {
	list := listOf{t.StepID, t.List}
	if !IsPart(t.Kind) {
		f.begun[t.StepID] = true
		if t.Chosen.HandlesError() {
			f.handled = append(f.handled, t.StepID)
		}
		node := f.from.Node(t.StepID)
		if node == nil || t.Chosen == "" || node.Child(t.Chosen) == nil {
			return
		}
		list.key = t.Chosen
	}
	f.lists[list] = f.lists[list] || t.Ended
}

func (f *fitting) add(reason MisfitReason, node *pipeline.Node) {
	f.misfits = append(f.misfits, Misfit{reason, node.Number, node.Step.Name})
}

// document compares what the versions say about the whole run.
func (f *fitting) document() {
	before, after := f.from.Document(), f.to.Document()
	if after.Semantics < before.Semantics {
		f.misfits = append(f.misfits, Misfit{Reason: MisfitRules})
	}
	for _, field := range after.Input {
		old := slices.IndexFunc(before.Input, func(o pipeline.Field) bool { return o.Name == field.Name })
		var was pipeline.Field
		if old >= 0 {
			was = before.Input[old]
		}
		if !pipeline.TakesInput(was, old >= 0, field) {
			f.misfits = append(f.misfits, Misfit{Reason: MisfitInput, Name: field.Title()})
		}
	}
}

// walk goes through lists of steps in reading order.
func (f *fitting) walk(list []*pipeline.Node, look func(*pipeline.Node)) {
	for _, node := range list {
		look(node)
		for _, inner := range node.Lists {
			f.walk(inner.Nodes, look)
		}
	}
}

// step looks for a step of the old version, if it was begun, in the new one.
func (f *fitting) step(old *pipeline.Node) {
	if !f.begun[old.ID()] {
		return
	}
	now := f.to.Node(old.ID())
	switch {
	case now == nil:
		f.add(MisfitGone, old)
	case placeOf(now) != placeOf(old) || f.before(now) != f.before(old):
		f.add(MisfitMoved, old)
	case !pipeline.SameWork(old.Step, now.Step):
		f.add(MisfitChanged, old)
	case slices.Contains(f.handled, old.ID()) && !pipeline.SameCatches(old.Step, now.Step):
		f.add(MisfitCatches, old)
	}
}

// placeOf is the list in which a step stands.
func placeOf(node *pipeline.Node) listOf {
	if node.Parent == nil {
		return listOf{}
	}
	return listOf{node.Parent.ID(), node.List}
}

// before names the step that was begun before this one in its list, of those that are in
// that list in both versions.
func (f *fitting) before(node *pipeline.Node) string {
	for node = node.Previous(); node != nil; node = node.Previous() {
		if f.begun[node.ID()] && f.stays(node.ID()) {
			return node.ID()
		}
	}
	return ""
}

// added looks whether a step of the new version stands where nobody would come by.
func (f *fitting) added(now *pipeline.Node) {
	over, entered := f.lists[placeOf(now)]
	if f.begun[now.ID()] || !entered {
		return
	}
	if over && f.isNew(now) {
		f.add(MisfitUnrun, now)
		return
	}
	for next := now.Next(); next != nil; next = next.Next() {
		if f.begun[next.ID()] {
			f.add(MisfitUnrun, now)
			return
		}
	}
}

// stays tells of a step that is in the same list in both versions.
func (f *fitting) stays(id string) bool {
	old, now := f.from.Node(id), f.to.Node(id)
	return old != nil && now != nil && placeOf(old) == placeOf(now)
}

// isNew tells of a step that stands in a list where it did not stand before.
func (f *fitting) isNew(now *pipeline.Node) bool { return !f.stays(now.ID()) }
