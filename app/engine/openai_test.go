package engine_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/jobs"
	"tollgate/tenants"
)

// realModel is a house whose ai steps reach a model server through the official client
// library, as in production. Only the far end is pretended.
func realModel(t *testing.T) (*house, *fakellm.Server) {
	t.Helper()
	server := fakellm.New(1)
	server.RequireKey("sk-house")
	listening := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); listening.Close() })
	client, err := llm.NewHTTP(listening.Listener.Addr().String())
	require.NoError(t, err)
	provider, err := llm.NewOpenAI(llm.Config{BaseURL: listening.URL + "/v1", Key: llm.FixedKey("sk-house"), HTTP: client})
	require.NoError(t, err)
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)), llm.OpenAIEntry("openai", provider, "gpt-5.6-terra"))
	require.NoError(t, err)
	return build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: jobs.AI{Registry: registry}}), server
}

// onRealModel is a document with all its questions put to the real model.
func onRealModel(t *testing.T, document string) string {
	t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	return string(parsed.WithModel("openai/gpt-5.6-terra").JSON())
}

// real is where the run stands with real money.
func (h *house) real(run engine.RunID) ledger.Standing {
	h.t.Helper()
	var standings ledger.Standings
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		standings, err = ledger.RunCost(ctx, tx, ledger.RunID(run))
		return err
	})
	require.Zero(h.t, standings.Pretend.Held+standings.Pretend.Spent, "a real model costs no pretend dollars")
	return standings.Real
}

func (h *house) charges(run engine.RunID) []ledger.Charge {
	h.t.Helper()
	var charges []ledger.Charge
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		charges, err = ledger.ChargesOfRun(ctx, tx, ledger.RunID(run), ledger.HoldID{})
		return err
	})
	return charges
}

// A step that asks a real model holds real money while it asks, pays what the provider
// counted, and has the call on record with what a question to the provider needs.
func TestRealModelIsAskedHeldForAndPaid(t *testing.T) {
	t.Parallel()
	h, server := realModel(t)
	arrived, answer := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(goOn)
	server.Play(
		fakellm.Turn{Status: 429, Header: map[string]string{"Retry-After": "0"}},
		fakellm.Turn{
			OnArrival: func() { close(arrived); <-answer },
			Text:      `{"kind":"complaint"}`, Model: "gpt-5.6-terra-2026-09-01",
			Usage: json.RawMessage(`{"prompt_tokens":1200,"completion_tokens":300,"total_tokens":1500}`),
		})
	h.work()
	run := h.start(h.publish(onRealModel(t, `{
		"semantics": 1, "name": "Sort", "input": [{"name": "subject", "type": "text"}],
		"steps": [{"id": "sort", "name": "Sort it", "kind": "ai", "retry": {"attempts": 2, "first": "1s"},
			"with": {"models": ["practice/standard"], "instructions": "Sort.", "prompt": "{{ input.subject }}", "max_tokens": 1000,
				"answer": [{"name": "kind", "type": "choice", "required": true, "choices": [{"value": "complaint"}, {"value": "order"}]}]}}],
		"result": [{"name": "kind", "formula": "steps.sort.kind"}]
	}`)), `{"subject": "Broken lamp"}`)
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the model is not asked a second time")
	}
	under := h.real(run)
	goOn()
	require.Zero(t, under.Spent, "what was refused before it began costs nothing")
	require.GreaterOrEqual(t, under.Held, 1000*12*ledger.Micros(1), "the longest answer is held for")

	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.JSONEq(t, `{"kind": "complaint"}`, h.value(p.Run.Result))
	const cost = 1200*2 + 300*12 // micro-dollars, at $2 and $12 a million tokens
	paid := h.real(run)
	require.EqualValues(t, cost, paid.Spent)
	require.Zero(t, paid.Held)
	require.EqualValues(t, cost, p.Steps[0].CostMicros)

	charges := h.charges(run)
	require.Len(t, charges, 1)
	charge := charges[0]
	require.Equal(t, ledger.Real, charge.Funds)
	require.Equal(t, "openai/gpt-5.6-terra", charge.Model)
	require.Equal(t, "gpt-5.6-terra-2026-09-01", charge.ModelBilled)
	require.Equal(t, ledger.Tokens{Input: 1200, Output: 300}, charge.Tokens)
	require.Equal(t, 2, charge.Attempt)
	require.Equal(t, under.Held, charge.Reserved)
	require.EqualValues(t, cost, charge.Cost)
	require.Regexp(t, `^req_`, charge.RequestID)
	require.Equal(t, "stop", charge.Finish)
	h.requireSound()

	seen := server.Seen()
	require.Len(t, seen, 2)
	require.Equal(t, "gpt-5.6-terra", seen[1].Model)
	require.Equal(t, p.Steps[0].ID.String(), seen[1].Key)
	require.Equal(t, "Broken lamp", seen[1].User)
	require.NotEmpty(t, seen[1].Schema)
}

// A connection that breaks in the middle of an answer is paid for by what is known, and
// never twice.
func TestRealModelCutOffIsSettledOnce(t *testing.T) {
	t.Parallel()
	h, server := realModel(t)
	server.Play(fakellm.Turn{Text: "a long answer that is cut", CutAfter: 2})
	h.work()
	run := h.start(h.publish(onRealModel(t, oneQuestion)), `{"n": 1}`)
	p := h.awaitEnd(run)
	charges := h.charges(run)
	require.Len(t, charges, len(server.Seen()), "each call that may have cost something is a line")
	require.True(t, charges[0].Tokens.Estimated)
	require.Positive(t, charges[0].Cost)
	require.LessOrEqual(t, charges[0].Cost, charges[0].Reserved)
	var sum ledger.Micros
	for _, charge := range charges {
		sum += charge.Cost
	}
	require.Equal(t, sum, h.real(run).Spent)
	require.EqualValues(t, sum, p.Steps[0].CostMicros)
	require.Zero(t, h.real(run).Held)
	h.requireSound()
}
