package engine

import (
	"tollgate/app/pipeline"
)

// Caught tells a step whose failure is being handled, or was: its row has become the
// frame of what its on_error does. It keeps the failure, and what it does is inside it.
func (s *StepRun) Caught() bool { return s.Chosen.HandlesError() }

// forks tells a group whose parts may be open at the same time. Behind a failure none is.
func (s *StepRun) forks() bool { return forks(s.Kind) && !s.Caught() }

// handling is what is done about a failure: an entry of the step's on_error, and the
// question that it asks, if it does.
type handling struct {
	key   pipeline.ListKey
	entry *pipeline.CompiledCatch
	draft reviewDraft
}

// handles finds what a step does about its failure; nil where it lets it go outwards,
// maybe as another one. Whatever fails while a failure is handled goes outwards.
func (d *decider) handles(row StepRun, outer *frame, failure *Failure) (*handling, error) {
	if IsPart(row.Kind) || row.Caught() {
		return nil, nil
	}
	node := d.program.Node(row.StepID)
	for i := range node.Catches {
		entry := &node.Catches[i]
		if !entry.Fits(failure.Class, failure.Raised) {
			continue
		}
		if failure.StepID == "" {
			failure.StepID = row.StepID
		}
		where := at(node, outer)
		where.failure = failure
		if err := d.see(where, entry.Refs()); err != nil {
			return nil, err
		}
		return d.prepare(node, row, &handling{key: pipeline.ErrorList(i), entry: entry}, failure)
	}
	return nil, nil
}

// prepare fills in what the entry says to people. What cannot be said, or asked of
// nobody, is the failure then.
func (d *decider) prepare(node *pipeline.Node, row StepRun, h *handling, failure *Failure) (*handling, error) {
	var worse *Failure
	switch h.entry.Do {
	case pipeline.CatchFail:
		return nil, d.rename(h.entry, failure)
	case pipeline.CatchAsk:
		h.draft, worse = d.reviewDraft(node, h.entry.Ask)
		h.draft.catch, h.draft.round = h.key, row.Attempt+1 // it may have asked at each try before
		if barred, ok := d.bars.failed[h.draft.bar()]; ok {
			worse = &barred
		}
	}
	if worse != nil {
		worse.StepID, worse.Detail = node.ID(), failure.Message
		*failure = *worse
		return nil, nil
	}
	return h, nil
}

// rename makes a failure the one that a step's on_error says it is.
func (d *decider) rename(entry *pipeline.CompiledCatch, failure *Failure) error {
	message, err := d.render("the message", entry.Message)
	switch {
	case err != nil:
		message = formulaFailure(err).Message
	case message == "":
		message = failure.Message
	}
	if message != failure.Message && failure.Detail == "" {
		failure.Detail = failure.Message
	}
	failure.Message = message
	if entry.Exception != "" {
		failure.Class, failure.Raised = entry.Exception, true
	}
	return nil
}

// catch makes the failed row the frame of what is done about it, and begins that.
func (d *decider) catch(f *frame, how *handling, failure Failure) error {
	node := d.program.Node(f.row.StepID)
	f.row.Chosen, f.row.Failure, f.row.State = how.key, &failure, StepRunning
	f.row.Slice, f.row.Fence = SliceID{}, 0
	switch how.entry.Do {
	case pipeline.CatchDefault:
		d.close(f, StepDone, value{bytes: how.entry.Default}, &failure)
		return d.after(node, f.outer)
	case pipeline.CatchAsk:
		f.row.State = StepWaiting
		d.rewrite(f)
		d.add(openReview{step: f.row.ID, draft: how.draft})
		d.add(openWait{Wait{StepRun: f.row.ID, Kind: WaitReview, Reason: how.draft.question, Due: how.draft.due}})
		d.park(f.outer)
		return nil
	}
	d.rewrite(f)
	return d.begin(how.entry.List.Nodes, 0, f)
}

// catchRow prepares the change by which an existing row becomes such a frame. Its last
// word is had by catch.
func (d *decider) catchRow(f *frame, how *handling, from moveStep) {
	d.add(catchStep{moveStep: from, chosen: how.key})
	f.insert = len(d.changes) - 1
}

// rewrite brings the change that a frame came from in line with its row.
func (d *decider) rewrite(f *frame) {
	switch begun := d.changes[f.insert].(type) {
	case insertStep:
		begun.row = f.row
		d.changes[f.insert] = begun
	case catchStep:
		begun.to, begun.failure = f.row.State, f.row.Failure
		d.changes[f.insert] = begun
	}
}

// endCatch ends a step whose failure was handled, with what the last of the steps gave.
func (d *decider) endCatch(f *frame) error {
	output, _, err := d.result(f, nil)
	if err != nil {
		return err
	}
	d.close(f, StepDone, output, f.row.Failure)
	return d.after(d.program.Node(f.row.StepID), f.outer)
}

// answeredCatch reads what people said to a failure: a no gives it back.
func (d *decider) answeredCatch() *Failure {
	verdict, by := answerOf(d.outcome.output)
	if verdict == pipeline.VerdictApproved || verdict == pipeline.VerdictTimeout {
		return nil
	}
	failure := *d.step.Failure
	if failure.Message += " " + by + " did not let the run go on."; by == "" {
		failure.Message = d.step.Failure.Message
	}
	return &failure
}

// errorFacts are a failure as formulas read it.
func errorFacts(failure *Failure) map[string]any {
	facts := map[string]any{"class": failure.Class, "name": "", "message": failure.Message, "step": failure.StepID}
	if failure.Raised {
		facts["class"], facts["name"] = pipeline.ClassException, failure.Class
	}
	return facts
}
