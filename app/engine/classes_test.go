package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/jobs"
	"tollgate/tenants"
)

// then is what follows from a failure.
type then struct {
	class string
	wait  time.Duration // the pause before the next try; 0: it is not tried again
	asks  bool          // people are asked whether it arrived
	words string        // part of what people read
}

func stops(class, words string) then { return then{class: class, words: words} }

func waits(class string, wait time.Duration, words string) then {
	return then{class: class, wait: wait, words: words}
}

func asks(class, words string) then { return then{class: class, asks: true, words: words} }

// callCase is one way in which a call to another system fails: what follows for one that
// sends data, and for one that only gets some.
type callCase struct {
	name      string
	answer    http.HandlerFunc // of the other side
	address   func(t *testing.T) string
	post, get then
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// busyUntil names the time at which to come again.
func busyUntil(wait time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(wait).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func both(name string, answer http.HandlerFunc, follows then) callCase {
	return callCase{name: name, answer: answer, post: follows, get: follows}
}

func parted(name string, answer http.HandlerFunc, post, get then) callCase {
	return callCase{name: name, answer: answer, post: post, get: get}
}

func at(name string, address func(t *testing.T) string, follows then) callCase {
	return callCase{name: name, address: address, post: follows, get: follows}
}

const (
	soon   = 2 * time.Second // the usual first pause
	easier = 5 * time.Second // for whoever is too busy
)

// callCases has a row for every class of answers and of their absence.
func callCases() []callCase {
	return []callCase{
		both("101", status(101, "Upgrade", "x", "Connection", "Upgrade"), stops("bad_answer", "does not count as success")),
		both("200 that is no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, stops("bad_answer", "not JSON that can be read")),
		both("200 with NaN", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"a": NaN}`)) }, stops("bad_answer", "The call itself arrived")),
		both("200 that is too large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2000)) }, stops("too_large", "The call itself arrived")),
		parted("300", status(300), stops("redirect", "leads elsewhere"), stops("redirect", "leads elsewhere")),
		parted("302", status(302, "Location", "/other"), stops("redirect", "redirects a request that sends data"), stops("redirect", "redirects more than 5 times")),
		both("304", status(304), stops("redirect", "leads elsewhere")),
		both("400", status(400), stops("invalid_request", "does not take what was sent")),
		both("401", status(401), stops("auth", "Check the secret")),
		both("402", status(402), stops("invalid_request", "does not take what was sent")),
		both("403", status(403), stops("auth", "does not allow this")),
		both("404", status(404), stops("not_found", "Check the address")),
		both("405", status(405), stops("invalid_request", "does not take what was sent")),
		both("407", status(407), stops("auth", "does not let us in")),
		both("408", status(408), waits("timeout", soon, "nothing was done there")),
		both("409", status(409), stops("conflict", "Look there whether it was done before")),
		both("410", status(410), stops("not_found", "any more")),
		both("413", status(413), stops("invalid_request", "does not take what was sent")),
		both("422", status(422), stops("invalid_request", "what it said stands under “Technical detail”")),
		both("423", status(423), stops("conflict", "Start this step again later")),
		both("425", status(425), waits("overloaded", easier, "did nothing")),
		both("429", status(429), waits("rate_limited", easier, "asked too often")),
		both("429 in 30 seconds", status(429, "Retry-After", "30"), waits("rate_limited", 30*time.Second, "asked too often")),
		both("429 at a time", busyUntil(30*time.Second), waits("rate_limited", 30*time.Second, "asked too often")),
		both("429 in a day", status(429, "Retry-After", "86400"), stops("rate_limited", "wait longer than a step waits by itself")),
		both("429 at a time too far", busyUntil(time.Hour), stops("rate_limited", "Start this step again later")),
		both("429 with nonsense", status(429, "Retry-After", "soon"), waits("rate_limited", easier, "asked too often")),
		parted("500", status(500), asks("server", "trouble of its own"), waits("server", soon, "may pass by itself")),
		both("501", status(501), stops("invalid_request", "does not know this method")),
		parted("502", status(502), asks("server", "trouble of its own"), waits("server", soon, "may pass by itself")),
		parted("503", status(503), asks("overloaded", "too busy"), waits("overloaded", easier, "too busy")),
		both("503 in 20 seconds", status(503, "Retry-After", "20"), waits("overloaded", 20*time.Second, "too busy")),
		parted("504", status(504), asks("server", "trouble of its own"), waits("server", soon, "may pass by itself")),
		parted("599", status(599), asks("server", "answered 599"), waits("server", soon, "answered 599")),
		parted("cut after sending", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			asks("connection", "broke before the answer was complete"), waits("connection", soon, "may pass by itself")),
		parted("time is up after sending", hangs,
			asks("timeout", "did not answer in time"), waits("timeout", soon, "may pass by itself")),
		at("time is up before sending", silent, waits("timeout", soon, "Nothing was sent")),
		at("connection refused", nobody, waits("unreachable", soon, "does not answer")),
		at("no such name", fixed("https://nowhere.invalid/"), waits("unreachable", soon, "does not exist")),
		at("a name that points inside", fixed("https://localhost/"), waits("unreachable", soon, "its address is not allowed")),
		at("an address inside", fixed("https://169.254.169.254/latest/"), stops("bad_address", "private or reserved")),
		at("not https", fixed("http://example.com/"), stops("bad_address", "begin with https://")),
		at("another port", fixed("https://example.com:5432/"), stops("bad_address", "Port 5432")),
		at("a certificate not in order", untrusted, stops("insecure", "nothing was sent")),
	}
}

// hangs takes the request whole and never answers.
func hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func fixed(address string) func(*testing.T) string { return func(*testing.T) string { return address } }

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return "http://" + listener.Addr().String()
}

// silent takes connections and says nothing, so that the line is never made safe.
func silent(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}

func untrusted(t *testing.T) string {
	server := httptest.NewTLSServer(status(200))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	return server.URL
}

// Every way in which a call can fail: retried or not, when, and with what words.
func TestWhatFollowsFromEachFailureOfACall(t *testing.T) {
	t.Parallel()
	for _, row := range callCases() {
		for method, want := range map[string]then{"POST": row.post, "GET": row.get} {
			t.Run(row.name+" "+method, func(t *testing.T) {
				t.Parallel()
				requireThen(t, want, callOnce(t, row, method), method)
			})
		}
	}
}

func callOnce(t *testing.T, row callCase, method string) engine.Reply {
	t.Helper()
	var address string
	if row.answer != nil {
		server := httptest.NewServer(row.answer)
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		address = server.URL
	} else {
		address = row.address(t)
	}
	allow := []string{}
	if u, err := url.Parse(address); err == nil && strings.HasPrefix(u.Host, "127.0.0.1:") {
		allow = append(allow, u.Host)
	}
	caller, err := jobs.NewHTTP(nil, tenants.Vault{}, allow...)
	require.NoError(t, err)
	input := engine.HTTPInput{Method: method, URL: address, Success: []string{"2xx"}, Answer: pipeline.AnswerJSON, MaxBytes: 1000}
	if method == "POST" {
		body := `{"a": 1}`
		input.Body, input.KeyHeader = &body, "Idempotency-Key"
	}
	encoded, err := json.Marshal(input)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	return caller.Call(ctx, engine.Call{Attempt: 1, Key: "key", Input: encoded})
}

func requireThen(t *testing.T, want then, reply engine.Reply, method string) {
	t.Helper()
	require.NotNil(t, reply.Failure, "it did not fail")
	require.Equal(t, want.class, reply.Failure.Class, reply.Failure.Message)
	require.Contains(t, reply.Failure.Message, want.words)
	requirePlain(t, reply.Failure.Message)
	program := program(t, fmt.Sprintf(`{"semantics": 3, "name": "Call", "steps": [{"id": "call", "name": "Call", "kind": "http", "with": {"method": %q, "url": "https://example.com/"}}]}`, method))
	pause, another, asked := engine.NextTry(program, program.Node("call"), 1, reply)
	require.Equal(t, want.asks, asked)
	require.Equal(t, want.wait > 0, another)
	require.InDelta(t, want.wait.Seconds(), pause.Seconds(), 2, "the pause")
	_, another, _ = engine.NextTry(program, program.Node("call"), 5, reply)
	require.False(t, another, "five tries, and no more")
}

// requirePlain holds a message to what a person can read: whole sentences, and nothing of
// the machinery.
func requirePlain(t *testing.T, message string) {
	t.Helper()
	require.True(t, strings.HasSuffix(message, "."), "a whole sentence: %s", message)
	for _, technical := range []string{"dial", "tcp", "EOF", "context", "%!", "net/http", "json:", "invalid character", "  "} {
		require.NotContains(t, message, technical)
	}
}

func program(t *testing.T, document string) *pipeline.Program {
	t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	compiled, err := pipeline.Compile(parsed)
	require.NoError(t, err)
	return compiled
}

// modelClasses are all classes in which asking a model fails: the pause before the next
// try, 0 where it is not made.
var modelClasses = map[llm.Class]time.Duration{
	llm.ClassRateLimited: easier, llm.ClassOverloaded: easier, llm.ClassServer: soon, llm.ClassTimeout: soon, llm.ClassConnection: soon,
	llm.ClassMalformed: time.Second, llm.ClassEmpty: time.Second,
	llm.ClassContextTooLong: 0, llm.ClassRefused: 0, llm.ClassInvalidRequest: 0, llm.ClassAuth: 0, llm.ClassSpendLimit: 0, llm.ClassTruncated: 0,
}

// failing is a provider whose every call fails in one class.
type failing llm.Class

func (f failing) Call(context.Context, llm.Request) (llm.Answer, error) {
	return llm.Answer{}, &llm.Error{Class: llm.Class(f), Message: "It failed."}
}

func TestWhatFollowsFromEachClassOfAModel(t *testing.T) {
	t.Parallel()
	const document = `{"semantics": %d, "name": "Ask", "steps": [{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["x/y"], "instructions": "Answer.", "prompt": "Hello"}},
		{"id": "w", "name": "Wait", "kind": "wait", "with": {"for": "1h"}}]}`
	for class, want := range modelClasses {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			registry, err := llm.NewRegistry(llm.Entry{Prefix: "x", Provider: failing(class), Models: []llm.Model{{ID: "x/y"}}})
			require.NoError(t, err)
			input, err := json.Marshal(engine.AIInput{Models: []string{"x/y"}, Instructions: "Answer.", Prompt: "Hello", MaxTokens: 10})
			require.NoError(t, err)
			reply := jobs.AI{Registry: registry}.Call(t.Context(), engine.Call{Input: input, Key: "k"})
			require.Equal(t, string(class), reply.Failure.Class)
			newer := program(t, fmt.Sprintf(document, 3))
			pause, another, _ := engine.NextTry(newer, newer.Node("ask"), 1, reply)
			require.Equal(t, want > 0, another)
			require.Equal(t, want, pause)
			older := program(t, fmt.Sprintf(document, 2))
			pause, another, _ = engine.NextTry(older, older.Node("ask"), 1, reply)
			require.Equal(t, want > 0, another, "documents that follow older rules keep their pauses")
			require.Contains(t, []time.Duration{0, soon}, pause)
		})
	}
}
