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
	renews bool   // the row is there and queued for the slice, since it is tried again
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
	files   []Content // that the output names
	kept    Digest    // an output that is stored already
	joins   bool      // it ends a group that several branches share
	failure *Failure
	note    string
	cost    int64  // micro-USD to add
	chain   *Chain // where the step stands in its chain from now on; nil: where it did
}

// catchStep is moveStep for a row whose failure is handled: it becomes the frame of what
// is done about it, or ends at once.
type catchStep struct {
	moveStep
	chosen pipeline.ListKey
}

// addAttempt records a try that ended.
type addAttempt struct {
	step           StepRunID
	attempt        Attempt
	sent, received []byte // to be kept beside it; nil: nothing is
}

// openWait promises to wake a step run.
type openWait struct {
	wait Wait
}

// startChild starts a run of another pipeline.
type startChild struct {
	run      RunID
	step     StepRunID
	stepID   string
	pipeline pipeline.ID
	version  int // 0: the one that is live
	input    []byte
	waits    bool
}

// sendEvent sends an event inside the workspace.
type sendEvent struct {
	event Event
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
	found   []pipeline.Found // what the result lets the run be found by
	failure *Failure
}

// insertItems adds a queued row for every item of a list, in order.
type insertItems struct {
	group  StepRun
	ids    []StepRunID
	values [][]byte // JSON
}

// beginItem begins an item that the slice has taken on.
type beginItem struct {
	id StepRunID
}

// releaseItems gives back the items that the slice has taken on and not begun.
type releaseItems struct{}

// noteGroup writes down at a group or turn that is running what it has come to.
type noteGroup struct {
	id     StepRunID
	chosen pipeline.ListKey
	score  string
	cost   int64 // micro-USD, all in all
}

// fork sets another slice going at a row.
type fork struct {
	slice      SliceID
	at, window StepRunID
}

// moveSlice notes where the slice itself stands, or only which list it counts towards.
type moveSlice struct {
	to     StepRunID // zero: where it stood before
	window StepRunID
}

// endWindow ends the other slices of a list that is over: they would find nothing to do.
type endWindow struct {
	list StepRunID
}

// cancelBelow ends everything else that is open inside the groups, or in the run.
type cancelBelow struct {
	groups []StepRunID
	keep   StepRunID // the one of them whose steps that handle a failure stay
	all    bool
}

func (insertItems) isChange()  {}
func (beginItem) isChange()    {}
func (releaseItems) isChange() {}
func (noteGroup) isChange()    {}
func (fork) isChange()         {}
func (moveSlice) isChange()    {}
func (endWindow) isChange()    {}
func (cancelBelow) isChange()  {}
func (startChild) isChange()   {}
func (sendEvent) isChange()    {}

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
	next    *call     // the outside call to make after the commit
	stand   *stand    // where the slice goes on after the commit; nil with no next: it ends
	yields  bool      // the slice goes on in another job, behind the step that finished
	counts  StepRunID // the list that the slice counts towards from now on
	items   []StepRun // that it has taken on and not begun
	missing []want    // what must be loaded before deciding again
}

// stand is a row at which a slice goes on at once: behind it where it has ended.
type stand struct {
	row    StepRun
	groups []StepRun // open groups around it, innermost first
}

// call is an outside call that a decision begins.
type call struct {
	node   *pipeline.Node
	row    StepRun
	groups []StepRun // open groups around it, innermost first
	input  []byte
	asked  []byte // what the call is given, where that differs from the step's input
	hold   *ledger.Hold
}

// outcome is what came out at a position, which decide then acts on.
type outcome struct {
	kind       outcomeKind
	output     []byte    // of a done one
	files      []Content // that the output names
	decoded    any       // the output as formulas read it, where it was read before
	failure    *Failure
	retryable  bool          // whether another try may help
	unsure     bool          // nobody can tell whether the call arrived
	retryAfter time.Duration // the other side's wish; 0: none
	uncalled   bool          // the call was not made, for a limit of ours
	note       string
	followed   string    // what followed from a failed try, for its record
	sent       []byte    // to a model, where that is kept
	received   []byte    // from it
	settle     *settle   // the money of the call, nil where none was held
	cost       int64     // micro-USD, for the step's own sum
	lost       lostItems // of the list at which the slice has arrived
}

type outcomeKind int

const (
	entered     outcomeKind = iota // the run begins
	done                           // the step's call or wait gave a result
	failed                         // it gave an error
	passed                         // the step had ended before; go on behind it
	again                          // the step's call is to be made, again or after a wait
	interrupted                    // the worker died or was stopped during the call
	renewed                        // the step is to begin again, in the row that it has
	arrived                        // the slice has come to a group, or to a turn to begin
)
