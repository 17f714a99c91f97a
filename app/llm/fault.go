package llm

import (
	"context"
	"errors"
	"strings"
	"time"

	"tollgate/app/llm/fields"
)

// Class says what kind of thing went wrong, and so what to do about it.
type Class string

// The classes of errors.
const (
	ClassRateLimited    Class = "rate_limited"     // too many calls or tokens; wait
	ClassOverloaded     Class = "overloaded"       // the provider has no room; wait or take the next model
	ClassServer         Class = "server"           // the provider failed
	ClassTimeout        Class = "timeout"          // no answer in time
	ClassConnection     Class = "connection"       // not reached, or the line broke
	ClassContextTooLong Class = "context_too_long" // the prompt is too long for this model
	ClassRefused        Class = "refused"          // the model or its filter declined
	ClassInvalidRequest Class = "invalid_request"  // the provider does not accept the request; repeating is useless
	ClassAuth           Class = "auth"             // the key is wrong or may not do this
	ClassSpendLimit     Class = "spend_limit"      // the account at the provider has no money left; repeating is useless
	ClassMalformed      Class = "malformed"        // the answer cannot be read or does not fit the fields
	ClassEmpty          Class = "empty"            // the answer is blank
	ClassTruncated      Class = "truncated"        // the answer hit MaxTokens
)

// terminal are the classes that repeating the same call cannot mend.
var terminal = map[Class]bool{
	ClassContextTooLong: true, ClassRefused: true, ClassInvalidRequest: true, ClassAuth: true, ClassSpendLimit: true,
}

// Error is the one type of error of this package.
type Error struct {
	Class   Class
	Message string // for people: what is wrong and what to do, in plain words
	Detail  string // the provider's own text or the exact place, cleaned and bounded; may be empty
	// RetryAfter is how long the provider asks to wait, at most outbound.MaxRetryAfter.
	// Zero means that it said nothing usable; "at once" is one millisecond.
	RetryAfter time.Duration
	Status     int // HTTP status, 0 when none came
	// Terminal tells that the same call to the same model with the same key cannot
	// succeed soon: waiting and repeating it are useless.
	Terminal bool
	// Limits is what the provider said of its limits.
	Limits Limits
	// Dispatched is true when the provider may have charged for the call.
	Dispatched bool
	// Usage is what the call used: the provider's figures, or counted from what had
	// come. It is nil when Dispatched is false, and when nothing had come and nothing
	// can be said: the model may then have worked up to MaxTokens.
	Usage *Usage
	// Answer is what came before things went wrong: text, model, request id, and the
	// request as Sent. It is for the technical view and is never to be taken as an
	// answer.
	Answer Answer

	cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Class) + ": " + e.Message
	}
	return string(e.Class) + ": " + e.Message + " (" + e.Detail + ")"
}

// Unwrap yields context.Canceled or context.DeadlineExceeded when one of them
// ended the call, and nothing else: causes name inner addresses.
func (e *Error) Unwrap() error {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e.cause, end) {
			return end
		}
	}
	return nil
}

// Cause is the underlying error, for the operator's log only: it may name inner
// addresses. It may be nil.
func (e *Error) Cause() error { return e.cause }

// invalid is the error of a request that was not sent.
func invalid(message string) *Error {
	return &Error{Class: ClassInvalidRequest, Message: message, Terminal: true}
}

// stopped is the error of a call that its context ended.
func stopped(ctx context.Context, err error, dispatched bool) *Error {
	fault := &Error{Class: ClassConnection, Dispatched: dispatched, cause: err,
		Message: "The call was stopped before the answer was complete."}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		fault.Class, fault.Message = ClassTimeout, "The model did not finish its answer in time."
	}
	return fault
}

// maxDetail bounds Error.Detail in bytes.
const maxDetail = 2000

// detail makes a provider's text fit to keep and show: valid UTF-8, no NUL, no
// secret, cut at a whole character.
func detail(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	text, _ = fields.Clean(strings.TrimSpace(text))
	return fields.Cut(text, maxDetail)
}
