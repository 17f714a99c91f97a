package engine

import (
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// beginChild starts a run of another pipeline, and waits for its end where the step says
// so. Otherwise the step is done with its beginning.
func (d *decider) beginChild(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	child := node.Starts()
	input, failure := d.evaluate(child.Input, false)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if input == nil {
		input = []byte(`{}`)
	}
	begin := startChild{run: RunID(d.newID()), stepID: node.ID(), pipeline: child.Pipeline, version: child.Version, input: input, waits: child.Wait}
	if !child.Wait {
		return d.passAlone(node, group, []byte(`{"run":"`+begin.run.String()+`"}`), func(row StepRunID) change {
			begin.step = row
			return begin
		})
	}
	row := d.newRow(node, group, StepWaiting)
	begin.step = row.ID
	d.add(insertStep{row: row})
	d.add(begin)
	d.add(openWait{Wait{StepRun: row.ID, Kind: WaitChild}})
	d.park(group)
	return nil
}

// beginEmit sends an event inside the workspace, once for the step run.
func (d *decider) beginEmit(node *pipeline.Node, group *frame) error {
	if err := d.see(at(node, group), node.Refs()); err != nil {
		return err
	}
	emit := node.Emit()
	event := Event{ID: EventID(d.newID()), Name: emit.Name, Data: []byte("{}"), Sender: d.senderWords()}
	var err error
	if event.Key, err = d.render("the key", emit.Key); err != nil {
		return d.failBegin(node, group, formulaFailure(err))
	}
	data, failure := d.evaluate(emit.Data, false)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if data != nil {
		event.Data = data
	}
	if event, err = event.clean(); err != nil {
		return d.failBegin(node, group, Failure{Class: ClassFormula, Message: err.Error()})
	}
	return d.passAlone(node, group, []byte(`{"event":"`+event.ID.String()+`"}`), func(row StepRunID) change {
		event.SenderID = row.String()
		return sendEvent{event}
	})
}

// senderWords say in one line which run sent an event.
func (d *decider) senderWords() string {
	return expr.Preview([]byte(expr.Plain(fmt.Sprintf("Run #%d of %s", d.run.Number, d.run.PipelineName))), MaxEventKey)
}

// passAlone writes down a step that is done at once with something that needs locks of
// its own. The slice goes on behind it after the commit, so that no two of those meet in
// one.
func (d *decider) passAlone(node *pipeline.Node, group *frame, output []byte, with func(StepRunID) change) error {
	row := d.newRow(node, group, StepDone)
	d.add(insertStep{row: row, output: output})
	d.add(with(row.ID))
	d.standAt(StepRun{ID: row.ID, Parent: row.Parent, StepID: row.StepID, Kind: row.Kind, State: StepDone}, group)
	return nil
}
