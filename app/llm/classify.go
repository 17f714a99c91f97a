package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// providerError is a provider's error in its own words. Code says more than Type,
// which often repeats the status only.
type providerError struct {
	Message string
	Type    string
	Code    string
	// Wait is how long the provider asks to wait where it says so in the body.
	Wait string
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

// readBlock reads the error in a body or event as an object. What is not in the known
// form is taken as the message, and the object is nil.
func readBlock(body []byte) (map[string]any, providerError) {
	block := errorBlock(body)
	if block == nil {
		return nil, providerError{Message: string(body)}
	}
	var object map[string]any
	if json.Unmarshal(block, &object) != nil {
		return nil, providerError{Message: strings.Trim(string(block), `"`)}
	}
	return object, providerError{Message: word(object["message"])}
}

// word is a value that some servers write as a text and some as a number or as null.
func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
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
// a stream, whose code may be a status. The second result is Error.Terminal.
func (d *dialect) class(status int, e providerError) (Class, bool) {
	if class, never := d.classify(status, e); class != "" {
		return class, never || terminal[class]
	}
	if n, err := strconv.Atoi(e.Code); err == nil && status == 0 {
		status = n
	}
	class, ok := statuses[status]
	switch {
	case ok:
	case status < 400 || status >= 500:
		class = ClassServer
	case tooLongText(e.Message):
		class = ClassContextTooLong
	default:
		class = ClassInvalidRequest
	}
	return class, terminal[class]
}

// tooLongText recognises the servers that give this case no code.
func tooLongText(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context window", "context size", // OpenAI and its like
		"prompt is too long", "exceed context limit", // Anthropic
		"exceeds the maximum number of tokens", // Google
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
