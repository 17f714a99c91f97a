package pipeline

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

// AI asks a language model. Its output holds the answer fields, or "text" where
// no fields are asked for.
type AI struct {
	Models       []string      `json:"models"` // tried in order, such as "practice/standard"
	Instructions string        `json:"instructions"`
	Prompt       string        `json:"prompt"`
	Answer       []Field       `json:"answer,omitempty"`
	MaxTokens    int           `json:"max_tokens,omitempty"` // 0: DefaultAnswerTokens
	MaxCost      int64         `json:"max_cost,omitempty"`   // micro-USD for one execution; 0: only the caps bind
	OnRefusal    RefusalAction `json:"on_refusal,omitempty"`
	IfMissing    MissingAction `json:"if_missing,omitempty"`
	Reuse        bool          `json:"reuse,omitempty"`        // take an identical earlier answer
	ReuseFor     *Duration     `json:"reuse_for,omitempty"`    // how old that may be; nil: DefaultReuse
	KeepRequest  bool          `json:"keep_request,omitempty"` // store what was sent, too
}

// Kind is KindAI.
func (*AI) Kind() Kind { return KindAI }

func (*AI) lists() []nested { return nil }

func (c *AI) slots() []slot {
	return []slot{
		{path: "with.instructions", label: "Instructions", source: c.Instructions, text: true},
		{path: "with.prompt", label: "Prompt", source: c.Prompt, text: true},
	}
}
