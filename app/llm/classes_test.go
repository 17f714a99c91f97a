package llm_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

// bill is what a failed call may cost.
type bill int

const (
	free    bill = iota // certainly nothing
	unknown             // up to everything that was reserved
	counted             // what the provider or the text says
)

// mishap is a row of the table of error classes.
type mishap struct {
	name  string
	turn  fakellm.Turn
	class llm.Class
	bill  bill
}

// classes is what each provider's errors mean, met through the real client libraries.
var classes = map[string][]mishap{
	"openai": {
		{"429", fakellm.Turn{Status: 429, Code: "rate_limit_exceeded", Message: "slow down"}, llm.ClassRateLimited, free},
		{"429 without code", fakellm.Turn{Status: 429}, llm.ClassRateLimited, free},
		{"429 of a quota", fakellm.Turn{Status: 429, Code: "insufficient_quota", Type: "insufficient_quota"}, llm.ClassSpendLimit, free},
		{"429 of a spend limit", fakellm.Turn{Status: 429, Code: "project_spend_limit_exceeded"}, llm.ClassSpendLimit, free},
		{"429 of an enforced limit", fakellm.Turn{Status: 429, Type: "rate_limit_error", Code: "enforced_spend_limit_reached"}, llm.ClassSpendLimit, free},
		{"429 that only talks of quota", fakellm.Turn{Status: 429, Code: "1302", Message: "INSUFFICIENT QUOTA for this minute"}, llm.ClassRateLimited, free},
		{"402", fakellm.Turn{Status: 402}, llm.ClassSpendLimit, free},
		{"529", fakellm.Turn{Status: 529, Type: "overloaded_error"}, llm.ClassOverloaded, free},
		{"529 bare", fakellm.Turn{Status: 529}, llm.ClassOverloaded, free},
		{"503", fakellm.Turn{Status: 503}, llm.ClassOverloaded, free},
		{"500", fakellm.Turn{Status: 500, Type: "server_error"}, llm.ClassServer, free},
		{"500 as web page", fakellm.Turn{Status: 500, Body: "<h1>oops</h1>", ContentType: "text/html"}, llm.ClassServer, free},
		{"500 as text in error", fakellm.Turn{Status: 500, Body: `{"error":"boom"}`, ContentType: "application/json"}, llm.ClassServer, free},
		{"502 of a gateway", fakellm.Turn{Status: 502, Body: "bad gateway", ContentType: "text/plain"}, llm.ClassServer, unknown},
		{"504 of a gateway", fakellm.Turn{Status: 504}, llm.ClassTimeout, unknown},
		{"524 of a gateway", fakellm.Turn{Status: 524}, llm.ClassTimeout, unknown},
		{"401", fakellm.Turn{Status: 401, Code: "invalid_api_key"}, llm.ClassAuth, free},
		{"403", fakellm.Turn{Status: 403}, llm.ClassAuth, free},
		{"404 of a model", fakellm.Turn{Status: 404, Code: "model_not_found"}, llm.ClassInvalidRequest, free},
		{"400", fakellm.Turn{Status: 400, Message: "Unknown parameter"}, llm.ClassInvalidRequest, free},
		{"422 with a list", fakellm.Turn{Status: 422, Body: `{"detail":[{"loc":["body"]}]}`, ContentType: "application/json"}, llm.ClassInvalidRequest, free},
		{"413", fakellm.Turn{Status: 413}, llm.ClassContextTooLong, free},
		{"400 too long by code", fakellm.Turn{Status: 400, Code: "context_length_exceeded"}, llm.ClassContextTooLong, free},
		{"400 too long by text", fakellm.Turn{Status: 400, Message: "This model's maximum context length is 8192 tokens."}, llm.ClassContextTooLong, free},
		{"400 of a filter", fakellm.Turn{Status: 400, Code: "content_filter"}, llm.ClassRefused, free},
		{"error event", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `{"error":{"message":"x","code":"rate_limit_exceeded"}}`}, llm.ClassRateLimited, counted},
		{"error event with number", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `{"error":{"message":"x","code":529}}`}, llm.ClassOverloaded, counted},
		{"error event of the server", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `{"error":{"message":"x","type":"server_error"}}`}, llm.ClassServer, counted},
		{"error event at once", fakellm.Turn{Body: "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n", ContentType: "text/event-stream"}, llm.ClassRateLimited, free},
		{"error event of the server at once", fakellm.Turn{Body: "data: {\"error\":{\"message\":\"x\"}}\n\n", ContentType: "text/event-stream"}, llm.ClassServer, unknown},
		{"an empty stream", fakellm.Turn{Body: "\n", ContentType: "text/event-stream"}, llm.ClassConnection, unknown},
		{"error with status 200", fakellm.Turn{Body: `{"error":{"message":"x","code":429}}`, ContentType: "application/json"}, llm.ClassRateLimited, free},
		{"content filter", fakellm.Turn{Text: "half", Finish: "content_filter"}, llm.ClassRefused, counted},
		{"cut by the limit", fakellm.Turn{Text: "half", Finish: "length"}, llm.ClassTruncated, counted},
		{"unknown finish", fakellm.Turn{Text: "half", Finish: "paused"}, llm.ClassMalformed, counted},
		{"tool call", fakellm.Turn{Text: "half", Finish: "tool_calls"}, llm.ClassMalformed, counted},
	},
	"anthropic": {
		{"429", fakellm.Turn{Status: 429, Message: "slow down"}, llm.ClassRateLimited, free},
		{"429 of an enforced limit", fakellm.Turn{Status: 429, Code: "enforced_spend_limit_reached"}, llm.ClassSpendLimit, free},
		{"429 of an enforced limit, in details", fakellm.Turn{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`, ContentType: "application/json"}, llm.ClassSpendLimit, free},
		{"429 that only talks of quota", fakellm.Turn{Status: 429, Message: "INSUFFICIENT QUOTA"}, llm.ClassRateLimited, free},
		{"400 of an empty account", fakellm.Turn{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."}, llm.ClassSpendLimit, free},
		{"402", fakellm.Turn{Status: 402}, llm.ClassSpendLimit, free},
		{"529", fakellm.Turn{Status: 529}, llm.ClassOverloaded, free},
		{"500", fakellm.Turn{Status: 500}, llm.ClassServer, free},
		{"504", fakellm.Turn{Status: 504}, llm.ClassTimeout, unknown},
		{"401", fakellm.Turn{Status: 401}, llm.ClassAuth, free},
		{"403", fakellm.Turn{Status: 403}, llm.ClassAuth, free},
		{"404", fakellm.Turn{Status: 404}, llm.ClassInvalidRequest, free},
		{"400", fakellm.Turn{Status: 400, Message: "max_tokens: too large"}, llm.ClassInvalidRequest, free},
		{"400 too long", fakellm.Turn{Status: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}, llm.ClassContextTooLong, free},
		{"400 of a filter", fakellm.Turn{Status: 400, Message: "Output blocked by content filtering policy"}, llm.ClassRefused, free},
		{"413", fakellm.Turn{Status: 413}, llm.ClassContextTooLong, free},
		{"overloaded in the stream", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, llm.ClassOverloaded, counted},
		{"overloaded at once", fakellm.Turn{Body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n", ContentType: "text/event-stream"}, llm.ClassOverloaded, free},
		{"server error at once", fakellm.Turn{Body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n", ContentType: "text/event-stream"}, llm.ClassServer, unknown},
		{"error that is no JSON", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `boom`}, llm.ClassServer, counted},
		{"error with status 200", fakellm.Turn{Body: `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, ContentType: "application/json"}, llm.ClassRateLimited, free},
		{"cut by the limit", fakellm.Turn{Text: "half", Finish: "max_tokens"}, llm.ClassTruncated, counted},
		{"window full", fakellm.Turn{Text: "half", Finish: "model_context_window_exceeded"}, llm.ClassContextTooLong, counted},
		{"paused", fakellm.Turn{Text: "half", Finish: "pause_turn"}, llm.ClassMalformed, counted},
		{"tool call", fakellm.Turn{Text: "half", Finish: "tool_use"}, llm.ClassMalformed, counted},
	},
	"gemini": {
		{"429 of the minute", fakellm.Turn{Status: 429, Message: "You exceeded your current quota, please check your plan and billing details."}, llm.ClassRateLimited, free},
		{"429 of the day", fakellm.Turn{Status: 429, Details: json.RawMessage(`[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]`)}, llm.ClassRateLimited, free},
		{"429 of a spending cap", fakellm.Turn{Status: 429, Message: "Your project has exceeded its monthly spending cap."}, llm.ClassSpendLimit, free},
		{"503", fakellm.Turn{Status: 503, Message: "The model is overloaded."}, llm.ClassOverloaded, free},
		{"529 of a gateway", fakellm.Turn{Status: 529}, llm.ClassOverloaded, free},
		{"500", fakellm.Turn{Status: 500}, llm.ClassServer, free},
		{"504", fakellm.Turn{Status: 504}, llm.ClassTimeout, unknown},
		{"401", fakellm.Turn{Status: 401}, llm.ClassAuth, free},
		{"403", fakellm.Turn{Status: 403}, llm.ClassAuth, free},
		{"400 of a wrong key", fakellm.Turn{Status: 400, Message: "API key not valid.", Details: json.RawMessage(`[{"reason":"API_KEY_INVALID"}]`)}, llm.ClassAuth, free},
		{"400 without billing", fakellm.Turn{Status: 400, Type: "FAILED_PRECONDITION", Message: "User location is not supported."}, llm.ClassAuth, free},
		{"404", fakellm.Turn{Status: 404}, llm.ClassInvalidRequest, free},
		{"400", fakellm.Turn{Status: 400, Message: "Unknown name"}, llm.ClassInvalidRequest, free},
		{"400 too long", fakellm.Turn{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}, llm.ClassContextTooLong, free},
		{"error in the stream", fakellm.Turn{Text: "a long answer", ErrorAfter: 1, ErrorEvent: `{"error":{"code":503,"status":"UNAVAILABLE","message":"x"}}`}, llm.ClassOverloaded, counted},
		{"error with status 200", fakellm.Turn{Body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}`, ContentType: "application/json"}, llm.ClassRateLimited, free},
		{"cut by the limit", fakellm.Turn{Text: "half", Finish: "MAX_TOKENS"}, llm.ClassTruncated, counted},
		{"other", fakellm.Turn{Text: "half", Finish: "OTHER"}, llm.ClassMalformed, counted},
		{"tool call", fakellm.Turn{Text: "half", Finish: "MALFORMED_FUNCTION_CALL"}, llm.ClassMalformed, counted},
		{"blocked without a bill", fakellm.Turn{Refusal: "Blocked.", NoUsage: true}, llm.ClassRefused, counted},
	},
	"": { // in every format
		{"redirect", fakellm.Turn{Status: 302, Header: map[string]string{"Location": "http://169.254.169.254/"}}, llm.ClassInvalidRequest, free},
		{"closed without a word", fakellm.Turn{Drop: true}, llm.ClassConnection, unknown},
		{"cut in the middle", fakellm.Turn{Text: "a long answer to cut", CutAfter: 2}, llm.ClassConnection, counted},
		{"ended without a finish", fakellm.Turn{Text: "a long answer to end", EndAfter: 2}, llm.ClassConnection, counted},
		{"no finish reason", fakellm.Turn{Text: "text", NoFinish: true}, llm.ClassConnection, counted},
		{"broken piece", fakellm.Turn{Text: "a long answer to break", BrokenAfter: 2}, llm.ClassMalformed, counted},
		{"a web page", fakellm.Turn{Body: "<html>welcome</html>", ContentType: "text/html"}, llm.ClassInvalidRequest, free},
		{"a truncated whole", fakellm.Turn{Body: `{"id":"x","choices":[`, ContentType: "application/json"}, llm.ClassMalformed, unknown},
		{"refusal", fakellm.Turn{Refusal: "I cannot help with that."}, llm.ClassRefused, counted},
		{"blank", fakellm.Turn{Text: " \n\u200b"}, llm.ClassEmpty, counted},
	},
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for format := range providers {
		for _, test := range append(slices.Clone(classes[format]), classes[""]...) {
			t.Run(format+", "+test.name, func(t *testing.T) {
				t.Parallel()
				b := setupAs(t, format, nil)
				fault := b.fault(t, ask(), test.turn)
				require.Equal(t, test.class, fault.Class, fault.Error())
				require.Equal(t, test.bill != free, fault.Dispatched)
				require.Equal(t, test.bill == counted, fault.Usage != nil)
				require.Len(t, b.server.Seen(), 1, "asked exactly once: the library's retries are off")
				require.NotContains(t, fault.Message, "127.0.0.1:")
			})
		}
	}
}

// TestTerminal: waiting does not help against the quota of a day, though its class is
// that of the quota of a minute.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := setupAs(t, "gemini", nil)
	day := fakellm.Turn{Status: 429, Details: json.RawMessage(`[{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"34.5s"}]`)}
	fault := b.fault(t, ask(), day)
	require.True(t, fault.Terminal)
	require.Equal(t, 34500*time.Millisecond, fault.RetryAfter)
	day.Details = json.RawMessage(`[{"violations":[{"quotaId":"RequestsPerMinute"}]},{"retryDelay":"-3s"}]`)
	fault = b.fault(t, ask(), day)
	require.False(t, fault.Terminal)
	require.Zero(t, fault.RetryAfter)
	for _, hostile := range []string{`{}`, `[1,null,"x",[]]`, `[{"violations":{}}]`, `[{"retryDelay":9}]`, `[{"retryDelay":"999999999h"}]`} {
		day.Details = json.RawMessage(hostile)
		require.Equal(t, llm.ClassRateLimited, b.fault(t, ask(), day).Class, hostile)
	}
}
