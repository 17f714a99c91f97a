package engine_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/jobs"
	"tollgate/tenants"
)

// pacedHouse is a house that asks a real model within limits, under the installation's key.
func pacedHouse(t *testing.T, limit tenants.RateLimit) (*house, *fakellm.Server) {
	t.Helper()
	h, server := realModel(t)
	vault, err := tenants.NewVault(h.secret)
	require.NoError(t, err)
	ai := h.engine.Callers[pipeline.KindAI].(jobs.AI)
	ai.Access = jobs.NewAccess(h.db.DB, vault, map[string]tenants.RateLimits{"openai": {tenants.AnyModel: limit}})
	h.engine.Callers[pipeline.KindAI] = ai
	return h, server
}

// askEach asks the model about each item of a list, many at once.
const askEach = `{"semantics": 3, "name": "Sort mails", "input": [{"name": "mails", "type": "list", "required": true, "of": {"type": "number"}}], "steps": [
	{"id": "all", "name": "For each mail", "kind": "each", "with": {"items": "input.mails", "at_once": 50, "steps": [
		{"id": "ask", "name": "Sort it", "kind": "ai", "retry": {"attempts": 5}, "with": {"models": ["practice/standard"], "instructions": "Sort.", "prompt": "Mail {{ item }}", "max_tokens": 2000}}]}}]}`

// thinking is a turn that uses a little more than so many tokens.
func thinking(tokens int64) fakellm.Turn { return fakellm.Turn{Text: "sorted", Reasoning: tokens} }

// The bar: many calls at once under a provider that takes 60,000 tokens a minute see next to
// no refusals and use nearly all that is allowed. The suite does it ten times as fast, from
// empty buckets; TOLLGATE_PACED=300 at its true pace, for so many calls.
func TestRateLimitedCallsUseWhatIsAllowed(t *testing.T) { // by itself: it measures
	calls, perMinute := 90, int64(600_000)
	if full := os.Getenv("TOLLGATE_PACED"); full != "" {
		var err error
		calls, err = strconv.Atoi(full)
		require.NoError(t, err)
		perMinute = 60_000
	}
	h, server := pacedHouse(t, tenants.RateLimit{Tokens: perMinute})
	server.Latency(100*time.Millisecond, 300*time.Millisecond)
	server.Keep(0)
	server.Mix(fakellm.Share{PerMille: 250, Turn: thinking(600)}, fakellm.Share{PerMille: 250, Turn: thinking(900)},
		fakellm.Share{PerMille: 250, Turn: thinking(1100)}, fakellm.Share{PerMille: 250, Turn: thinking(1400)})
	// The provider's bucket and ours begin empty, so that the pace is measured and not what
	// was saved up.
	server.Limit(fakellm.Limit{Tokens: perMinute})
	server.Play(thinking(perMinute))
	empty := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"gpt-5.6-terra","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`))
	empty.Header.Set("Authorization", "Bearer sk-house")
	server.ServeHTTP(httptest.NewRecorder(), empty)
	require.EqualValues(t, 1, server.Metered().Taken)
	bucket := ledger.SharedBucket("openai", "gpt-5.6-terra", tenants.RateLimit{})
	_, err := h.super().Exec(t.Context(), `INSERT INTO rate_buckets (name, filled_at, requests, tokens) VALUES ($1, now(), 0, 0)`, bucket.Name)
	require.NoError(t, err)

	h.workWith(60)
	run := h.start(h.publish(onRealModel(t, askEach)), `{"mails": [`+strings.TrimSuffix(strings.Repeat("1,", calls), ",")+`]}`)
	var from, to fakellm.Metered
	var began, ended time.Time
	for to.Taken < int64(calls)*95/100 {
		to, ended = server.Metered(), time.Now()
		if from.Taken == 0 && to.Taken >= int64(calls)/5 { // the rest is warm-up: what calls use is learned
			from, began = to, ended
		}
		time.Sleep(5 * time.Millisecond)
	}
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	allowed := float64(perMinute) * ended.Sub(began).Minutes()
	used := float64(to.Tokens-from.Tokens) / allowed
	refused := float64(to.Refused-from.Refused) / float64(to.Taken-from.Taken)
	t.Logf("%d calls in %v after warm-up: %.1f %% of the allowed tokens, %.1f %% refused (%d of all)",
		to.Taken-from.Taken, ended.Sub(began).Round(time.Millisecond), 100*used, 100*refused, server.Metered().Refused)
	require.GreaterOrEqual(t, used, 0.9)
	require.LessOrEqual(t, refused, 0.02)

	var tries, putOff int
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(max(s.attempt), 0), (SELECT count(*) FROM waits w WHERE w.tenant_id = $1 AND w.uncalled)
			FROM step_runs s WHERE s.tenant_id = $1 AND s.kind = 'ai'`, tx.Tenant).Scan(&tries, &putOff)
	})
	require.Positive(t, putOff, "steps waited for the limit")
	t.Logf("put off %d times; the most tries of a step: %d", putOff, tries)
}
