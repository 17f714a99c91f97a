package llm_test

import (
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

// clock is what the adapters under test take for now.
var clock = time.Date(2026, time.October, 21, 7, 27, 20, 0, time.UTC)

// TestMain puts what the client library would read from the environment in the way
// of every test: a key, an address and headers that belong to nobody.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "sk-from-environment", "ANTHROPIC_AUTH_TOKEN": "from-environment", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Env: yes", "GEMINI_API_KEY": "from-environment", "GOOGLE_API_KEY": "from-environment",
		"OPENAI_API_KEY": "sk-from-environment", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_ORG_ID": "org-env",
		"OPENAI_PROJECT_ID": "proj-env", "OPENAI_CUSTOM_HEADERS": "X-Env: yes", "HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// bundle is a fake server with an adapter in front of it, through the guarded
// client.
type bundle struct {
	server   *fakellm.Server
	registry *llm.Registry
	format   string
	model    string // stands in for the model of ask
	other    string // another model of the same provider, of which nothing is known
}

// providers makes the adapter of each format.
var providers = map[string]func(cfg llm.Config) (llm.Entry, error){
	"openai": func(cfg llm.Config) (llm.Entry, error) {
		cfg.BaseURL += "/v1"
		provider, err := llm.NewOpenAI(cfg)
		return llm.OpenAIEntry("openai", provider, "gpt-5.6-terra", "local-model"), err
	},
	"anthropic": func(cfg llm.Config) (llm.Entry, error) {
		provider, err := llm.NewAnthropic(cfg)
		return llm.AnthropicEntry(provider, "claude-sonnet-5", "local-model"), err
	},
	"gemini": func(cfg llm.Config) (llm.Entry, error) {
		provider, err := llm.NewGemini(cfg)
		return llm.GeminiEntry(provider, "gemini-3.8-flash", "local-model"), err
	},
}

func setup(t *testing.T, change func(*llm.Config)) *bundle {
	t.Helper()
	return setupAs(t, "openai", change)
}

func setupAs(t *testing.T, format string, change func(*llm.Config)) *bundle {
	t.Helper()
	server := fakellm.New(1)
	web := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); web.Close() })
	client, err := llm.NewHTTP(web.Listener.Addr().String())
	require.NoError(t, err)
	cfg := llm.Config{BaseURL: web.URL, Key: llm.FixedKey("sk-tenant"), HTTP: client,
		Now: func() time.Time { return clock }}
	if change != nil {
		change(&cfg)
	}
	entry, err := providers[format](cfg)
	require.NoError(t, err)
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)), entry)
	require.NoError(t, err)
	return &bundle{server: server, registry: registry, format: format, model: entry.Models[0].ID, other: entry.Models[1].ID}
}

// everyFormat runs a test once for each format, with a server of its own.
func everyFormat(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Helper()
	for format := range providers {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			test(t, setupAs(t, format, nil))
		})
	}
}

// words are the format's finish reasons.
func (b *bundle) words(what string) string {
	return map[string]map[string]string{
		"openai": {"done": "stop", "cut": "length"}, "anthropic": {"done": "end_turn", "cut": "max_tokens"},
		"gemini": {"done": "STOP", "cut": "MAX_TOKENS"},
	}[b.format][what]
}

// ask is a request for plain text.
func ask() llm.Request {
	return llm.Request{Model: "openai/gpt-5.6-terra", Instructions: "Be brief.", Prompt: "What does the mail say?", MaxTokens: 500, Key: "step-1"}
}

// askFields is a request for fields of every shape.
func askFields() llm.Request {
	req := ask()
	req.Answer = everyShape()
	return req
}

func everyShape() *llm.Schema {
	return &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{
		{Name: "category", Schema: llm.Schema{Shape: llm.ShapeChoice, Choices: []string{"complaint", "question"}, Description: "what the mail is"}},
		{Name: "note", Schema: llm.Schema{Shape: llm.ShapeText}},
		{Name: "total", Schema: llm.Schema{Shape: llm.ShapeNumber}},
		{Name: "count", Schema: llm.Schema{Shape: llm.ShapeInteger}},
		{Name: "urgent", Schema: llm.Schema{Shape: llm.ShapeYesNo}},
		{Name: "due", Optional: true, Schema: llm.Schema{Shape: llm.ShapeDate}},
		{Name: "seen", Optional: true, Schema: llm.Schema{Shape: llm.ShapeTime}},
		{Name: "lines", Schema: llm.Schema{Shape: llm.ShapeList, Item: &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{
			{Name: "amount", Schema: llm.Schema{Shape: llm.ShapeNumber}},
			{Name: "kind", Optional: true, Schema: llm.Schema{Shape: llm.ShapeChoice, Choices: []string{"a", "b"}}},
		}}}},
	}}
}

// noteOnly asks for one text.
func noteOnly() *llm.Schema {
	return &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{{Name: "note", Schema: llm.Schema{Shape: llm.ShapeText}}}}
}

func (b *bundle) call(t *testing.T, req llm.Request) (llm.Answer, error) {
	t.Helper()
	if req.Model == ask().Model {
		req.Model = b.model
	}
	return llm.Call(t.Context(), b.registry, req)
}

// fault makes the call meet a turn and returns its error.
func (b *bundle) fault(t *testing.T, req llm.Request, turn fakellm.Turn) *llm.Error {
	t.Helper()
	b.server.Play(turn)
	answer, err := b.call(t, req)
	var fault *llm.Error
	require.ErrorAs(t, err, &fault, "got the answer %q", answer.Text)
	require.Equal(t, llm.Answer{}, answer)
	require.NotEmpty(t, fault.Message)
	require.NotContains(t, fault.Error()+string(fault.Answer.Sent)+string(fault.Answer.Raw), "sk-tenant")
	return fault
}
