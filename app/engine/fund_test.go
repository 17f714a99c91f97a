package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// spendingLoop asks a model in each round, whose call may cost about 31 thousandths of a
// pretend dollar and costs 27.
func spendingLoop(semantics int, atLimit string) string {
	return fmt.Sprintf(`{"semantics": %d, "name": "Loop", "cost_centre": "Centre {{ input.n }}", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "improve", "name": "Improve", "kind": "repeat", "with": {"until": "1 > 2", "max_rounds": 20, "max_cost": 100000, "max_time": "1h", "at_limit": %s, "steps": [
			{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "max_tokens": 2000, "instructions": "Answer.", "prompt": "{{ input.n }}"}}]}}],
		"result": [{"name": "given", "formula": "steps.improve"}]}`, semantics, atLimit)
}

// spends answers each call and bills so many tokens for it.
func spends(written int64) engine.Caller {
	return callerFunc(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Output: []byte(`{"text":"better"}`), Bill: &engine.Bill{Model: "standard", Tokens: ledger.Tokens{Output: written}}}
	})
}

// S50: a loop never spends more than its limit says, whatever a call may cost. A call for
// which the rest does not reach is not made; the loop ends as it says.
func TestCaseS50LoopStaysBelowItsLimitOnMoney(t *testing.T) {
	t.Parallel()
	for atLimit, want := range map[string]string{
		`"best", "score": "round * 1.0"`: `{"given": {"rounds": 3, "reason": "cost", "best": {"text": "better"}}}`, `"fail"`: "",
	} {
		t.Run(strings.Trim(strings.Split(atLimit, ",")[0], `"`), func(t *testing.T) {
			t.Parallel()
			h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: spends(1800)})
			h.work()
			run := h.start(h.publish(spendingLoop(5, atLimit)), `{"n": 7}`)
			p := h.awaitEnd(run)
			require.EqualValues(t, 3*27_000, h.spent(run), "a fourth call might have passed the limit")
			if want == "" {
				require.Equal(t, engine.RunFailed, p.Run.State)
				require.Equal(t, engine.ClassLimit, p.Run.Failure.Class)
				require.Contains(t, p.Run.Failure.Message, "its limit on money")
				return
			}
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			require.JSONEq(t, want, h.value(p.Run.Result))
			h.requireSound()
		})
	}
}

// spent is what the run has spent of pretend dollars.
func (h *house) spent(run engine.RunID) ledger.Micros {
	h.t.Helper()
	var standings ledger.Standings
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		standings, err = ledger.RunCost(ctx, tx, ledger.RunID(run))
		return err
	})
	return standings.Pretend.Spent
}

// Each line says who started the run and who bears its costs; what a child run spends
// counts in the runs above, whose caps stop it too.
func TestLinesSayForWhomAndCountInTheRunsAbove(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: spends(1000)})
	h.work()
	child := h.publish(strings.Replace(spendingLoop(5, `"fail"`), `"max_rounds": 20`, `"max_rounds": 1`, 1))
	middle := h.publish(starting(child, ""))
	top := h.publish(starting(middle, `"run_cap": 20000, `))
	run := h.start(top, `{"n": 3}`)
	h.awaitCapped(1)
	var members, centres int
	charges := `FROM holds WHERE run_id IN (SELECT id FROM runs WHERE root_run = $1)`
	require.Zero(t, h.count(`SELECT count(*) `+charges, run), "the cap of the run at the top covers it")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		more := 10 * ledger.Dollar
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfRun(ledger.RunID(run)), Funds: ledger.Pretend, Limit: &more})
	})
	h.awaitEnd(run)
	members = h.count(`SELECT count(*) `+charges+` AND member_id = $2`, run, h.owner)
	centres = h.count(`SELECT count(*) `+charges+` AND cost_centre = 'Centre 3'`, run)
	require.Equal(t, []int{1, 1}, []int{members, centres})
	require.EqualValues(t, 15_000, h.spent(run))
	h.requireSound()
}

// starting is a pipeline that runs another one.
func starting(other pipeline.ID, more string) string {
	return fmt.Sprintf(`{"semantics": 5, "name": "Above", %s"input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "run", "name": "Run it", "kind": "pipeline", "with": {"pipeline": %q, "input": [{"name": "n", "formula": "input.n"}], "wait": true}, "on_error": [{"classes": [], "do": "default", "default": null}]}]}`, more, other)
}

// awaitCapped waits until so many steps are stopped by a cap.
func (h *house) awaitCapped(n int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.count(`SELECT count(*) FROM waits WHERE state = 'open' AND kind = 'cap'`) == n }, 20*time.Second, 20*time.Millisecond)
}
