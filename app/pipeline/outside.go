package pipeline

import "fmt"

// Email sends one e-mail. Its output holds "to", "subject" and "message_id".
type Email struct {
	To      []string `json:"to"` // texts; each gives one address or several apart by commas
	CC      []string `json:"cc,omitempty"`
	ReplyTo string   `json:"reply_to,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`

	Attachments []string `json:"attachments,omitempty"` // formulas; each gives a file, a list of files, or nothing
}

// Child starts another pipeline. Its output holds "run" and, where it waits, "result".
type Child struct {
	Pipeline string  `json:"pipeline"`          // id of the pipeline
	Version  int     `json:"version,omitempty"` // 0: the newest when the run starts
	Input    []Value `json:"input,omitempty"`
	Wait     bool    `json:"wait,omitempty"`
}

// Emit sends an event inside the workspace. Its output holds "event", the event's id.
type Emit struct {
	Name string  `json:"name"`
	Key  string  `json:"key,omitempty"` // text that the waiting side must match
	Data []Value `json:"data,omitempty"`
}

// What an event's wait came to, found at steps.<id>.outcome.
const (
	EventReceived = "received"
	EventTimeout  = "timeout" // the deadline passed, and the step says to go on
)

// Event waits for an event. Its output holds "outcome" and "data", which is null where
// none came in time.
type Event struct {
	Name       string         `json:"name"`
	Key        string         `json:"key,omitempty"` // text that the sender's key must equal
	Deadline   *Duration      `json:"deadline,omitempty"`
	OnDeadline DeadlineAction `json:"on_deadline,omitempty"` // fail or continue
	Callback   bool           `json:"callback,omitempty"`    // another system answers at an address of its own; steps before it hand on callback.<id>
}

// Wait waits for a time; exactly one of its fields is set.
type Wait struct {
	For   *Duration `json:"for,omitempty"`
	Until string    `json:"until,omitempty"` // formula that gives a date or a date with time
}

// Set computes named values. Its output holds each of them.
type Set struct {
	Values []Value `json:"values"` // a later one may not read an earlier one of the same step
}

// Kind is KindEmail.
func (*Email) Kind() Kind { return KindEmail }

// Kind is KindChild.
func (*Child) Kind() Kind { return KindChild }

// Kind is KindEmit.
func (*Emit) Kind() Kind { return KindEmit }

// Kind is KindEvent.
func (*Event) Kind() Kind { return KindEvent }

// Kind is KindWait.
func (*Wait) Kind() Kind { return KindWait }

// Kind is KindSet.
func (*Set) Kind() Kind { return KindSet }

func (*Email) lists() []nested { return nil }
func (*Child) lists() []nested { return nil }
func (*Emit) lists() []nested  { return nil }
func (*Event) lists() []nested { return nil }
func (*Wait) lists() []nested  { return nil }
func (*Set) lists() []nested   { return nil }

func (c *Email) slots() []slot {
	var out []slot
	for i, to := range c.To {
		out = append(out, slot{fmt.Sprintf("with.to[%d]", i), "To", to, true})
	}
	for i, cc := range c.CC {
		out = append(out, slot{fmt.Sprintf("with.cc[%d]", i), "Copy to", cc, true})
	}
	for i, file := range c.Attachments {
		out = append(out, slot{fmt.Sprintf("with.attachments[%d]", i), "Attachment", file, false})
	}
	return append(out,
		slot{"with.reply_to", "Reply to", c.ReplyTo, true},
		slot{"with.subject", "Subject", c.Subject, true},
		slot{"with.body", "Text", c.Body, true},
	)
}

func (c *Child) slots() []slot { return valueSlots("with.input", c.Input) }

func (c *Emit) slots() []slot {
	return append([]slot{{"with.key", "Key", c.Key, true}}, valueSlots("with.data", c.Data)...)
}

func (c *Event) slots() []slot { return []slot{{"with.key", "Key", c.Key, true}} }

func (c *Wait) slots() []slot { return []slot{{"with.until", "Until", c.Until, false}} }

func (c *Set) slots() []slot { return valueSlots("with.values", c.Values) }

// valueSlots gives the slots of a list of named formulas that sits at path.
func valueSlots(path string, values []Value) []slot {
	var out []slot
	for i, v := range values {
		out = append(out, slot{fmt.Sprintf("%s[%d].formula", path, i), "Value “" + v.Name + "”", v.Formula, false})
	}
	return out
}
