package fakellm_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
)

const good = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":50}`

func start(t *testing.T) (*fakellm.Server, string) {
	t.Helper()
	server := fakellm.New(7)
	web := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); web.Close() })
	return server, web.URL
}

func post(t *testing.T, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// TestMixDoesNotDependOnOrder: the same keys meet the same turns, in any order, and
// a repeated key draws again.
func TestMixDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	meet := func(order func(i int) int) (map[string]int, *fakellm.Server) {
		server, url := start(t)
		server.Mix(fakellm.Share{PerMille: 300, Turn: fakellm.Turn{Status: 429}}, fakellm.Share{PerMille: 200, Turn: fakellm.Turn{Status: 500}})
		met := map[string]int{}
		for i := range 200 {
			key := fmt.Sprint("key", order(i))
			met[key], _ = post(t, url, key, good)
		}
		return met, server
	}
	forward, server := meet(func(i int) int { return i })
	backward, _ := meet(func(i int) int { return 199 - i })
	require.Equal(t, forward, backward)
	counts := map[int]int{}
	for _, status := range forward {
		counts[status]++
	}
	require.InDelta(t, 60, counts[429], 30)
	require.InDelta(t, 40, counts[500], 25)
	require.Equal(t, 200, counts[429]+counts[500]+counts[200])
	require.Equal(t, 1, server.Times("key7"))
	require.Len(t, server.Seen(), 200)
}

func TestSameRequestSameAnswer(t *testing.T) {
	t.Parallel()
	_, url := start(t)
	_, first := post(t, url, "a", good)
	_, again := post(t, url, "b", good)
	_, other := post(t, url, "a", strings.Replace(good, "hi", "ho", 1))
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

// TestAsStrictAsTheRealOne: what the real server refuses is refused here, and
// recorded all the same.
func TestAsStrictAsTheRealOne(t *testing.T) {
	t.Parallel()
	server, url := start(t)
	format := func(schema string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + schema + `}}}`
	}
	for want, body := range map[string]string{
		"parse":                `{`,
		"model parameter":      `{"messages":[{"role":"user","content":"hi"}],"max_tokens":5}`,
		"too short":            `{"model":"m","messages":[],"max_tokens":5}`,
		"at the same time":     `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"max_completion_tokens":5}`,
		"limit of tokens":      `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		"stream_options":       `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream_options":{"include_usage":true}}`,
		"of type object":       format(`{"type":"array","items":{}}`),
		"additionalProperties": format(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`),
		"missing \\\"b\\\"":    format(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`),
		"context=().l.items":   format(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{}}}}},"required":["l"],"additionalProperties":false}`),
	} {
		status, text := post(t, url, "k", body)
		require.Equal(t, http.StatusBadRequest, status, want)
		require.Contains(t, text, want)
	}
	require.Equal(t, 10, server.Times("k"))
	server.RequireKey("sk-right")
	status, _ := post(t, url, "k", good)
	require.Equal(t, http.StatusUnauthorized, status)
}

// TestCloseFreesTheHanging: a test server can always be shut down.
func TestCloseFreesTheHanging(t *testing.T) {
	t.Parallel()
	server, url := start(t)
	server.Play(fakellm.Turn{Hang: true, OnArrival: server.Close})
	status, text := post(t, url, "k", good)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, text)
}
