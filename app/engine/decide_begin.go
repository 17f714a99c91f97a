package engine

import (
	"context"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// newRow is the row of a step that begins inside group.
func (d *decider) newRow(node *pipeline.Node, group *frame, state StepState) StepRun {
	row := StepRun{
		ID: d.newID(), StepID: node.ID(), Kind: node.Kind(), List: node.List,
		State: state, Attempt: 1, Fence: d.fence, Slice: d.slice, BegunAt: d.now, CreatedAt: d.now,
	}
	if group != nil {
		row.Parent = group.row.ID
	}
	if !state.Open() {
		row.EndedAt, row.Slice = &d.now, SliceID{}
	}
	return row
}

// beginSet works its values out at once and goes on.
func (d *decider) beginSet(node *pipeline.Node, list []*pipeline.Node, group *frame) error {
	output, failure := d.evaluate(node.Set().Values)
	if failure != nil {
		d.failBegin(node, group, *failure)
		return nil
	}
	if err := d.scope.put(node.ID(), output); err != nil {
		d.failBegin(node, group, formulaFailure(err))
		return nil
	}
	d.add(insertStep{row: d.newRow(node, group, StepDone), output: output})
	return d.begin(list, node.Index+1, group)
}

// beginBranch takes the first case whose condition holds.
func (d *decider) beginBranch(node *pipeline.Node, group *frame) error {
	for _, option := range node.Branch().Cases {
		holds, failure := d.holds(option.When)
		if failure != nil {
			d.failBegin(node, group, *failure)
			return nil
		}
		if !holds {
			continue
		}
		row := d.newRow(node, group, StepRunning)
		row.Chosen, row.Slice, row.Fence = option.Key, SliceID{}, 0 // a group belongs to all slices inside it
		d.add(insertStep{row: row})
		return d.begin(option.Nodes, 0, &frame{row: row, insert: len(d.changes) - 1, outer: group})
	}
	d.add(insertStep{row: d.newRow(node, group, StepDone), output: []byte(`{"case":null}`)})
	return d.after(node, group)
}

// beginCall begins a step that reaches outside: its row, its money, and the call to
// make once both are committed. Without the money it waits, holding nothing.
func (d *decider) beginCall(node *pipeline.Node, group *frame) {
	input, failure := d.callInput(node)
	if failure != nil {
		d.failBegin(node, group, *failure)
		return
	}
	row := d.newRow(node, group, StepRunning)
	reservation, failure := d.reserve(node, row, input)
	if failure != nil {
		d.failBegin(node, group, *failure)
		return
	}
	if reason, ok := d.bars.capped[node.ID()]; ok {
		row.State = StepWaiting
		d.add(insertStep{row: row, input: input})
		d.add(openWait{Wait{StepRun: row.ID, Kind: WaitCap, Reason: reason}})
		return
	}
	d.add(insertStep{row: row, input: input})
	if reservation != nil {
		d.add(hold{hold: *reservation})
	}
	d.next = &call{node: node, row: row, groups: group.rows(), input: input, hold: reservation}
}

// beginReview asks people and waits for them.
func (d *decider) beginReview(node *pipeline.Node, group *frame) {
	draft, failure := d.reviewDraft(node)
	if failure != nil {
		d.failBegin(node, group, *failure)
		return
	}
	row := d.newRow(node, group, StepWaiting)
	d.add(insertStep{row: row})
	d.add(openReview{step: row.ID, draft: draft})
	wait := Wait{StepRun: row.ID, Kind: WaitReview}
	if due := node.Review().Due; due > 0 {
		at := d.now.Add(due)
		wait.Due = &at
	}
	d.add(openWait{wait})
}

// callAgain makes the call of a step that has its row and input already: after a
// pause, after a cap was raised, or after its worker died.
func (d *decider) callAgain() {
	node := d.program.Node(d.step.StepID)
	row := *d.step
	reservation, failure := d.reserve(node, row, d.scope.callInput)
	if failure != nil {
		d.outcome = outcome{kind: failed, failure: failure}
		d.fail()
		return
	}
	if reason, ok := d.bars.capped[node.ID()]; ok {
		d.park(row, reason)
		return
	}
	d.add(d.moved(StepRunning, row.Attempt))
	row.State, row.BegunAt = StepRunning, d.now
	if reservation != nil {
		d.add(hold{hold: *reservation})
	}
	d.next = &call{node: node, row: row, groups: d.groups, input: d.scope.callInput, hold: reservation}
}

// park lets a step that exists wait for money.
func (d *decider) park(row StepRun, reason string) {
	d.add(d.moved(StepWaiting, row.Attempt))
	d.add(openWait{Wait{StepRun: row.ID, Kind: WaitCap, Reason: reason}})
}

// evaluate works named formulas out into one JSON object; no values give none.
func (d *decider) evaluate(values []pipeline.CompiledValue) ([]byte, *Failure) {
	if len(values) == 0 {
		return nil, nil
	}
	out := make(map[string]any, len(values))
	for _, value := range values {
		result, err := value.Formula.Eval(context.Background(), d.scope.expr())
		if err != nil {
			failure := formulaFailure(err)
			failure.Message = "“" + value.Name + "” could not be worked out: " + failure.Message
			return nil, &failure
		}
		out[value.Name] = result
	}
	return encodeOutput(out)
}

// holds tells whether a branch's condition is true; a case without one always is.
func (d *decider) holds(condition *expr.Formula) (bool, *Failure) {
	if condition == nil {
		return true, nil
	}
	yes, err := condition.Bool(context.Background(), d.scope.expr())
	if err != nil {
		failure := formulaFailure(err)
		return false, &failure
	}
	return yes, nil
}

func encodeOutput(value any) ([]byte, *Failure) {
	encoded, err := expr.EncodeJSON(value)
	if err != nil {
		failure := formulaFailure(err)
		return nil, &failure
	}
	if len(encoded) > MaxValue {
		return nil, &Failure{Class: ClassTooLarge, Message: "The step's result is larger than 32 MiB. Hand on less data."}
	}
	return encoded, nil
}

func formulaFailure(err error) Failure {
	return Failure{Class: ClassFormula, Message: err.Error()}
}

func groupOutput(row StepRun) []byte {
	encoded, err := expr.EncodeJSON(map[string]any{"case": string(row.Chosen)})
	if err != nil {
		return []byte(`{"case":null}`) // a list key is always valid text
	}
	return encoded
}
