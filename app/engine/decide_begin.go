package engine

import (
	"context"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// beginSet works its values out at once and goes on.
func (d *decider) beginSet(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	output, failure := d.evaluate(node.Set().Values, false)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	return d.pass(node, group, output)
}

// pass writes down a step that is done at once, and goes on behind it.
func (d *decider) pass(node *pipeline.Node, group *frame, output []byte) error {
	row := d.newRow(node, group, StepDone)
	d.add(insertStep{row: row, output: output})
	d.know(place{frame: group.id(), step: node.ID()}, foundRow(row, value{bytes: output}))
	return d.after(node, group)
}

// beginBranch takes the first case whose condition holds.
func (d *decider) beginBranch(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	for _, option := range node.Branch().Cases {
		holds, failure := d.holds(option.When)
		if failure != nil {
			return d.failBegin(node, group, *failure)
		}
		if !holds {
			continue
		}
		row := d.newRow(node, group, StepRunning)
		row.Chosen = option.Key
		return d.begin(option.Nodes, 0, d.openGroup(row, group))
	}
	return d.pass(node, group, []byte(`{"case":null}`))
}

// beginCall begins a step that reaches outside: its row, its money, and the call to
// make once both are committed. Without the money it waits, holding nothing.
func (d *decider) beginCall(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	input, failure := d.callInput(node, group)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if found, err := d.earlierOf(node, input); found != nil || err != nil {
		if err != nil {
			return err
		}
		return d.takeOver(node, group, input, found)
	}
	row := d.newRow(node, group, StepRunning)
	if err := d.priced(node); err != nil {
		return err
	}
	reservation, skipped, failure := d.reserveOn(node, &row, input)
	if failure == nil {
		failure = d.loopSpent(node)
	}
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if err := d.fund(reservation, group); err != nil {
		return err
	}
	if reason, ok := d.bars.capped[node.ID()]; ok {
		row.State = StepWaiting
		d.add(insertStep{row: row, input: input})
		d.addAttempts(row.ID, skipped)
		d.add(openWait{Wait{StepRun: row.ID, Kind: WaitCap, Reason: reason, Cap: d.bars.cap}})
		d.park(group)
		return nil
	}
	d.add(insertStep{row: row, input: input})
	d.addAttempts(row.ID, skipped)
	if reservation != nil {
		d.add(hold{hold: *reservation})
	}
	d.next, d.ends = &call{node: node, row: row, groups: group.rows(), input: input, asked: row.asked(input), hold: reservation}, group
	return nil
}

// beginReview asks people and waits for them.
func (d *decider) beginReview(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	draft, failure := d.reviewDraft(node, node.Review())
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	row := d.newRow(node, group, StepWaiting)
	d.add(insertStep{row: row})
	draft.round = row.Attempt
	d.add(openReview{step: row.ID, draft: draft})
	wait := Wait{StepRun: row.ID, Kind: WaitReview}
	if due := node.Review().Due; due > 0 {
		at := d.now.Add(due)
		wait.Due = &at
	}
	d.add(openWait{wait})
	d.park(group)
	return nil
}

// callAgain makes the call of a step that has its row and input already: after a
// pause, after a cap was raised, or after its worker died.
func (d *decider) callAgain() error {
	node := d.program.Node(d.step.StepID)
	row := *d.step
	if err := d.priced(node); err != nil {
		return err
	}
	reservation, skipped, failure := d.reserveOn(node, &row, d.scope.callInput)
	if failure == nil {
		failure = d.loopSpent(node)
	}
	d.step = &row
	d.addAttempts(row.ID, skipped)
	if failure != nil {
		d.outcome = outcome{kind: failed, failure: failure, cost: d.outcome.cost}
		return d.fail()
	}
	if err := d.fund(reservation, d.frames(d.groups)); err != nil {
		return err
	}
	if reason, ok := d.bars.capped[node.ID()]; ok {
		d.add(d.moved(StepWaiting, row.Attempt))
		d.add(openWait{Wait{StepRun: row.ID, Kind: WaitCap, Reason: reason, Cap: d.bars.cap}})
		d.park(d.frames(d.groups))
		return nil
	}
	d.add(d.moved(StepRunning, row.Attempt))
	row.State, row.BegunAt = StepRunning, d.now
	if reservation != nil {
		d.add(hold{hold: *reservation})
	}
	d.next = &call{node: node, row: row, groups: d.groups, input: d.scope.callInput, asked: row.asked(d.scope.callInput), hold: reservation}
	d.ends = d.frames(d.groups)
	return nil
}

// addAttempts records tries of a step that were over before any call was made.
func (d *decider) addAttempts(step StepRunID, attempts []Attempt) {
	for _, one := range attempts {
		d.add(addAttempt{step: step, attempt: one})
	}
}

// evaluate works named formulas out into one JSON object; no values give none. Those
// that cannot be worked out are empty where that is allowed.
func (d *decider) evaluate(values []pipeline.CompiledValue, lenient bool) ([]byte, *Failure) {
	if len(values) == 0 {
		return nil, nil
	}
	out := make(map[string]any, len(values))
	for _, value := range values {
		result, err := value.Formula.Eval(context.Background(), d.vars)
		if err != nil && !lenient {
			failure := formulaFailure(err)
			failure.Message = "“" + value.Name + "” could not be worked out: " + failure.Message
			return nil, &failure
		}
		out[value.Name] = result
	}
	return encodeOutput(out)
}

// work works one formula out.
func (d *decider) work(formula *expr.Formula) ([]byte, *Failure) {
	result, err := formula.Eval(context.Background(), d.vars)
	if err != nil {
		failure := formulaFailure(err)
		return nil, &failure
	}
	return encodeOutput(result)
}

// holds tells whether a condition is true; none always is.
func (d *decider) holds(condition *expr.Formula) (bool, *Failure) {
	if condition == nil {
		return true, nil
	}
	yes, err := condition.Bool(context.Background(), d.vars)
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
	return bounded(encoded)
}

// bounded refuses an output that is larger than a step may hand on.
func bounded(output []byte) ([]byte, *Failure) {
	if len(output) > MaxValue {
		return nil, &Failure{Class: ClassTooLarge, Message: "The step's result is larger than 32 MiB. Hand on less data."}
	}
	return output, nil
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
