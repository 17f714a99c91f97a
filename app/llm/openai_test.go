package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

func TestTextAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.server.Play(fakellm.Turn{Text: "It is a complaint.", Model: "gpt-5.6-terra-2026-09-01"})
	answer, err := b.call(t, ask())
	require.NoError(t, err)
	require.Equal(t, "It is a complaint.", answer.Text)
	require.Nil(t, answer.Data)
	require.Equal(t, "gpt-5.6-terra-2026-09-01", answer.Model)
	require.Equal(t, "stop", answer.Finish)
	require.True(t, strings.HasPrefix(answer.RequestID, "req_"), answer.RequestID)
	require.False(t, answer.Usage.Estimated)
	require.Positive(t, answer.Usage.Input)
	require.EqualValues(t, 5, answer.Usage.Output)
	require.False(t, answer.Practice)
	require.Empty(t, answer.Note)
	require.True(t, json.Valid(answer.Raw), "%s", answer.Raw)
	require.Contains(t, string(answer.Raw), "It is a complaint.")
}

// TestRequestOnTheWire: what is sent, and that nothing comes from the environment.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, err := b.call(t, askFields())
	require.NoError(t, err)
	seen := b.server.Seen()
	require.Len(t, seen, 1)
	got := seen[0]
	require.Equal(t, "step-1", got.Key)
	require.Equal(t, "Bearer sk-tenant", got.Authorization)
	require.Equal(t, "gpt-5.6-terra", got.Model)
	require.EqualValues(t, 500, got.MaxTokens)
	require.Equal(t, "max_completion_tokens", got.TokenField)
	require.True(t, got.Stream && got.IncludeUsage)
	require.Equal(t, "Be brief.", got.System)
	require.Equal(t, "What does the mail say?", got.User)
	require.NotEmpty(t, got.Schema)
	for _, header := range []string{"Openai-Organization", "Openai-Project", "X-Env"} {
		require.Empty(t, got.Header.Get(header), header)
	}
}

func TestOlderServers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *llm.Config) { cfg.OldTokenLimit, cfg.NoSchemaMode, cfg.Key = true, true, nil })
	b.server.Play(fakellm.Turn{Text: `{"note":"fine"}`, Whole: true})
	req := ask()
	req.Answer = noteOnly()
	answer, err := b.call(t, req)
	require.NoError(t, err)
	require.JSONEq(t, `{"note":"fine"}`, string(answer.Data))
	require.Positive(t, answer.Usage.Input)
	got := b.server.Seen()[0]
	require.Equal(t, "max_tokens", got.TokenField)
	require.Empty(t, got.Schema)
	require.Empty(t, got.Authorization)
	require.Contains(t, got.System, string(req.Answer.JSON()))
}

// TestFieldsOfEveryShape: the strict fake server takes our schema, and its value
// fits.
func TestFieldsOfEveryShape(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	first, err := b.call(t, askFields())
	require.NoError(t, err)
	require.True(t, json.Valid(first.Data))
	require.True(t, strings.HasPrefix(string(first.Data), `{"category":`), "fields in the order asked: %s", first.Data)
	again, err := b.call(t, askFields())
	require.NoError(t, err)
	require.Equal(t, first.Data, again.Data, "the fake server is deterministic")
}

func TestProviderTextIsKeptApart(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	long := strings.Repeat("é", 3000)
	fault := b.fault(t, ask(), fakellm.Turn{Status: 400, Message: "key sk-tenant is bad\x00 " + long})
	require.NotContains(t, fault.Message, "is bad")
	require.Contains(t, fault.Detail, "key [key] is bad\uFFFD é")
	require.Less(t, len(fault.Detail), 2100)
	require.Equal(t, 400, fault.Status)
	require.True(t, strings.HasPrefix(fault.Answer.RequestID, "req_"))
}

// TestAskedOnceOnAKeptConnection: net/http repeats a request with an idempotency key
// by itself when a kept connection dies under it; that would be a second call
// outside every cap.
func TestAskedOnceOnAKeptConnection(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Config){
		"guarded": nil, "plain": func(cfg *llm.Config) { cfg.HTTP = &http.Client{Transport: &http.Transport{}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, change)
			_, err := b.call(t, ask())
			require.NoError(t, err)
			fault := b.fault(t, ask(), fakellm.Turn{Drop: true})
			require.Equal(t, llm.ClassConnection, fault.Class)
			require.True(t, fault.Dispatched)
			require.Len(t, b.server.Seen(), 2)
		})
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *llm.Config) { cfg.Timeout = 60 * time.Millisecond })
	fault := b.fault(t, ask(), fakellm.Turn{Hang: true})
	require.Equal(t, llm.ClassTimeout, fault.Class)
	require.True(t, fault.Dispatched)
	require.Nil(t, fault.Usage, "nobody knows what the model did meanwhile")
	require.ErrorIs(t, fault, context.DeadlineExceeded)
	fault = b.fault(t, ask(), fakellm.Turn{Text: "twelve chars", StallAfter: 2})
	require.Equal(t, llm.ClassTimeout, fault.Class)
	require.EqualValues(t, 3, fault.Usage.Output)
}

func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	b.server.Play(fakellm.Turn{Hang: true, OnArrival: cancel})
	_, err := llm.Call(ctx, b.registry, ask())
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, fault.Dispatched, "the provider may charge for what it began")
	require.Nil(t, fault.Usage)
	_, err = llm.Call(ctx, b.registry, ask())
	require.ErrorAs(t, err, &fault)
	require.False(t, fault.Dispatched)
	require.Len(t, b.server.Seen(), 1)
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	guarded, err := llm.NewHTTP(address)
	require.NoError(t, err)
	strict, err := llm.NewHTTP()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		http  *http.Client
		class llm.Class
	}{
		"guarded": {guarded, llm.ClassConnection},
		"plain":   {&http.Client{}, llm.ClassConnection},
		"refused": {strict, llm.ClassInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, err := llm.NewOpenAI(llm.Config{BaseURL: "http://" + address + "/v1", HTTP: test.http})
			require.NoError(t, err)
			_, err = provider.Call(t.Context(), ask())
			var fault *llm.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, test.class, fault.Class)
			require.False(t, fault.Dispatched)
			require.Nil(t, fault.Usage)
			require.NotContains(t, fault.Error(), address)
		})
	}
}

func TestKeyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *llm.Config) {
		cfg.Key = func(context.Context) (string, error) { return "", errors.New("kms: 10.0.0.7 down") }
	})
	_, err := b.call(t, ask())
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, llm.ClassAuth, fault.Class)
	require.False(t, fault.Dispatched)
	require.NotContains(t, fault.Error(), "10.0.0.7")
	require.Empty(t, b.server.Seen())
}

func TestSetupIsChecked(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"host/v1", "ftp://host/v1", "https://", "https://user:pw@host/v1", "https://host/v1?key=1", "https://[::1"} {
		_, err := llm.NewOpenAI(llm.Config{BaseURL: base, HTTP: &http.Client{}})
		require.ErrorContains(t, err, "base URL", base)
	}
	_, err := llm.NewOpenAI(llm.Config{})
	require.ErrorContains(t, err, "HTTP client")
	provider, err := llm.NewOpenAI(llm.Config{HTTP: &http.Client{}})
	require.NoError(t, err)
	require.Equal(t, "OpenAI-compatible server at api.openai.com", provider.String())
	_, err = llm.NewHTTP("not an address")
	require.Error(t, err)
}

// TestHugeError: an error's body without end is not read to its end.
func TestHugeError(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(web.Close)
	provider, err := llm.NewOpenAI(llm.Config{BaseURL: web.URL, HTTP: &http.Client{}})
	require.NoError(t, err)
	_, err = provider.Call(t.Context(), ask())
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, llm.ClassServer, fault.Class)
	require.LessOrEqual(t, len(fault.Detail), 2100)
}
