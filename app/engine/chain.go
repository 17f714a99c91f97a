package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"tollgate/app/pipeline"
)

// Chain is where a step stands in its chain of models. The zero value is its beginning.
type Chain struct {
	Place     int    `json:"place,omitempty"`      // of the model that is asked, from 0
	Reask     int    `json:"reask,omitempty"`      // how often that model was asked anew, since its answer could not be used
	Since     int    `json:"since,omitempty"`      // tries before that model's first
	Problem   string `json:"problem,omitempty"`    // what the next call says about the answer before
	MaxTokens int    `json:"max_tokens,omitempty"` // of the next answer, where that may be longer than the step says
	Lacks     string `json:"lacks,omitempty"`      // the class of what was wrong, where people are asked for the answer
	Spent     int64  `json:"spent,omitempty"`      // micros that tries which came to an end cost; what a lost worker's may have cost is not the step's
	PutOff    int    `json:"put_off,omitempty"`    // how often the current try's call was not made, for a limit of ours
}

// chainFrom reads what a row keeps; null is the beginning.
func chainFrom(raw []byte) (Chain, error) {
	var c Chain
	if raw == nil {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("read where a step stands in its chain: %w", err)
	}
	return c, nil
}

// json is the place for Postgres; nil leaves what is there.
func (c *Chain) json() []byte {
	if c == nil {
		return nil
	}
	encoded, err := json.Marshal(c)
	if err != nil { // numbers and a text only: it cannot fail
		return []byte(`{}`)
	}
	return encoded
}

// key is the idempotency key of the call that the step makes now: the same for each try
// of it, another one for another model or question.
func (s *StepRun) key() string {
	if s.Chain.Place == 0 && s.Chain.Reask == 0 {
		return s.ID.String()
	}
	return fmt.Sprintf("%s-%d-%d", s.ID, s.Chain.Place, s.Chain.Reask)
}

// AnsweredByPeople tells that the step asks models, and that people gave its answer.
func (s *StepRun) AnsweredByPeople() bool { return s.Chain.Lacks != "" && s.State == StepDone }

// asked is what the model at the chain's place is given.
func (c Chain) asked(ask AIInput) AIInput {
	if c.Place < len(ask.Models) {
		ask.Models = ask.Models[c.Place : c.Place+1]
	}
	ask.Problem = c.Problem
	if c.MaxTokens > ask.MaxTokens {
		ask.MaxTokens = c.MaxTokens
	}
	return ask
}

// model is the model at the chain's place; empty for a step of another kind.
func (c Chain) model(node *pipeline.Node) string {
	if ask := node.AI(); ask != nil && c.Place < len(ask.Models) {
		return ask.Models[c.Place]
	}
	return ""
}

// shortestPutOff keeps a step that a limit of ours put off from coming back at once.
const shortestPutOff = 100 * time.Millisecond

// putOff lets a step wait whose call was not made, since a limit of ours leaves no room for
// it now: without a worker, holding no money, and without using up a try.
func (d *decider) putOff() error {
	row := *d.step
	row.Chain.PutOff++
	d.step = &row
	d.outcome.note = ""
	due := d.now.Add(min(max(d.outcome.retryAfter, shortestPutOff), LongestAsked))
	d.add(d.moved(StepWaiting, row.Attempt))
	d.addMoney()
	d.add(openWait{Wait{StepRun: row.ID, Kind: WaitRetry, Uncalled: true, Due: &due, Reason: d.outcome.failure.Message}})
	d.park(d.frames(d.groups))
	return nil
}

// asked is what the call is given where that is not the step's input as it is; nil else.
func (s *StepRun) asked(input []byte) []byte {
	if s.Chain.Place == 0 && s.Chain.Reask == 0 {
		return nil
	}
	var ask AIInput
	if err := json.Unmarshal(input, &ask); err != nil {
		return nil // money could not be reserved for it, so there is no call
	}
	encoded, err := json.Marshal(s.Chain.asked(ask))
	if err != nil {
		return nil // what was just read can be written
	}
	return encoded
}

// given is what the call is given.
func (c *call) given() []byte {
	if c.asked != nil {
		return c.asked
	}
	return c.input
}
