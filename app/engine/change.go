package engine

import (
	"time"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
)

// A change is one entry of what decide asks to be written. The committer turns the
// whole list into guarded statements, all or nothing.
type change interface{ isChange() }

// insertStep adds a step run's row, in whatever state it begins.
type insertStep struct {
	row    StepRun
	input  []byte // what its outside call is given; nil where it makes none
	output []byte // of a step that is done at once
}

// moveStep changes an existing row: it must still be in state from, and belong to the
// slice under the fence. A group belongs to no slice.
type moveStep struct {
	id      StepRunID
	from    StepState
	slice   SliceID
	fence   int64
	to      StepState
	attempt int // the try that the row now counts
	output  []byte
	failure *Failure
	note    string
	cost    int64 // micro-USD to add
}

// addAttempt records a try that ended.
type addAttempt struct {
	step    StepRunID
	attempt Attempt
}

// openWait promises to wake a step run.
type openWait struct {
	wait Wait
}

// openReview asks people; the wait for it is a change of its own.
type openReview struct {
	step  StepRunID
	draft reviewDraft
}

// hold reserves the money of a call that begins; the whole list is void where it does
// not fit under a cap.
type hold struct {
	hold ledger.Hold
}

// settle ends a call's money: books what it cost, gives a hold back, or books what a
// lost worker left open. Exactly one field is set.
type settle struct {
	settlement *ledger.Settlement // nil: see below
	release    ledger.HoldID      // zero: see below
	abandoned  *abandoned
}

// abandoned are the holds that a lost worker may have left behind.
type abandoned struct {
	step    StepRunID
	attempt int
}

// endRun gives the run its final state.
type endRun struct {
	state   RunState
	result  []byte
	failure *Failure
}

func (insertStep) isChange() {}
func (moveStep) isChange()   {}
func (addAttempt) isChange() {}
func (openWait) isChange()   {}
func (openReview) isChange() {}
func (hold) isChange()       {}
func (settle) isChange()     {}
func (endRun) isChange()     {}

// decision is what decide returns.
type decision struct {
	changes []change
	next    *call    // the outside call to make after the commit; nil ends the slice
	yields  bool     // the slice goes on in another job, behind the step that finished
	missing []string // ids of steps whose outputs must be loaded before deciding again
}

// call is an outside call that a decision begins.
type call struct {
	node   *pipeline.Node
	row    StepRun
	groups []StepRun // open groups around it, innermost first
	input  []byte
	hold   *ledger.Hold
}

// outcome is what came out at a position, which decide then acts on.
type outcome struct {
	kind       outcomeKind
	output     []byte // of a done one
	failure    *Failure
	retryable  bool          // whether another try may help
	retryAfter time.Duration // the other side's wish; 0: none
	note       string
	settle     *settle // the money of the call, nil where none was held
	cost       int64   // micro-USD, for the step's own sum
}

type outcomeKind int

const (
	entered     outcomeKind = iota // the run begins
	done                           // the step's call or wait gave a result
	failed                         // it gave an error
	passed                         // the step had ended before; go on behind it
	again                          // the step's call is to be made, again or after a wait
	interrupted                    // the worker died or was stopped during the call
)
