package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

const twoQuestions = `{
	"semantics": 1, "name": "Two questions", "input": [{"name": "n", "type": "number"}],
	"steps": [
		{"id": "one", "name": "One", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.n }}", "max_tokens": 1000}},
		{"id": "two", "name": "Two", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ steps.one.text }}", "max_tokens": 1000}}]
}`

// answering is a model that counts its calls, does something at each, and has its price.
func answering(seen *calls, at func(count int32)) map[pipeline.Kind]engine.Caller {
	var count atomic.Int32
	return map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		seen.add(call.Key)
		at(count.Add(1))
		return engine.Reply{Output: []byte(`{"text": "fine"}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 10, Output: 10}}}
	})}
}

// requireOnce checks that each step was called once, is on record as tried once, and
// was paid for once, at what it cost.
func (h *house) requireOnce(run engine.RunID, seen *calls) {
	h.t.Helper()
	p := h.awaitEnd(run)
	require.Equal(h.t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	for _, step := range p.Steps {
		attempts := h.attempts(step.ID)
		require.Len(h.t, attempts, 1, "step %q", step.StepID)
		require.Equal(h.t, engine.AttemptDone, attempts[0].Outcome)
		require.Equal(h.t, 1, seen.all()[step.ID.String()], "calls of step %q", step.StepID)
	}
	h.requireCharges(run, len(p.Steps))
	h.requireSound()
}

// requireCharges checks that the run has as many exact charges, and that its step runs
// show what the ledger says.
func (h *house) requireCharges(run engine.RunID, exact int) {
	h.t.Helper()
	var count int
	var charged, shown int64
	require.NoError(h.t, h.db.Super(h.t).QueryRow(context.Background(), `
		SELECT (SELECT count(*) FROM charges WHERE run_id = $1 AND NOT estimated),
			(SELECT coalesce(sum(cost_micros::bigint), 0) FROM charges WHERE run_id = $1)::bigint,
			(SELECT coalesce(sum(cost_micros), 0) FROM step_runs WHERE run_id = $1)::bigint`, run).Scan(&count, &charged, &shown))
	require.Equal(h.t, exact, count)
	require.Equal(h.t, charged, shown, "the run shows another cost than the ledger has")
}

// A commit that took effect though we were never told is not made again, and the call
// that it begins is made once.
func TestCommitWhoseAnswerWasLostCountsOnce(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]struct {
		call    int32
		matches func([]byte) bool
	}{
		"in the middle": {1, fault.BatchSent}, "at the end": {2, fault.BatchSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &calls{}
			var proxy *fault.Proxy
			gone := make(chan (<-chan struct{}), 1)
			h := build(t, answering(seen, func(count int32) {
				if count == lost.call {
					gone <- proxy.Lose(lost.matches)
				}
			}))
			proxy, url := fault.BeforeDatabase(t, h.db.URL)
			through, err := tenants.Open(t.Context(), tenants.Config{URL: url, SystemURL: h.db.URL, AppConns: 2, SysConns: 4})
			require.NoError(t, err)
			t.Cleanup(through.Close)
			h.engine.DB = through
			h.work()
			run := h.start(h.publish(twoQuestions), `{"n": 1}`)
			h.requireOnce(run, seen)
			<-<-gone
		})
	}
}

// An answer that comes while the database is away is kept until it is back.
func TestAnswerOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	over := make(chan struct{})
	var h *house
	h = build(t, answering(seen, func(count int32) {
		if count == 1 {
			back := h.outage()
			time.AfterFunc(2*time.Second, func() { back(); close(over) })
		}
	}))
	h.work()
	run := h.start(h.publish(twoQuestions), `{"n": 1}`)
	<-over
	h.requireOnce(run, seen)
}

// outage cuts all connections of the product and refuses new ones until back is called.
func (h *house) outage() (back func()) {
	own, err := pgx.ParseConfig(h.db.URL)
	require.NoError(h.t, err)
	limit := func(connections int) {
		conn, err := pgx.Connect(context.Background(), dbtest.ServerURL(h.t))
		if err != nil {
			h.t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), fmt.Sprintf(`ALTER DATABASE %s CONNECTION LIMIT %d`, pgx.Identifier{own.Database}.Sanitize(), connections))
		if err == nil && connections == 0 {
			_, err = conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, own.Database)
		}
		if err != nil {
			h.t.Error(err)
		}
	}
	limit(0)
	return func() { limit(-1) }
}
