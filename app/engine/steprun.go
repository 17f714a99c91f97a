package engine

import (
	"time"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// StepRunID identifies one execution of a step; it is also the idempotency key of the
// step's outside call.
type StepRunID = tenants.IDOf[StepRun]

// StepState is where one execution of a step stands.
type StepState string

// The states of a step run, equal to the list in the table's check.
const (
	StepQueued    StepState = "queued" // an item that no branch has begun
	StepRunning   StepState = "running"
	StepWaiting   StepState = "waiting"
	StepDone      StepState = "done"
	StepFailed    StepState = "failed"
	StepSkipped   StepState = "skipped"
	StepCancelled StepState = "cancelled"
)

// Open tells whether the step run has not ended yet.
func (s StepState) Open() bool { return s == StepQueued || s == StepRunning || s == StepWaiting }

// StepRun is one execution of a step in a run. A step that holds others has a row for
// itself and, inside that one, a row for each part of it with the same step id: a loop
// for each round, a list for each item, branches side by side one each.
type StepRun struct {
	ID           StepRunID
	Parent       StepRunID // zero at the top
	StepID       string
	Kind         pipeline.Kind
	List         pipeline.ListKey // which list of the parent holds it
	Turn         int              // of a round, item or branch side by side: its place, from 0
	State        StepState
	Attempt      int   // the current or last try, from 1
	Fence        int64 // of the slice that may finish it
	Slice        SliceID
	AtOnce       int              // of a list: how many slices may go in it at once; read by the pump only
	Chosen       pipeline.ListKey // of a branch: the case it took; of a loop: the turn of its best round
	Score        string           // exact decimal, of a round or branch; of a loop: its best round's; may be empty
	Input        Digest           // what the outside call was given; of an item: its value
	Output       Digest
	Failure      *Failure
	Note         string // what a reader should know, such as a repeated call
	CostMicros   int64
	Chain        Chain
	EarlierTries int       // before somebody had it tried again
	ReusedFrom   StepRunID // whose output was taken over instead of doing the step; zero: none
	BegunAt      time.Time // begin of the current try
	CreatedAt    time.Time // begin of the first
	EndedAt      *time.Time
}

// AttemptOutcome is how a try ended.
type AttemptOutcome string

// How a try can end, equal to the list in the table's check.
const (
	AttemptDone        AttemptOutcome = "done"
	AttemptFailed      AttemptOutcome = "failed"
	AttemptInterrupted AttemptOutcome = "interrupted"
	AttemptCancelled   AttemptOutcome = "cancelled"
)

// Attempt is one ended try of a step that reached outside.
type Attempt struct {
	Number  int
	Outcome AttemptOutcome
	BeganAt time.Time
	EndedAt time.Time
	Failure *Failure
	Note    string

	Model          string // that was asked, by a step that asks one; empty where the row of a try does not say
	Place, Reask   int    // of the model in the step's chain, and how often it had been asked anew
	Followed       string // what followed from a try that gave nothing, in plain words
	Sent, Received Digest // what went out and came in, as far as the step keeps it
}

// WaitID identifies a wait.
type WaitID = tenants.IDOf[Wait]

// WaitKind is what a wait can be woken by.
type WaitKind string

// The kinds of waits, equal to the list in the table's check.
const (
	WaitTime   WaitKind = "time"
	WaitEvent  WaitKind = "event"
	WaitReview WaitKind = "review"
	WaitChild  WaitKind = "child"
	WaitSlot   WaitKind = "slot"
	WaitCap    WaitKind = "cap"
	WaitPause  WaitKind = "pause"
	WaitRetry  WaitKind = "retry"
)

// Wait is a durable promise to wake a step run.
type Wait struct {
	ID        WaitID
	StepRun   StepRunID
	Kind      WaitKind
	Uncalled  bool   // of a WaitRetry: the call was not made, since a limit of ours left no room for it
	State     string // open, done, expired, cancelled
	Due       *time.Time
	Reason    string             // why, in words for people
	Cap       *ledger.CapReached // of a WaitCap that is being opened: which cap
	EventName string             // of the event that is waited for
	EventKey  string             // which the event's key must equal
	OpenedAt  time.Time
	ClosedAt  *time.Time
}

// SliceID identifies a slice.
type SliceID = tenants.IDOf[slice]
