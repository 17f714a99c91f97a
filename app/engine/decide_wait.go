package engine

import (
	"context"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// beginWait waits for a time. One that has passed is over at once.
func (d *decider) beginWait(node *pipeline.Node, group *frame) error {
	terms, failure, err := d.waitTerms(node, group)
	if err != nil {
		return err
	}
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	due, failure := terms.ends(d.run, d.now)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if !due.After(d.now) {
		return d.pass(node, group, nil)
	}
	d.sleep(node, group, Wait{Kind: WaitTime, Due: &due})
	return nil
}

func (d *decider) waitTerms(node *pipeline.Node, group *frame) (waitTerms, *Failure, error) {
	terms := waitTerms{span: node.Wait().For, zone: d.scope.zone}
	if terms.zone == nil {
		return terms, nil, d.ask(want{kind: wantZone})
	}
	if terms.span > 0 {
		return terms, nil, nil
	}
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return terms, nil, err
	}
	until, err := node.Wait().Until.Eval(context.Background(), d.vars)
	if err != nil {
		failure := formulaFailure(err)
		return terms, &failure, nil
	}
	terms.until = until
	return terms, nil, nil
}

// beginEvent waits for an event of a name and a key.
func (d *decider) beginEvent(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	event := node.Event()
	key, err := d.render("the key", event.Key)
	if err != nil {
		return d.failBegin(node, group, formulaFailure(err))
	}
	if event.Callback {
		_, key = d.callbacks(group.id(), node.ID())
	}
	wait, failure := eventWait(StepRunID{}, event.Name, key, nil)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if event.Deadline > 0 {
		due := d.now.Add(event.Deadline)
		wait.Due = &due
	}
	d.sleep(node, group, wait)
	return nil
}

// sleep begins a step that does nothing but wait.
func (d *decider) sleep(node *pipeline.Node, group *frame, wait Wait) {
	row := d.newRow(node, group, StepWaiting)
	wait.StepRun = row.ID
	d.add(insertStep{row: row})
	d.add(openWait{wait})
	d.park(group)
}

// beginStop ends the run well, or fails with the exception that the step names.
func (d *decider) beginStop(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	stop := node.Stop()
	message, err := d.render("the message", stop.Message)
	if err != nil {
		return d.failBegin(node, group, formulaFailure(err))
	}
	if stop.Outcome == pipeline.StopRaise {
		if message == "" {
			message = "“" + node.Step.Name + "” raised “" + stop.Exception + "”."
		}
		return d.failBegin(node, group, Failure{Class: stop.Exception, Raised: true, Message: message})
	}
	row := d.newRow(node, group, StepDone)
	row.Note = expr.Preview([]byte(message), maxMessage)
	d.add(insertStep{row: row})
	return d.stopRun(group)
}

// stopRun closes the frames around and ends the run; what else is open is cancelled.
func (d *decider) stopRun(group *frame) error {
	forked := false
	for ; group != nil; group = group.outer {
		forked = forked || group.row.forks()
		var output value
		if group.row.Kind == pipeline.KindBranch && !group.row.Caught() {
			output.bytes = groupOutput(group.row)
		}
		d.close(group, StepDone, output, group.row.Failure)
	}
	if err := d.completeRun(true); err != nil {
		return err
	}
	if forked {
		d.add(cancelBelow{all: true})
	}
	return nil
}
