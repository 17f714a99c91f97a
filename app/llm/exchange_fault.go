package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/app/llm/fields"
	"tollgate/app/outbound"
)

// eventError is an error that the provider sent where an answer was due: as an event in
// a stream, or as a body under status 200.
type eventError struct{ data []byte }

func (e *eventError) Error() string { return "the provider sent an error" }

// statusFault explains an answer with an error status.
func (x *exchange) statusFault() *Error {
	e := x.dialect.readError(x.body)
	class, never := x.dialect.class(x.status, e)
	fault := &Error{
		Class: class, Terminal: never, Status: x.status, Dispatched: unclear[x.status], Message: x.say(class),
		Detail: detail(e.Message, x.secret), RetryAfter: outbound.RetryAfter(x.header, x.now()),
		Limits: readLimits(x.header, x.now()),
		Answer: Answer{Model: fields.Cut(x.req.Model, 200), RequestID: x.requestID(), Sent: x.sent},
	}
	if d, err := time.ParseDuration(e.Wait); err == nil && d > 0 && fault.RetryAfter == 0 {
		fault.RetryAfter = min(d, outbound.MaxRetryAfter)
	}
	return fault
}

// say is the sentence for people that belongs to a class.
func (x *exchange) say(class Class) string {
	switch host := x.base.host; class {
	case ClassRateLimited:
		return host + " takes no more calls for the moment: its rate limit is reached."
	case ClassOverloaded:
		return host + " is overloaded and takes no calls for the moment."
	case ClassTimeout:
		return host + " did not answer in time."
	case ClassContextTooLong:
		return fmt.Sprintf("The prompt is too long for the model %q. Insert less data, or choose a model that reads more.", fields.Cut(x.req.Model, 100))
	case ClassRefused:
		return "The provider's filter declined the request."
	case ClassInvalidRequest:
		return fmt.Sprintf("%s does not accept the request (error %d). Check the model's name and the answer fields.", host, x.status)
	case ClassAuth:
		return host + " does not accept the key, or the key may not use this model. Check the workspace's provider keys."
	case ClassSpendLimit:
		return "The account at " + host + " has no money left or reached its own limit. Raise it there; waiting does not help."
	case ClassServer, ClassConnection, ClassMalformed, ClassEmpty, ClassTruncated:
	}
	if x.status >= 400 {
		return fmt.Sprintf("%s failed (error %d).", x.base.host, x.status)
	}
	return x.base.host + " failed while answering."
}

// cutFault explains a call that ended before the model was done: never reached,
// broken off, or stopped by us. begun tells whether text had come.
func (x *exchange) cutFault(ctx context.Context, err error, answer Answer, begun bool) *Error {
	fault := x.explain(ctx, err, begun)
	answer.Text, _ = fields.Clean(answer.Text)
	if !begun && answer.Usage.Estimated {
		answer.Usage = Usage{} // not even the input is known to have been read
	}
	fault.Status, fault.Answer, fault.Limits = x.status, answer, answer.Limits
	if fault.cause == nil {
		fault.cause = err
	}
	fault.Dispatched = (x.status != 0 || x.wire != nil && x.wire.Sent()) && (begun || !beforeWork(fault.Class, err))
	if fault.Dispatched && answer.Usage != (Usage{}) {
		fault.Usage = &fault.Answer.Usage
	}
	return fault
}

// beforeWork tells whether a call of which no text came was certainly turned down
// before the model worked on it: by an error that says so, or because what answered
// is no model server.
func beforeWork(class Class, err error) bool {
	var guarded *outbound.Error
	if errors.As(err, &guarded) {
		return guarded.Kind == outbound.KindRedirect
	}
	switch class {
	case ClassRateLimited, ClassOverloaded, ClassContextTooLong, ClassInvalidRequest, ClassAuth, ClassSpendLimit:
		return true
	case ClassServer, ClassTimeout, ClassConnection, ClassRefused, ClassMalformed, ClassEmpty, ClassTruncated:
	}
	return false
}

func (x *exchange) explain(ctx context.Context, err error, begun bool) *Error {
	var event *eventError
	var guarded *outbound.Error
	host := x.base.host
	switch {
	case ctx.Err() != nil:
		return stopped(ctx, ctx.Err(), false)
	case errors.As(err, &event):
		e := x.dialect.readError(event.data)
		class, never := x.dialect.class(0, e)
		return &Error{Class: class, Terminal: never, Message: x.say(class), Detail: detail(e.Message, x.secret)}
	case errors.As(err, &guarded) && guarded.Kind != outbound.KindBroken:
		return &Error{Class: guardClasses[guarded.Kind], Message: guarded.Message}
	case errors.Is(err, errTooLong) || errors.Is(err, bufio.ErrTooLong):
		return &Error{Class: ClassMalformed, Message: "The answer is longer than can be kept."}
	case unreadable(err):
		return &Error{Class: ClassMalformed, Message: host + " sent something that cannot be read."}
	case x.status == 0:
		return &Error{Class: ClassConnection, Message: host + " cannot be reached."}
	case err == nil && !begun && !x.streams():
		return &Error{Class: ClassInvalidRequest, Message: host + " does not answer like a model server. Check the base URL."}
	}
	return &Error{Class: ClassConnection, Message: "The connection to " + host + " broke before the answer was complete."}
}

// guardClasses maps what the guarded client refuses or meets.
var guardClasses = map[outbound.Kind]Class{
	outbound.KindBadAddress:  ClassInvalidRequest,
	outbound.KindRefused:     ClassInvalidRequest,
	outbound.KindRedirect:    ClassInvalidRequest,
	outbound.KindInsecure:    ClassConnection,
	outbound.KindUnreachable: ClassConnection,
	outbound.KindBroken:      ClassConnection,
	outbound.KindTimeout:     ClassTimeout,
	outbound.KindStopped:     ClassConnection,
	outbound.KindTooLarge:    ClassMalformed,
}

func unreadable(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// streams tells whether the answer called itself a stream or a completion.
func (x *exchange) streams() bool {
	return x.body != nil || strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream")
}
