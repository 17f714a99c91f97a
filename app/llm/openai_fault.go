package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"tollgate/app/llm/fields"
	"tollgate/app/outbound"
)

// providerError is the error block of OpenAI-compatible servers, with the parts
// that some write as a number or as null.
type providerError struct {
	Message string
	Type    string
	Code    string
}

// errorBlock finds the error in a body or event; nil when there is none.
func errorBlock(body []byte) json.RawMessage {
	var wrapped struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &wrapped) != nil || string(wrapped.Error) == "null" {
		return nil
	}
	return wrapped.Error
}

// readProviderError reads an error's body or event. What is not in the known form
// is taken as the message.
func readProviderError(body []byte) providerError {
	block := errorBlock(body)
	if block == nil {
		return providerError{Message: string(body)}
	}
	var fields map[string]any
	if json.Unmarshal(block, &fields) != nil {
		return providerError{Message: strings.Trim(string(block), `"`)}
	}
	return providerError{Message: word(fields["message"]), Type: word(fields["type"]), Code: word(fields["code"])}
}

func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// codes maps the codes and types that say more than the status. They are compared
// exactly: texts lie, for one provider writes of an insufficient quota when only
// the minute is full.
var codes = map[string]Class{
	"insufficient_quota":                ClassSpendLimit,
	"billing_hard_limit_reached":        ClassSpendLimit,
	"billing_not_active":                ClassSpendLimit,
	"credit_balance_exhausted":          ClassSpendLimit,
	"organization_spend_limit_exceeded": ClassSpendLimit,
	"project_spend_limit_exceeded":      ClassSpendLimit,
	"organization_usage_limit_exceeded": ClassSpendLimit,
	"enforced_spend_limit_reached":      ClassSpendLimit,
	"context_length_exceeded":           ClassContextTooLong,
	"request_too_large":                 ClassContextTooLong,
	"content_filter":                    ClassRefused,
	"content_policy_violation":          ClassRefused,
	"rate_limit_exceeded":               ClassRateLimited,
	"rate_limit_error":                  ClassRateLimited,
	"overloaded_error":                  ClassOverloaded,
	"overloaded":                        ClassOverloaded,
	"invalid_api_key":                   ClassAuth,
	"authentication_error":              ClassAuth,
}

// statuses maps HTTP statuses that have no telling code.
var statuses = map[int]Class{
	http.StatusUnauthorized:          ClassAuth,
	http.StatusPaymentRequired:       ClassSpendLimit,
	http.StatusForbidden:             ClassAuth,
	http.StatusRequestTimeout:        ClassTimeout,
	http.StatusRequestEntityTooLarge: ClassContextTooLong,
	http.StatusTooManyRequests:       ClassRateLimited,
	http.StatusServiceUnavailable:    ClassOverloaded,
	http.StatusGatewayTimeout:        ClassTimeout,
	524:                              ClassTimeout, // a gateway's own
	529:                              ClassOverloaded,
}

// unclear lists the statuses after which the model may have worked all the same:
// a gateway gave up waiting for it.
var unclear = map[int]bool{408: true, 499: true, 502: true, 504: true, 520: true, 522: true, 524: true}

// classify finds the class of a provider's error; status is 0 for an event inside
// a stream, whose code may be a status.
func classify(status int, e providerError) Class {
	for _, code := range []string{e.Code, e.Type} {
		if class, ok := codes[code]; ok {
			return class
		}
	}
	if n, err := strconv.Atoi(e.Code); err == nil && status == 0 {
		status = n
	}
	if class, ok := statuses[status]; ok {
		return class
	}
	if status >= 400 && status < 500 {
		if tooLongText(e.Message) {
			return ClassContextTooLong
		}
		return ClassInvalidRequest
	}
	return ClassServer
}

// tooLongText recognises the servers that give this case no code.
func tooLongText(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{"maximum context length", "context length exceeded", "context window", "context size"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// statusFault explains an answer with an error status.
func (c *openAICall) statusFault() *Error {
	e := readProviderError(c.body)
	fault := &Error{
		Class: classify(c.status, e), Status: c.status, Dispatched: unclear[c.status],
		Detail: detail(e.Message, c.key), RetryAfter: outbound.RetryAfter(c.header, c.now()),
		Answer: Answer{Model: c.req.Model, RequestID: fields.Cut(c.header.Get("X-Request-Id"), 200)},
	}
	fault.Message = c.say(fault.Class)
	return fault
}

// say is the sentence for people that belongs to a class.
func (c *openAICall) say(class Class) string {
	switch class {
	case ClassRateLimited:
		return c.host + " takes no more calls for the moment: its limit per minute is reached."
	case ClassOverloaded:
		return c.host + " is overloaded and takes no calls for the moment."
	case ClassTimeout:
		return c.host + " did not answer in time."
	case ClassContextTooLong:
		return fmt.Sprintf("The prompt is too long for the model %q. Insert less data, or choose a model that reads more.", fields.Cut(c.req.Model, 100))
	case ClassRefused:
		return "The provider's filter declined the request."
	case ClassInvalidRequest:
		return fmt.Sprintf("%s does not accept the request (error %d). Check the model's name and the answer fields.", c.host, c.status)
	case ClassAuth:
		return c.host + " does not accept the key, or the key may not use this model. Check the workspace's provider keys."
	case ClassSpendLimit:
		return "The account at " + c.host + " has no money left or reached its own limit. Raise it there; waiting does not help."
	case ClassServer, ClassConnection, ClassMalformed, ClassEmpty, ClassTruncated:
	}
	if c.status >= 400 {
		return fmt.Sprintf("%s failed (error %d).", c.host, c.status)
	}
	return c.host + " failed while answering."
}

// cutFault explains a call that ended before the model was done: never reached,
// broken off, or stopped by us. begun tells whether text had come.
func (c *openAICall) cutFault(ctx context.Context, err error, answer Answer, begun bool) *Error {
	fault := c.explain(ctx, err, begun)
	answer.Text, _ = fields.Clean(answer.Text)
	if !begun && answer.Usage.Estimated {
		answer.Usage = Usage{} // not even the input is known to have been read
	}
	fault.Status, fault.Answer = c.status, answer
	if fault.cause == nil {
		fault.cause = err
	}
	fault.Dispatched = (c.status != 0 || c.wire != nil && c.wire.Sent()) && (begun || !beforeWork(fault.Class, err))
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

func (c *openAICall) explain(ctx context.Context, err error, begun bool) *Error {
	var event *ssestream.StreamError
	var guarded *outbound.Error
	switch {
	case ctx.Err() != nil:
		return stopped(ctx, ctx.Err(), false)
	case errors.As(err, &event):
		e := readProviderError(event.Event.Data)
		class := classify(0, e)
		return &Error{Class: class, Message: c.say(class), Detail: detail(e.Message, c.key)}
	case errors.As(err, &guarded):
		return &Error{Class: guardClasses[guarded.Kind], Message: guarded.Message}
	case errors.Is(err, errTooLong) || errors.Is(err, bufio.ErrTooLong):
		return &Error{Class: ClassMalformed, Message: "The answer is longer than can be kept."}
	case unreadable(err):
		return &Error{Class: ClassMalformed, Message: c.host + " sent something that cannot be read."}
	case c.status == 0:
		return &Error{Class: ClassConnection, Message: c.host + " cannot be reached."}
	case err == nil && !begun && !c.streams():
		return &Error{Class: ClassInvalidRequest, Message: c.host + " does not answer like a model server. Check the base URL."}
	}
	return &Error{Class: ClassConnection, Message: "The connection to " + c.host + " broke before the answer was complete."}
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
func (c *openAICall) streams() bool {
	return c.body != nil || strings.HasPrefix(c.header.Get("Content-Type"), "text/event-stream")
}
