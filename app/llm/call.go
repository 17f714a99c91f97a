package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Limits on a request. They keep a slip in a pipeline from becoming a bill.
const (
	// MaxPromptBytes is the most that Instructions and Prompt may hold together.
	MaxPromptBytes = 8 << 20
	// MaxTokensCeiling is the largest Request.MaxTokens that is accepted.
	MaxTokensCeiling = 1 << 20
)

// Request is one question to one model.
type Request struct {
	// Model is the provider's name in the Registry, a slash and the provider's own
	// model id, as in "openai/gpt-5.6-terra".
	Model string
	// Instructions say how to answer; they stay the same from call to call, so
	// they go first and a provider may cache them. May be empty.
	Instructions string
	// Prompt is the question with its data. Never empty.
	Prompt string
	// Answer holds the fields to answer with; nil asks for plain text.
	Answer *Schema
	// MaxTokens bounds what the model may write, reasoning included. It is always
	// sent, and always needed: the reservation of money depends on it.
	MaxTokens int64
	// Key is the idempotency key: the same for every repetition of the same call.
	Key string
	// Sample is a recorded answer for the practice model; other providers ignore
	// it. A JSON string where plain text is asked, else an object.
	Sample json.RawMessage
}

// Usage is what a call used, in tokens. The classes are disjoint: a token is
// counted once, in the class it is priced by.
type Usage struct {
	Input      int64 // read by the model, neither from nor into a cache
	CacheRead  int64 // read from the provider's cache
	CacheWrite int64 // read and written into the provider's cache
	Output     int64 // written for us to see
	Reasoning  int64 // written as thinking; priced like Output
	// Estimated is true when the provider gave no figures, or figures that do not
	// add up, and these were counted here from the text instead.
	Estimated bool
}

// Total is the sum over all classes.
func (u Usage) Total() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning
}

// Answer is a complete answer.
type Answer struct {
	Text      string          // as the model wrote it, cleaned of NUL and broken UTF-8
	Data      json.RawMessage // the fields asked for, in the order asked; nil for plain text
	Usage     Usage
	Model     string   // the model as billed, in the provider's words, without the registry's prefix
	Finish    string   // why the model stopped, in the provider's words
	RequestID string   // the provider's name for this call, for support questions
	Raw       []byte   // the provider's answer as JSON, for the technical view
	Note      string   // a remark every reader of the answer must see; mostly empty
	Repairs   []string // what was mended by rule while reading, in plain words
	Practice  bool     // written by the practice model: nothing was read by an AI
}

// Provider asks one provider's models. Implementations are safe for concurrent
// use, ask once, and return an *Error for everything that goes wrong.
type Provider interface {
	// Call asks the model named by req.Model, which here is the provider's own id
	// without the registry's prefix.
	Call(ctx context.Context, req Request) (Answer, error)
}

// Call asks the model that req names. The error is always an *Error.
func Call(ctx context.Context, registry *Registry, req Request) (Answer, error) {
	if err := req.check(); err != nil {
		return Answer{}, err
	}
	provider, id, err := registry.Provider(req.Model)
	if err != nil {
		return Answer{}, err
	}
	if ctx.Err() != nil {
		return Answer{}, stopped(ctx, ctx.Err(), false)
	}
	req.Model = id
	answer, err := provider.Call(ctx, req)
	if err == nil {
		return answer, nil
	}
	if fault := new(Error); errors.As(err, &fault) {
		return Answer{}, fault
	}
	// A provider that breaks its promise: nothing is known, so the worst is assumed.
	return Answer{}, &Error{Class: ClassServer, Message: "The model could not be asked.", Dispatched: true, cause: err}
}

// check refuses what no provider should see. The error is an *Error.
func (r Request) check() error {
	size := len(r.Instructions) + len(r.Prompt)
	switch {
	case r.Prompt == "":
		return invalid("There is nothing to ask: the prompt is empty.")
	case size > MaxPromptBytes:
		return invalid(fmt.Sprintf("The prompt has %d bytes; at most %d can be sent. Shorten the inserted data.", size, MaxPromptBytes))
	case r.MaxTokens <= 0:
		return invalid("The longest answer is not set. Give the step a limit in tokens above 0.")
	case r.MaxTokens > MaxTokensCeiling:
		return invalid(fmt.Sprintf("The longest answer is set to %d tokens; at most %d can be asked for.", r.MaxTokens, int64(MaxTokensCeiling)))
	case r.Answer == nil:
		return nil
	}
	if err := r.Answer.Check(); err != nil {
		return invalid("The answer fields cannot be asked for: " + err.Error() + ".")
	}
	return nil
}
