package engine

import (
	"slices"

	"tollgate/app/pipeline"
)

// moved is a change of the position's step.
func (d *decider) moved(to StepState, attempt int) moveStep {
	move := moveStep{
		id: d.step.ID, from: d.step.State, slice: d.step.Slice, fence: d.step.Fence, to: to, attempt: attempt,
		note: d.outcome.note, cost: d.outcome.cost,
	}
	if d.step.Chain != d.was {
		move.chain = &d.step.Chain
	}
	return move
}

// ended is the change that ends the position's step.
func (d *decider) ended(state StepState) moveStep {
	move := d.moved(state, d.step.Attempt)
	move.output, move.files, move.failure = d.outcome.output, d.outcome.files, d.outcome.failure
	return move
}

// recordTry writes down the try that ended badly, of a step that reached outside. One that
// ends well is told by the step's own row.
func (d *decider) recordTry(result AttemptOutcome) {
	if !callsOutside(d.step.Kind) || d.step.Caught() || d.step.State != StepRunning {
		return
	}
	d.add(addAttempt{step: d.step.ID, sent: d.outcome.sent, received: d.outcome.received, attempt: Attempt{
		Number: d.step.Attempt, Outcome: result, BeganAt: d.step.BegunAt, EndedAt: d.now,
		Failure: d.outcome.failure, Note: d.outcome.note,
		Model: d.step.Chain.model(d.program.Node(d.step.StepID)), Place: d.step.Chain.Place, Reask: d.step.Chain.Reask,
		Followed: d.outcome.followed,
	}})
}

// recordAnswer writes down a try that ended well, where its step's row does not say all:
// which of several models it asked, or what came.
func (d *decider) recordAnswer() {
	chain := d.step.Chain
	if chain.Place+chain.Reask > 0 || d.outcome.sent != nil || d.outcome.received != nil {
		d.recordTry(AttemptDone)
	}
}

func (d *decider) addMoney() {
	if d.outcome.settle != nil {
		d.add(*d.outcome.settle)
	}
}

// failedTry acts on an error: another try after a pause, or the end of the step.
func (d *decider) failedTry() error {
	node := d.program.Node(d.step.StepID)
	if d.outcome.uncalled {
		return d.putOff()
	}
	if d.chains(node) && !d.step.Caught() && d.step.State == StepRunning {
		return d.followedTry(node)
	}
	d.recordTry(AttemptFailed)
	if acted, err := d.unsureTry(node); acted || err != nil {
		return err
	}
	pause, another := nextTry(d.program.Document().Semantics, node, d.step.Attempt-d.step.EarlierTries, d.outcome)
	if !another {
		d.tellUnsure(node)
		return d.fail()
	}
	d.add(d.moved(StepWaiting, d.step.Attempt+1))
	d.addMoney()
	due := d.now.Add(pause)
	d.add(openWait{Wait{StepRun: d.step.ID, Kind: WaitRetry, Due: &due, Reason: d.outcome.failure.Message}})
	d.park(d.frames(d.groups))
	return nil
}

// maxInterruptions bounds how often a call may be cut by a dying worker before it is
// taken to be the cause.
const maxInterruptions = 20

// interruptedTry records that the worker died in the middle of the call, books what the
// call may have cost, and makes it again under the same key.
func (d *decider) interruptedTry() error {
	if acted, err := d.interruptedUnsure(); acted || err != nil {
		return err
	}
	d.outcome.failure = &Failure{Class: ClassInterrupted, Message: "The program stopped in the middle of this call, so it was made again with the same key."}
	d.recordTry(AttemptInterrupted)
	d.addMoney()
	if d.step.Attempt-d.step.EarlierTries >= maxInterruptions {
		d.outcome.failure.Message = "The program stopped in the middle of this call 20 times, so it is not made again."
		d.outcome.settle = nil
		return d.fail()
	}
	d.step = d.nextAttempt()
	return d.callAgain()
}

// nextAttempt is the position's step as its next try counts it.
func (d *decider) nextAttempt() *StepRun {
	row := *d.step
	row.Attempt++
	row.Chain.PutOff = 0
	return &row
}

// fail ends the position's step and what fails with it, unless the step handles it.
func (d *decider) fail() error {
	failure := *d.outcome.failure
	if failure.StepID == "" {
		failure.StepID = d.step.StepID
	}
	outer := d.frames(d.groups)
	how, err := d.handles(*d.step, outer, &failure)
	if err != nil {
		return err
	}
	d.outcome.failure = &failure
	if how != nil {
		self := &frame{row: *d.step, outer: outer}
		d.catchRow(self, how, d.moved(StepRunning, d.step.Attempt))
		d.addMoney()
		return d.catch(self, how, failure)
	}
	d.add(d.ended(StepFailed))
	d.addMoney()
	return d.failGroups(outer, failure)
}

// failBegin fails a step that never got to run; its row says why.
func (d *decider) failBegin(node *pipeline.Node, group *frame, failure Failure) error {
	failure.StepID = node.ID()
	row := d.newRow(node, group, StepFailed)
	how, err := d.handles(row, group, &failure)
	if err != nil {
		return err
	}
	if how != nil {
		return d.catch(d.openGroup(d.newRow(node, group, StepRunning), group), how, failure)
	}
	row.Failure = &failure
	d.add(insertStep{row: row})
	return d.failGroups(group, failure)
}

// failGroups fails the frames around a failure, up to one that handles or bears it: a list
// may lose items, and of branches of which the first good one counts others may still be
// good. Elsewhere the run fails. Whatever else is open inside what failed is cancelled.
func (d *decider) failGroups(group *frame, failure Failure) error {
	var closed []StepRunID
	var round *frame
	forked := false
	for ; group != nil; group = group.outer {
		if !failure.loop.IsZero() && group.row.ID == failure.loop && !group.row.Caught() && round != nil {
			if forked {
				d.add(cancelBelow{groups: closed})
			}
			return d.spentInRound(group, round)
		}
		if isRound(group) {
			round = group
		}
		how, err := d.handles(group.row, group.outer, &failure)
		if err != nil {
			return err
		}
		closed, forked = append(closed, group.row.ID), forked || group.row.forks()
		if how != nil {
			return d.catchGroup(group, how, failure, closed, forked)
		}
		d.close(group, StepFailed, value{}, &failure)
		if d.bears(group) {
			if forked {
				d.add(cancelBelow{groups: closed})
			}
			d.arriveAt(group.outer)
			return nil
		}
	}
	d.add(endRun{state: RunFailed, failure: &failure})
	if forked {
		d.add(cancelBelow{all: true})
	}
	return nil
}

// catchGroup lets a group handle the failure of something inside it.
func (d *decider) catchGroup(group *frame, how *handling, failure Failure, closed []StepRunID, forked bool) error {
	if forked {
		d.add(cancelBelow{groups: closed, keep: group.row.ID})
	}
	if group.insert < 0 {
		d.catchRow(group, how, moveStep{id: group.row.ID, from: StepRunning, attempt: group.row.Attempt})
	}
	return d.catch(group, how, failure)
}

// bears tells a part whose group may go on when it fails.
func (d *decider) bears(part *frame) bool {
	return part.row.Kind == KindItem ||
		part.row.Kind == KindLane && d.program.Node(part.row.StepID).Parallel().WaitFor == pipeline.WaitFirst
}

func callsOutside(kind pipeline.Kind) bool {
	return slices.Contains(outside, string(kind))
}
