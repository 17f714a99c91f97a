package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
)

// Kind says what kind of thing went wrong.
type Kind string

// The kinds of errors.
const (
	KindBadAddress  Kind = "bad_address" // the URL is not one that may be called
	KindRefused     Kind = "refused"     // what the name points at is private, local or reserved
	KindUnreachable Kind = "unreachable" // no such name, or nobody answers there
	KindInsecure    Kind = "insecure"    // the other side's certificate is not in order
	KindRedirect    Kind = "redirect"    // a redirect that is not followed
	KindTimeout     Kind = "timeout"     // not done in time
	KindBroken      Kind = "broken"      // the line broke, or what came is not HTTP
	KindTooLarge    Kind = "too_large"   // the answer exceeds the limit
	KindStopped     Kind = "stopped"     // the caller's context was cancelled
)

// Error is what went wrong with a call. Its text is for people and safe to show.
type Error struct {
	Kind    Kind
	Message string
	// Sent is true when the other side may have received the request.
	Sent bool

	cause error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap yields context.Canceled or context.DeadlineExceeded when one of them
// ended the call, and nothing else: other causes name addresses.
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

// unreachable is one sentence for a name that does not exist, a name that points
// inside and a host that does not answer. Telling them apart would let a user map
// the inner network.
const unreachable = " cannot be reached from here: it does not exist, does not answer, or its address is not allowed. Check the address."

// dialFault explains a failure to connect to host.
func dialFault(host string, err error) *Error {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return &Error{Kind: KindRefused, Message: host + unreachable, cause: err}
	case isTimeout(err):
		return timeoutFault(host, err)
	case errors.Is(err, context.Canceled):
		return stoppedFault(err)
	}
	return &Error{Kind: KindUnreachable, Message: host + unreachable, cause: err}
}

// exchangeFault explains a failure after the connection stood.
func exchangeFault(host string, err error) *Error {
	switch {
	case isTimeout(err):
		return timeoutFault(host, err)
	case errors.Is(err, context.Canceled):
		return stoppedFault(err)
	}
	return &Error{Kind: KindBroken, cause: err,
		Message: "The connection to " + host + " broke before the answer was complete."}
}

func timeoutFault(host string, err error) *Error {
	return &Error{Kind: KindTimeout, Message: host + " did not answer in time.", cause: err}
}

func stoppedFault(err error) *Error {
	return &Error{Kind: KindStopped, Message: "The call was stopped.", cause: err}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &netErr) && netErr.Timeout()
}

// endOfBody tells the regular end of a body from a failure.
func endOfBody(err error) bool {
	return err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}
