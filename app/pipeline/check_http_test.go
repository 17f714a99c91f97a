package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func httpStep(with string) string {
	return `{"id": "call", "name": "Call", "kind": "http", "with": {` + with + `}}`
}

// Every problem of a call is told with its place and what to do.
func TestChecksOfCalls(t *testing.T) {
	t.Parallel()
	const get, post = `"method": "GET", "url": "https://example.com/"`, `"method": "POST", "url": "https://example.com/"`
	for with, want := range map[string]struct{ field, says string }{
		`"method": "FETCH", "url": "https://example.com/"`:                                                              {"with.method", "Use one of"},
		`"method": "GET", "url": ""`:                                                                                    {"with.url", "no address"},
		`"method": "GET", "url": "example.com/orders"`:                                                                  {"with.url", "not a whole address"},
		`"method": "GET", "url": "https://example.com/\u0007"`:                                                          {"with.url", "hidden control character"},
		get + `, "body": "1"`:                                                                                           {"with.body", "sends no data"},
		get + `, "success": ["20"]`:                                                                                     {"with.success[0]", "no status"},
		get + `, "max_bytes": -1`:                                                                                       {"with.max_bytes", "from 1 to"},
		get + `, "query": [{"name": " ", "value": "x"}]`:                                                                {"with.query[0].name", "no plain name"},
		get + `, "headers": [{"name": "Host", "value": "x"}]`:                                                           {"with.headers[0]", "set by the product itself"},
		get + `, "headers": [{"name": "A b", "value": "x"}]`:                                                            {"with.headers[0]", "plain name"},
		get + `, "headers": [{"name": "X-A", "value": "x", "secret": "y"}]`:                                             {"with.headers[0]", "either a value or a secret"},
		get + `, "headers": [{"name": "X-Api-Key", "value": "x"}]`:                                                      {"with.headers[0]", "Store it as a secret"},
		get + `, "auth": {"kind": "magic", "secret": "a"}`:                                                              {"with.auth.kind", "Use one of"},
		get + `, "auth": {"kind": "bearer", "secret": ""}`:                                                              {"with.auth.secret", "names no secret"},
		get + `, "auth": {"kind": "basic", "secret": "a"}`:                                                              {"with.auth.user", "whose secret"},
		get + `, "auth": {"kind": "basic", "secret": "a", "user": "a:b"}`:                                               {"with.auth.user", "cannot be sent"},
		get + `, "auth": {"kind": "oauth2", "secret": "a", "user": "b"}`:                                                {"with.auth.token_url", "where tokens are given"},
		get + `, "auth": {"kind": "api_key", "secret": "a", "header": "X-A", "query": "k"}`:                             {"with.auth", "not in both"},
		`"method": "GET", "url": "https://{{ input.host }}/", "auth": {"kind": "bearer", "secret": "a"}`:                {"with.url", "data chooses the host"},
		post + `, "if_unsure": "look_up"`:                                                                               {"with.look_up", "Enter both"},
		post + `, "look_up": {"url": "https://example.com/", "arrived": "true"}`:                                        {"with.look_up", "does something else"},
		post + `, "if_unsure": "look_up", "look_up": {"url": "https://example.com/", "arrived": ""}`:                    {"with.look_up.arrived", "how to tell"},
		post + `, "if_unsure": "look_up", "look_up": {"url": "https://example.com/", "arrived": "input.host == 'x'"}`:   {"with.look_up.arrived", "only the answer is known"},
		post + `, "if_unsure": "look_up", "look_up": {"url": "https://example.com/", "arrived": "answer.state == 'x'"}`: {"with.look_up.arrived", "has no “state”"},
		post + `, "body": "answer.status"`:                                                                              {"with.body", "exists only where the answer of a look-up is judged"},
		post + `, "if_unsure": "repeat"`:                                                                                {"with.if_unsure", "knows such keys"},
		post + `, "if_unsure": "repeat", "ask": [{"role": "owner"}]`:                                                    {"with.ask", "does something else"},
	} {
		document := fmt.Sprintf(`{"semantics": 3, "name": "n", "input": [{"name": "host", "type": "text", "required": true}], "steps": [%s]}`, httpStep(with))
		d, err := Parse([]byte(document))
		require.NoError(t, err, with)
		var told []string
		for _, p := range Check(d) {
			told = append(told, p.Field+": "+p.Message)
		}
		require.True(t, containsBoth(told, want.field+": ", want.says), "%s: %q", with, told)
	}
}

func containsBoth(lines []string, start, part string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, start) && strings.Contains(line, part) {
			return true
		}
	}
	return false
}

func TestCallsWithoutProblems(t *testing.T) {
	t.Parallel()
	for _, with := range []string{
		`"method": "GET", "url": "{{ input.host }}"`,
		`"method": "GET", "url": "https://example.com/orders/{{ input.host }}?x={{ input.host }}", "auth": {"kind": "bearer", "secret": "ERP key"}`,
		`"method": "POST", "url": "https://example.com/", "body": "{'a': input.host}", "send": "form", "answer": "file", "success": ["2xx", "404"], "idempotency_header": "X-Key", "ask": [{"role": "owner"}]`,
		`"method": "DELETE", "url": "https://example.com/", "if_unsure": "look_up", "look_up": {"url": "https://example.com/{{ input.host }}", "arrived": "answer.status == 200 && answer.body.n == 1", "value": "answer.body"}`,
	} {
		d, err := Parse([]byte(fmt.Sprintf(`{"semantics": 3, "name": "n", "input": [{"name": "host", "type": "text", "required": true}], "steps": [%s]}`, httpStep(with))))
		require.NoError(t, err)
		require.Empty(t, Check(d), with)
		_, err = Compile(d)
		require.NoError(t, err)
	}
}

func TestAnAIThatChoosesTheHostIsToldOf(t *testing.T) {
	t.Parallel()
	const ask = `{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "x", "answer": [{"name": "host", "label": "Host", "type": "text", "required": true}]}}`
	for address, warned := range map[string]bool{"https://{{ steps.ask.host }}/": true, "https://example.com/{{ steps.ask.host }}": false} {
		d, err := Parse([]byte(`{"semantics": 3, "name": "n", "steps": [` + ask + `,` + httpStep(`"method": "GET", "url": "`+address+`"`) + `]}`))
		require.NoError(t, err)
		problems := Check(d)
		require.Equal(t, warned, len(problems) == 1 && strings.Contains(problems[0].Message, "an AI chooses where this call goes"), "%v", problems)
	}
}
