package engine

import (
	"time"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// RunID identifies a run.
type RunID = tenants.IDOf[Run]

// RunState is where a run stands. The three final states never change.
type RunState string

// The states of a run, equal to the list in the table's check.
const (
	RunQueued     RunState = "queued" // its pipeline takes no more at once
	RunRunning    RunState = "running"
	RunPausing    RunState = "pausing"
	RunPaused     RunState = "paused"
	RunCancelling RunState = "cancelling"
	RunCompleted  RunState = "completed"
	RunFailed     RunState = "failed"
	RunCancelled  RunState = "cancelled"
)

// Final tells whether the run has ended.
func (s RunState) Final() bool {
	return s == RunCompleted || s == RunFailed || s == RunCancelled
}

// Run is one execution of a pipeline's version with an input.
type Run struct {
	ID           RunID
	PipelineID   pipeline.ID
	PipelineName string
	Version      int
	Number       int64 // counts the runs of the pipeline, from 1
	Name         string
	State        RunState
	Sample       bool // the input is the pipeline's own sample
	Input        Digest
	Result       Digest // zero until completed
	Failure      *Failure
	StartedBy    tenants.UserID
	StartedName  string
	CreatedAt    time.Time
	EndedAt      *time.Time
	EndedBy      string // who cancelled it; empty otherwise
	Parent       RunID  // whose step started it; zero for a run that nobody's did
	ParentStep   StepRunID
	Root         RunID // the run at the top of the tree; zero at the top
	Depth        int   // how many runs are above
	Reopened     int   // how often somebody let it go on after it had failed
	Origin       RunID // the run that this one does again from OriginStep; zero for any other
	OriginStep   string
}

// rootOrSelf is the run at the top of the tree.
func (r *Run) rootOrSelf() RunID {
	if r.Root.IsZero() {
		return r.ID
	}
	return r.Root
}

// Failure tells why a step or run failed, in words for people, with the other side's
// own text apart.
type Failure struct {
	Class   string `json:"class"`             // one of the classes below, or one that a caller names
	Message string `json:"message"`           // what happened and what to do, in plain words
	Detail  string `json:"detail,omitempty"`  // technical text, as the other side gave it
	StepID  string `json:"step_id,omitempty"` // the step that failed, on a run's failure
	Raised  bool   `json:"raised,omitempty"`  // by a pipeline; Class is the exception's name then

	loop StepRunID // whose limit on money was reached; it acts on that, once it comes there
}

// Classes of failures that the engine itself knows; callers name those of their side.
const (
	ClassFormula        = "formula"         // a formula or text could not be worked out
	ClassNobody         = "nobody_to_ask"   // a review without anybody who may decide
	ClassBadReview      = "bad_review"      // a review's question cannot be asked as it came out
	ClassExpired        = "expired"         // a deadline passed without an answer
	ClassTooFar         = "too_far"         // a wait that the run cannot live to see the end of
	ClassTooLarge       = "too_large"       // a value beyond the limit
	ClassLimit          = "limit"           // a loop reached one of its limits
	ClassNoneGood       = "none_good"       // no branch side by side gave a good result
	ClassInterrupted    = "interrupted"     // the worker died or was stopped in the middle
	ClassUnsure         = "unsure"          // nobody can tell whether a call arrived
	ClassNoPrice        = "no_price"        // the price of a model is not known, so it may not be called
	ClassTooDear        = "too_dear"        // a call may cost more than its step allows
	ClassNoPipeline     = "no_pipeline"     // the pipeline of a child run is not there, or not published
	ClassBadInput       = "bad_input"       // what a child run is handed does not fit its pipeline
	ClassTooDeep        = "too_deep"        // pipelines that start pipelines beyond the limit
	ClassTooMany        = "too_many"        // more runs than one run, or the workspace, may have
	ClassChildCancelled = "child_cancelled" // the run that a step waits for was cancelled
	ClassSkipped        = "skipped"         // a start that its pipeline's limit of runs at once refused
	ClassInternal       = "internal"        // a defect of ours
)
