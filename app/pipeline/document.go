package pipeline

import "encoding/json"

// Document is the whole definition of a pipeline, as it is edited, published,
// exported and pinned by its runs.
type Document struct {
	Semantics int     `json:"semantics"`
	Name      string  `json:"name"`
	Note      string  `json:"note,omitempty"`
	RunName   string  `json:"run_name,omitempty"` // text that names each run
	Input     []Field `json:"input,omitempty"`
	Steps     []Step  `json:"steps"`
	Result    []Value `json:"result,omitempty"`  // what a finished run hands back, in this order
	RunCap    *int64  `json:"run_cap,omitempty"` // most one run may spend, micro-USD; nil: no cap of its own

	CostCentre string  `json:"cost_centre,omitempty"` // text that names who bears the costs of a run
	Sample     *Sample `json:"sample,omitempty"`

	Concurrency *Concurrency `json:"concurrency,omitempty"` // how many runs at once; nil: as many as come
	Search      []string     `json:"search,omitempty"`      // fields that runs are found by, like "input.order_number"
}

// needs is the least number of rules that knows all that the document uses.
func (d *Document) needs() int {
	least := 1
	if len(d.Search) > 0 {
		least = 4
	}
	for _, n := range grow(d).all {
		least = max(least, n.Step.needs())
	}
	return least
}

func (s *Step) needs() int {
	if w, ok := s.With.(*AI); ok && w.goesOn() {
		return 5
	}
	if len(s.OnError) > 0 || reuseOf(s.With) > 0 {
		return 3
	}
	if mail, ok := s.With.(*Email); ok && len(mail.Attachments) > 0 {
		return 3
	}
	if w, ok := s.With.(*Event); ok && w.Callback {
		return 3
	}
	switch s.Kind {
	case KindHTTP, KindChild, KindEmit:
		return 3
	case KindRepeat, KindEach, KindParallel, KindWait, KindEvent, KindStop:
		return 2
	}
	return 1
}

// Step is one box of the definition.
type Step struct {
	ID      string    `json:"id"` // stable; a rename of the step leaves it alone
	Name    string    `json:"name"`
	Note    string    `json:"note,omitempty"`
	Kind    Kind      `json:"kind"`
	Off     bool      `json:"off,omitempty"` // kept in the draft, left out of what is published
	Retry   *Retry    `json:"retry,omitempty"`
	Timeout *Duration `json:"timeout,omitempty"`  // most time one execution may take; nil: the kind's own limit
	OnError []Catch   `json:"on_error,omitempty"` // the first entry that fits the failure counts
	With    Config    `json:"with"`
}

// Value is a named formula.
type Value struct {
	Name    string `json:"name"`
	Formula string `json:"formula"`
}

// Retry says how often and how patiently a failed attempt is made again.
type Retry struct {
	Attempts int       `json:"attempts"`          // tries in all, the first included
	First    *Duration `json:"first,omitempty"`   // pause before the second try
	Longest  *Duration `json:"longest,omitempty"` // no pause grows beyond this
	On       []string  `json:"on,omitempty"`      // error classes; empty: those that may pass by themselves
}

// CatchAction is what happens to a failure that was caught.
type CatchAction string

// The things that can be done about a failure.
const (
	CatchSteps   CatchAction = "steps"   // run other steps instead
	CatchDefault CatchAction = "default" // go on with a value in place of the result
	CatchAsk     CatchAction = "ask"     // ask a person
	CatchFail    CatchAction = "fail"    // let it fail, maybe as something else
)

// ClassException among the classes of a Catch stands for every named exception.
const ClassException = "exception"

// Catch handles some classes of failure of a step, or of what is inside it.
type Catch struct {
	Classes []string        `json:"classes,omitempty"` // technical classes and named exceptions; empty: all
	Do      CatchAction     `json:"do"`
	Steps   []Step          `json:"steps,omitempty"`
	Default json.RawMessage `json:"default,omitempty"`
	Ask     *Review         `json:"ask,omitempty"` // its answer becomes the result; a no lets the step fail

	Exception string `json:"exception,omitempty"` // of fail: what to fail with; empty: as it failed
	Message   string `json:"message,omitempty"`   // of fail: text in place of the failure's own
}

// Sample is an example the pipeline can be tried with, with no key and no cost.
type Sample struct {
	// Input has one entry per input field; a file is {"name","content"}.
	Input json.RawMessage `json:"input,omitempty"`
	// Answers are recorded answers of the practice model by step id. A step in a list or
	// loop may have a list of them, one for each item or round.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
}

// Answer is the recorded answer of a step, in a turn of the list or loop around it, from
// 0. Turns beyond those that were recorded get the last; nil where there is none.
func (s *Sample) Answer(step string, turn int) json.RawMessage {
	answer := s.Answers[step]
	var turns []json.RawMessage
	if json.Unmarshal(answer, &turns) != nil {
		return answer // no list, so the same in every turn
	}
	if len(turns) == 0 {
		return nil
	}
	return turns[min(turn, len(turns)-1)]
}
