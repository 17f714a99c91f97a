package pipeline

import (
	"time"

	"tollgate/app/expr"
)

// CompiledRepeat is a Repeat configuration. Its formulas are read behind a round and
// see what the steps of the round gave.
type CompiledRepeat struct {
	Steps     []*Node
	Until     *expr.Formula
	Score     *expr.Formula // nil: the latest round is the best
	Result    *expr.Formula // nil: the output of the last step
	MaxRounds int
	MaxCost   int64 // micro-USD
	MaxTime   time.Duration
	AtLimit   LimitAction
	Ask       []CompiledPerson // with LimitAsk
}

// CompiledEach is an Each configuration. Result is read behind an item's steps.
type CompiledEach struct {
	Steps     []*Node
	Items     *expr.Formula
	Result    *expr.Formula // nil: the output of the last step
	AtOnce    int
	MaxFailed int
}

// CompiledParallel is a Parallel configuration with its defaults filled in.
type CompiledParallel struct {
	Lanes   []CompiledLane
	WaitFor WaitFor
	Combine Combine
	Good    *expr.Formula // reads item, a branch's result; nil: every result is good
	Score   *expr.Formula // reads item, too; set with CombineBest
}

// CompiledLane is one branch; Result is read behind its steps.
type CompiledLane struct {
	List   *ChildList
	Result *expr.Formula // nil: the output of the last step
}

// CompiledWait is a Wait configuration.
type CompiledWait struct {
	For   time.Duration // 0: see Until
	Until *expr.Formula // gives a date, or a date with time
}

// CompiledEvent is an Event configuration with its defaults filled in.
type CompiledEvent struct {
	Name       string
	Key        *expr.Text    // nil: the sender's key must be empty, too
	Deadline   time.Duration // 0: none
	OnDeadline DeadlineAction
	Callback   bool // it is answered at an address
}

// CompiledChild is a Child configuration.
type CompiledChild struct {
	Pipeline ID
	Version  int // 0: the one that is live when the step begins
	Input    []CompiledValue
	Wait     bool
}

// CompiledEmit is an Emit configuration.
type CompiledEmit struct {
	Name string
	Key  *expr.Text // nil: no key
	Data []CompiledValue
}

// CompiledStop is a Stop configuration with its defaults filled in.
type CompiledStop struct {
	Outcome   StopOutcome
	Exception string
	Message   *expr.Text // nil where there is none
}
