package engine

import (
	"time"

	"tollgate/app/pipeline"
)

// moment is everything that decide may read: where a branch of a run stands and what
// came out there.
type moment struct {
	program *pipeline.Program
	run     Run
	step    *StepRun  // the position; nil at the run's beginning
	groups  []StepRun // the open groups around it, innermost first
	slice   SliceID
	fence   int64
	outcome outcome
	scope   scope
	bars    bars
	yield   bool // end the slice behind the step that finished
	now     time.Time

	inputBound func(AIInput) int64 // most input tokens that an input can be charged for
	newID      func() StepRunID
}

// bars keep steps from beginning: the committer found that their begin cannot be
// written as it was decided, and asks again with the reason.
type bars struct {
	failed map[string]Failure // step id → why it fails at once
	capped map[string]string  // step id → why it must wait for money
}

// decide says what follows from a moment. It is pure: the same moment gives the same
// decision, and it may be asked again, with more values or bars, until it has all it
// needs.
func decide(m moment) decision {
	d := &decider{moment: m}
	var err error
	switch m.outcome.kind {
	case entered:
		err = d.begin(m.program.Roots(), 0, nil)
	case done:
		err = d.finish()
	case failed:
		d.failedTry()
	case passed:
		err = d.after(m.program.Node(m.step.StepID), d.frames(m.groups))
	case again:
		d.callAgain()
	case interrupted:
		d.interruptedTry()
	}
	if err != nil { // only ever errMissing
		return decision{missing: d.missing}
	}
	return d.decision
}

// decider collects the changes of one decision.
type decider struct {
	moment
	decision
	missing []string
}

// frame is a group around the position. A group that this same decision began has its
// change still in the list, and is ended there instead of by a second change.
type frame struct {
	row    StepRun
	insert int // index of its insertStep in changes; -1 for a row that exists
	outer  *frame
}

func (d *decider) add(c change) { d.changes = append(d.changes, c) }

// frames links the open groups, innermost first, into frames.
func (d *decider) frames(groups []StepRun) *frame {
	var outer *frame
	for i := len(groups) - 1; i >= 0; i-- {
		outer = &frame{row: groups[i], insert: -1, outer: outer}
	}
	return outer
}

// rows are the groups, innermost first.
func (f *frame) rows() []StepRun {
	var rows []StepRun
	for ; f != nil; f = f.outer {
		rows = append(rows, f.row)
	}
	return rows
}

// finish ends the position's step with its output and goes on behind it.
func (d *decider) finish() error {
	d.add(d.ended(StepDone))
	d.recordTry(AttemptDone)
	d.addMoney()
	if d.yield {
		d.yields = true
		return nil
	}
	return d.after(d.program.Node(d.step.StepID), d.frames(d.groups))
}

// after goes on behind a node that has ended: with its next sibling, or by ending the
// group around it.
func (d *decider) after(node *pipeline.Node, group *frame) error {
	return d.begin(siblings(d.program, node), node.Index+1, group)
}

// begin begins the step at index of a list, and goes on through those that need no
// outside call. Behind the list's end the group ends.
func (d *decider) begin(list []*pipeline.Node, index int, group *frame) error {
	if index == len(list) {
		return d.endGroup(group)
	}
	node := list[index]
	if failure, ok := d.bars.failed[node.ID()]; ok {
		d.failBegin(node, group, failure)
		return nil
	}
	if err := d.need(node.Refs()); err != nil {
		return err
	}
	switch node.Kind() {
	case pipeline.KindSet:
		return d.beginSet(node, list, group)
	case pipeline.KindBranch:
		return d.beginBranch(node, group)
	case pipeline.KindReview:
		d.beginReview(node, group)
	case pipeline.KindAI, pipeline.KindEmail:
		d.beginCall(node, group)
	default:
		d.failBegin(node, group, Failure{Class: ClassInternal,
			Message: "This version of Tollgate cannot run a step of the kind “" + node.Kind().Title() + "”."})
	}
	return nil
}

// endGroup ends a group whose list is through, and goes on behind it; at the top it
// ends the run.
func (d *decider) endGroup(group *frame) error {
	if group == nil {
		return d.completeRun()
	}
	output := groupOutput(group.row)
	if group.insert >= 0 {
		begun := d.changes[group.insert].(insertStep)
		begun.row.State, begun.row.EndedAt, begun.output = StepDone, &d.now, output
		d.changes[group.insert] = begun
	} else {
		d.add(moveStep{id: group.row.ID, from: StepRunning, to: StepDone,
			attempt: group.row.Attempt, output: output})
	}
	return d.after(d.program.Node(group.row.StepID), group.outer)
}

// completeRun works out the run's result and ends it.
func (d *decider) completeRun() error {
	for _, value := range d.program.Result() {
		if err := d.need(value.Formula.Refs()); err != nil {
			return err
		}
	}
	result, failure := d.evaluate(d.program.Result())
	if failure != nil {
		failure.Message = "All steps ran, but the run's result could not be worked out. " + failure.Message
		d.add(endRun{state: RunFailed, failure: failure})
		return nil
	}
	d.add(endRun{state: RunCompleted, result: result})
	return nil
}

// siblings is the list that holds a node.
func siblings(program *pipeline.Program, node *pipeline.Node) []*pipeline.Node {
	if node.Parent == nil {
		return program.Roots()
	}
	return node.Parent.Child(node.List).Nodes
}
