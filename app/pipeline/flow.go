package pipeline

import "fmt"

// Branch goes through its cases in order and runs the steps of the first whose
// condition holds. Its output holds "case", the id of that case.
type Branch struct {
	Cases     []Case `json:"cases"`
	Otherwise []Step `json:"otherwise,omitempty"`
}

// Case is one way of a decision.
type Case struct {
	ID    string `json:"id"` // stable within its step
	Name  string `json:"name"`
	When  string `json:"when"` // formula that gives yes or no
	Steps []Step `json:"steps"`
}

// LimitAction is what happens when a loop reaches one of its limits.
type LimitAction string

// What a loop does at its limit.
const (
	LimitBest LimitAction = "best" // go on with the best round so far, by score
	LimitAsk  LimitAction = "ask"
	LimitFail LimitAction = "fail"
)

// Repeat runs its steps again until a condition holds or a limit is reached. Its
// output holds "rounds", how many there were, "reason", and "best", the result of the
// round that the loop goes on with.
type Repeat struct {
	Steps     []Step      `json:"steps"`
	Until     string      `json:"until"`
	MaxRounds int         `json:"max_rounds"`
	MaxCost   int64       `json:"max_cost"`        // micro-USD; no round begins once this is spent
	MaxTime   Duration    `json:"max_time"`        // no round begins later than this
	Score     string      `json:"score,omitempty"` // formula; the higher the better
	AtLimit   LimitAction `json:"at_limit"`
	Ask       []Person    `json:"ask,omitempty"`    // who is asked at a limit
	Result    string      `json:"result,omitempty"` // formula; none: the output of the last step
}

// Why a loop has ended, found at steps.<id>.reason.
const (
	EndUntil  = "until" // its end condition holds
	EndRounds = "rounds"
	EndCost   = "cost"
	EndTime   = "time"
)

// Each runs its steps once for every item of a list, several at a time. Its
// output holds "results", in item order and null for an item that failed, and
// "failed" with "index" and "message" of each of those.
type Each struct {
	Items     string `json:"items"`
	AtOnce    int    `json:"at_once"`
	MaxFailed int    `json:"max_failed,omitempty"` // as many items may fail
	Steps     []Step `json:"steps"`
	Result    string `json:"result,omitempty"` // formula; none: the output of the last step
}

// Parallel runs branches side by side. Its output holds "results" by branch id
// and "combined": all of them in order, what more than half of them say (else null),
// the best by score, or the first good one.
type Parallel struct {
	Branches []Lane  `json:"branches"`
	WaitFor  WaitFor `json:"wait_for,omitempty"`
	Good     string  `json:"good,omitempty"` // formula over a branch's result, as item; for "first"
	Combine  Combine `json:"combine,omitempty"`
	Score    string  `json:"score,omitempty"` // formula over a branch's result, as item; for "best"
}

// Lane is one of the branches that run side by side.
type Lane struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Steps  []Step `json:"steps"`
	Result string `json:"result,omitempty"` // formula; none: the output of the last step
}

// WaitFor says when branches side by side are done.
type WaitFor string

// When branches side by side are done.
const (
	WaitAll   WaitFor = "all" // this is also what "" means
	WaitFirst WaitFor = "first"
)

// Combine says how the results of branches become one.
type Combine string

// How results of branches become one.
const (
	CombineCollect  Combine = "collect"  // this is also what "" means
	CombineMajority Combine = "majority" // what more than half of them say
	CombineBest     Combine = "best"
)

// StopOutcome is how a stopped run ends.
type StopOutcome string

// How a stopped run ends.
const (
	StopFinish StopOutcome = "finish" // completed; this is also what "" means
	StopRaise  StopOutcome = "raise"  // with the named exception
)

// Stop ends the run, or raises a named exception that on_error may catch.
type Stop struct {
	Outcome   StopOutcome `json:"outcome,omitempty"`
	Exception string      `json:"exception,omitempty"`
	Message   string      `json:"message,omitempty"`
}

// Kind is KindBranch.
func (*Branch) Kind() Kind { return KindBranch }

// Kind is KindRepeat.
func (*Repeat) Kind() Kind { return KindRepeat }

// Kind is KindEach.
func (*Each) Kind() Kind { return KindEach }

// Kind is KindParallel.
func (*Parallel) Kind() Kind { return KindParallel }

// Kind is KindStop.
func (*Stop) Kind() Kind { return KindStop }

func (c *Branch) lists() []nested {
	var out []nested
	for i, k := range c.Cases {
		out = append(out, nested{ListKey(k.ID), k.Name, fmt.Sprintf("with.cases[%d].steps", i), k.Steps})
	}
	return append(out, nested{ListOtherwise, "Otherwise", "with.otherwise", c.Otherwise})
}

func (c *Branch) slots() []slot {
	var out []slot
	for i, k := range c.Cases {
		out = append(out, slot{fmt.Sprintf("with.cases[%d].when", i), "Condition of “" + k.Name + "”", k.When, false})
	}
	return out
}

func (c *Repeat) lists() []nested { return []nested{{ListSteps, "", "with.steps", c.Steps}} }

func (*Repeat) slots() []slot { return nil }

func (c *Repeat) inner() []innerSlot {
	return append([]innerSlot{
		{slot{"with.until", "End condition", c.Until, false}, ListSteps},
		{slot{"with.score", "Score", c.Score, false}, ListSteps},
		{slot{"with.result", "Result of a round", c.Result, false}, ListSteps},
	}, c.askSlots()...)
}

// askSlots are the addresses of those who are asked at a limit.
func (c *Repeat) askSlots() []innerSlot {
	var out []innerSlot
	for i, p := range c.Ask {
		if p.Email != "" {
			out = append(out, innerSlot{slot{fmt.Sprintf("with.ask[%d].email", i), "People", p.Email, true}, ListSteps})
		}
	}
	return out
}

func (c *Each) lists() []nested { return []nested{{ListSteps, "", "with.steps", c.Steps}} }

func (c *Each) slots() []slot { return []slot{{"with.items", "Items", c.Items, false}} }

func (c *Each) inner() []innerSlot {
	return []innerSlot{{slot{"with.result", "Result of an item", c.Result, false}, ListSteps}}
}

func (c *Parallel) lists() []nested {
	var out []nested
	for i, l := range c.Branches {
		out = append(out, nested{ListKey(l.ID), l.Name, fmt.Sprintf("with.branches[%d].steps", i), l.Steps})
	}
	return out
}

func (c *Parallel) slots() []slot {
	return []slot{
		{"with.good", "What a good result is", c.Good, false},
		{"with.score", "Score", c.Score, false},
	}
}

func (c *Parallel) inner() []innerSlot {
	var out []innerSlot
	for i, l := range c.Branches {
		s := slot{fmt.Sprintf("with.branches[%d].result", i), "Result of “" + l.Name + "”", l.Result, false}
		out = append(out, innerSlot{s, ListKey(l.ID)})
	}
	return out
}

func (*Stop) lists() []nested { return nil }

func (c *Stop) slots() []slot { return []slot{{"with.message", "Message", c.Message, true}} }
