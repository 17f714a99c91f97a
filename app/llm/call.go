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
	// Files are images and documents that the model shall look at, beside Prompt.
	// Only models with TakesFiles are given any.
	Files []File
	// Cache asks the provider to keep the instructions for the next calls where that is
	// not done by itself. Writing them there costs extra, so whoever asks must know
	// the price of it.
	Cache bool
	// Credential is the key to call with; the zero value means the provider's own
	// configured key.
	Credential Credential
	// Live is called with each piece of text as it comes, from the calling goroutine,
	// so it must not block; it may be nil. Pieces are valid UTF-8 without NUL. They are
	// for looking at only: what counts is Answer.Text, and a call may still fail.
	Live func(text string)
}

// Credential is a key for one provider. It is read for the call and kept nowhere.
type Credential struct {
	Secret string
	// BaseURL is another server that speaks the provider's format; empty means the
	// provider's configured one. It gets Secret and never the configured key, and is
	// dialled through the guard of app/outbound.
	BaseURL string
}

// String keeps a key out of logs that print a request.
func (Credential) String() string { return "credential" }

// GoString does the same for %#v.
func (Credential) GoString() string { return "credential" }

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
	provider, id, err := registry.route(req)
	if err != nil {
		return Answer{}, err
	}
	model, _ := registry.Model(req.Model)
	if err := model.check(req); err != nil {
		return Answer{}, err
	}
	if model.MaxOutput > 0 {
		req.MaxTokens = min(req.MaxTokens, model.MaxOutput) // more is an error there, and never written
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
		fault.Terminal = fault.Terminal || terminal[fault.Class]
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
	}
	if err := checkFiles(r.Files); err != nil {
		return err
	}
	if r.Answer == nil {
		return nil
	}
	if err := r.Answer.Check(); err != nil {
		return invalid("The answer fields cannot be asked for: " + err.Error() + ".")
	}
	return nil
}
