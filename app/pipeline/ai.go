package pipeline

import "fmt"

// RefusalAction is what happens when a model declines to answer.
type RefusalAction string

// What can be done when a model declines.
const (
	RefusalFail RefusalAction = "fail" // the step fails; this is also what "" means
	RefusalNext RefusalAction = "next_model"
	RefusalAsk  RefusalAction = "ask"
)

// MissingAction is what happens when a model leaves a required answer field empty.
type MissingAction string

// What can be done about an answer field that stayed empty.
const (
	MissingFail  MissingAction = "fail" // the step fails; this is also what "" means
	MissingEmpty MissingAction = "empty"
	MissingAsk   MissingAction = "ask"
)

// KeepLevel is what is stored of each call to a model, beside what it gave.
type KeepLevel string

// The levels. Each keeps what the one before keeps.
const (
	KeepAnswer   KeepLevel = "answer"  // only what later steps read
	KeepResponse KeepLevel = "full"    // all that the provider sent; this is also what "" means
	KeepSent     KeepLevel = "request" // what was sent to it, too
)

// AI asks a language model. Its output holds the answer fields, or "text" where
// no fields are asked for.
type AI struct {
	Models       []string      `json:"models"` // tried in order, such as "practice/standard"
	Instructions string        `json:"instructions"`
	Prompt       string        `json:"prompt"`
	Files        []string      `json:"files,omitempty"` // formulas; each gives a file, a list of files, or nothing
	Answer       []Field       `json:"answer,omitempty"`
	MaxTokens    int           `json:"max_tokens,omitempty"` // 0: DefaultAnswerTokens
	MaxCost      int64         `json:"max_cost,omitempty"`   // micro-USD for one execution; 0: only the caps bind
	OnRefusal    RefusalAction `json:"on_refusal,omitempty"`
	IfMissing    MissingAction `json:"if_missing,omitempty"`
	Ask          []Person      `json:"ask,omitempty"`          // with RefusalAsk or MissingAsk; nobody named: the owners and admins
	Reuse        bool          `json:"reuse,omitempty"`        // take an identical earlier answer
	ReuseFor     *Duration     `json:"reuse_for,omitempty"`    // how old that may be; nil: DefaultReuse
	Keep         KeepLevel     `json:"keep,omitempty"`         // what is stored of each call
	KeepRequest  bool          `json:"keep_request,omitempty"` // an older word for KeepSent
}

// Kind is KindAI.
func (*AI) Kind() Kind { return KindAI }

func (*AI) lists() []nested { return nil }

func (c *AI) slots() []slot {
	out := []slot{
		{path: "with.instructions", label: "Instructions", source: c.Instructions, text: true},
		{path: "with.prompt", label: "Prompt", source: c.Prompt, text: true},
	}
	for i, file := range c.Files {
		out = append(out, slot{fmt.Sprintf("with.files[%d]", i), "File to read", file, false})
	}
	for i, p := range c.Ask {
		out = append(out, slot{fmt.Sprintf("with.ask[%d].email", i), "Who is asked", p.Email, true})
	}
	return out
}

// asks tells whether people may be asked for what the models do not give.
func (c *AI) asks() bool { return c.OnRefusal == RefusalAsk || c.IfMissing == MissingAsk }

// goesOn tells that it uses what documents know from rules number 5 on.
func (c *AI) goesOn() bool {
	return len(c.Models) > 1 || len(c.Files) > 0 || c.OnRefusal != "" || c.IfMissing != ""
}
