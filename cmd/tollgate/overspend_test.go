package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// tenAtOnce asks ten times side by side. A call may write 1,000 tokens at $12 a million,
// so something above $0.012 is reserved for each.
const tenAtOnce = `{"semantics": 1, "name": "Ten at once", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
	{"id": "all", "name": "All", "kind": "each", "with": {"items": "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "at_once": 10, "steps": [
		{"id": "ask", "name": "Ask", "kind": "ai", "retry": {"attempts": 9, "first": "1s"}, "with": {
			"models": ["openai/gpt-5.6-terra"], "instructions": "Answer.", "prompt": "{{ item }} of {{ input.n }}", "max_tokens": 1000}}]}}]}`

// overspend is 20 runs of ten calls each at two pipelines, over two working processes,
// with caps of three scopes.
type overspend struct {
	*fleet
	runs    []engine.RunID
	refused atomic.Int64 // calls that the model server refused before it did anything
	beyond  bool         // the provider does not keep to the limit of tokens
}

const overspendRuns = 20

// costs are what calls come to: 200 calls of random cost, of which the provider cuts some
// mid-stream, refuses some, and bills some beyond the limit where it does not keep to it.
func (o *overspend) costs() []fakellm.Share {
	random := rand.New(rand.NewPCG(47, 51))
	var shares []fakellm.Share
	for range 12 {
		output := 50 + random.IntN(951)
		if o.beyond && random.IntN(3) == 0 {
			output = 1001 + random.IntN(1500)
		}
		shares = append(shares, fakellm.Share{PerMille: 60, Turn: fakellm.Turn{
			Delay: time.Duration(100+random.IntN(1500)) * time.Millisecond,
			Usage: fmt.Appendf(nil, `{"prompt_tokens": %d, "completion_tokens": %d, "total_tokens": %d}`, 30, output, 30+output),
		}})
	}
	return append(shares,
		fakellm.Share{PerMille: 150, Turn: fakellm.Turn{CutAfter: 2, Pace: 200 * time.Millisecond}},
		fakellm.Share{PerMille: 50, Turn: fakellm.Turn{NoUsage: true, Delay: 300 * time.Millisecond}},
		fakellm.Share{PerMille: 40, Turn: fakellm.Turn{Status: 500, Delay: 50 * time.Millisecond, OnArrival: func() { o.refused.Add(1) }}},
		fakellm.Share{PerMille: 40, Turn: fakellm.Turn{Status: 429, OnArrival: func() { o.refused.Add(1) }}})
}

// caps sets the workspace's and the pipelines' caps, and one for each run.
func (o *overspend) caps(workspace, each, run ledger.Micros, pipelines ...pipeline.ID) {
	o.t.Helper()
	set := func(place ledger.Place, limit ledger.Micros) {
		o.in(func(ctx context.Context, tx tenants.Tx) error {
			return ledger.SetCap(ctx, tx, ledger.Cap{Place: place, Funds: ledger.Real, Limit: &limit})
		})
	}
	set(ledger.OfTenant(o.tenant), workspace)
	for _, id := range pipelines {
		set(ledger.OfPipeline(ledger.PipelineID(id)), each)
	}
	for _, id := range o.runs {
		set(ledger.OfRun(ledger.RunID(id)), run)
	}
}

// watched is what a reader saw that looks at all balances without pause.
type watched struct {
	looks   int
	highest ledger.Micros // spent + held of the workspace
}

// watch looks until stop is closed. No balance may ever stand above its cap by more than
// its overrun, and that is 0 where the provider keeps to the limit of tokens.
func (o *overspend) watch(stop <-chan struct{}) <-chan watched {
	seen := make(chan watched, 1)
	go func() {
		var w watched
		defer func() { seen <- w }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			var above, overrun int64
			var total ledger.Micros
			err := o.super.QueryRow(context.Background(), `
				SELECT count(*) FILTER (WHERE b.spent_micros + b.held_micros - b.overrun_micros > c.limit_micros),
					coalesce(sum(b.overrun_micros), 0)::bigint,
					coalesce(max(b.spent_micros + b.held_micros) FILTER (WHERE b.scope = 'tenant'), 0)::bigint
				FROM balances b JOIN caps c USING (tenant_id, scope, scope_id, funds, period) WHERE b.tenant_id = $1`, o.tenant).
				Scan(&above, &overrun, &total)
			if err != nil || above > 0 || overrun > 0 && !o.beyond {
				o.t.Errorf("%d balances above their cap, overrun %d, error %v", above, overrun, err)
				return
			}
			w.looks++
			w.highest = max(w.highest, total)
		}
	}()
	return seen
}

// rest waits until nothing moves: no call is under way, and whatever is open waits at a
// cap. ResumeFitting wakes what fits, so that must be nothing for a while.
func (o *overspend) rest(within time.Duration) {
	o.t.Helper()
	quiet := 0
	require.Eventually(o.t, func() bool {
		moving := o.count(`SELECT (SELECT count(*) FROM holds WHERE state = 'open') + (SELECT count(*) FROM step_runs WHERE state = 'running' AND kind = 'ai')
			+ (SELECT count(*) FROM waits WHERE state = 'open' AND kind NOT IN ('cap'))`)
		if quiet++; moving > 0 {
			quiet = 0
		}
		return quiet > 20
	}, within, 200*time.Millisecond, "calls are under way")
}

// requireBooks checks what must hold at rest.
func (o *overspend) requireBooks() {
	o.t.Helper()
	o.in(func(ctx context.Context, tx tenants.Tx) error {
		differences, err := ledger.Reconcile(ctx, tx)
		require.Empty(o.t, differences)
		return err
	})
	require.Zero(o.t, o.count(`SELECT count(*) FROM holds WHERE state = 'open'`), "money is held at rest")
	require.Zero(o.t, o.count(`SELECT count(*) FROM balances WHERE held_micros <> 0`))
	charges := o.count(`SELECT count(*) FROM charges`)
	worked := len(o.model.Seen()) - int(o.refused.Load())
	require.GreaterOrEqual(o.t, charges, worked, "a call that the provider worked on was not charged")
	require.Zero(o.t, o.count(`SELECT count(*) FROM charges c JOIN tries a USING (tenant_id, step_run_id)
		WHERE a.number = c.attempt AND a.outcome = 'failed' AND a.failure ->> 'class' IN ('rate_limited', 'auth', 'invalid_request')`), "a refused call was charged")
	require.Zero(o.t, o.count(`SELECT count(*) FROM charges WHERE overrun_micros <> greatest(0, cost_micros::bigint - reserved_micros::bigint)`))
	o.t.Logf("%d requests reached the provider, %d of them refused; %d charges, %d of them estimates; %d holds given back",
		len(o.model.Seen()), o.refused.Load(), charges, o.count(`SELECT count(*) FROM charges WHERE estimated`), o.count(`SELECT count(*) FROM holds WHERE state = 'released'`))
}

// Nobody spends past a cap: 200 calls at once over two working processes and three scopes,
// of random cost, a third of them cancelled, crashed or cut, with a reader that never
// looks away. What was stopped goes on once there is room.
func TestOverspend(t *testing.T) {
	t.Parallel()
	for name, beyond := range map[string]bool{"the provider keeps to its limit": false, "the provider goes beyond its limit": true} {
		t.Run(name, func(t *testing.T) {
			o := &overspend{fleet: onSharedServer(t), beyond: beyond}
			o.model.Mix(o.costs()...)
			one, two := o.publish(tenAtOnce), o.publish(tenAtOnce)
			o.in(func(ctx context.Context, tx tenants.Tx) error {
				return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 300, OpenRuns: 100})
			})
			for n := range overspendRuns {
				id := []pipeline.ID{one, two}[n%2]
				o.start(id, fmt.Sprintf(`{"n": %d}`, n), fmt.Sprint("overspend ", n))
			}
			rows, err := o.super.Query(t.Context(), `SELECT id FROM runs ORDER BY number, pipeline_id`)
			require.NoError(t, err)
			o.runs, err = pgx.CollectRows(rows, pgx.RowTo[engine.RunID])
			require.NoError(t, err)
			require.Len(t, o.runs, overspendRuns)
			o.caps(ledger.Dollar, 70*ledger.Cent, 12*ledger.Cent, one, two)

			stop := make(chan struct{})
			seen := o.watch(stop)
			victim, _ := o.work(), o.work()
			require.Eventually(t, func() bool { return len(o.model.Seen()) > 40 }, time.Minute, 10*time.Millisecond)
			for _, id := range o.runs[:3] {
				o.in(func(ctx context.Context, tx tenants.Tx) error {
					if err := o.rooms.engine.Cancel(ctx, tx, id, "test"); !errors.Is(err, engine.ErrEnded) {
						return err
					}
					return nil
				})
			}
			time.Sleep(300 * time.Millisecond) // the random moment
			victim.Kill()
			o.work()
			o.rest(4 * time.Minute)
			close(stop)
			w := <-seen
			t.Logf("%d looks; at most %v of $1.00 spent and held at once", w.looks, w.highest.Exact())
			o.requireBooks()
			require.Greater(t, w.highest, 90*ledger.Cent, "the cap was never near")
			if !beyond {
				require.LessOrEqual(t, w.highest, ledger.Dollar)
			}
			require.Positive(t, o.count(`SELECT count(*) FROM waits WHERE state = 'open' AND kind = 'cap'`), "nothing was stopped by a cap")
			require.Positive(t, o.count(`SELECT count(*) FROM charges WHERE estimated`))

			// Stopped is not killed: with room, all go on and end.
			o.model.Mix()
			o.caps(100*ledger.Dollar, 100*ledger.Dollar, 100*ledger.Dollar, one, two)
			o.awaitEnds(3 * time.Minute)
			require.Equal(t, overspendRuns-3, o.count(`SELECT count(*) FROM runs WHERE state = 'completed'`)+o.count(`SELECT count(*) FROM runs WHERE state = 'failed'`))
			o.requireBooks()
		})
	}
}

// Under a cap of $0.00 no call reaches a provider, and none is held for.
func TestOverspendOfNothing(t *testing.T) {
	t.Parallel()
	o := &overspend{fleet: onSharedServer(t)}
	id := o.publish(tenAtOnce)
	o.caps(0, ledger.Dollar, ledger.Dollar, id)
	stop := make(chan struct{})
	seen := o.watch(stop)
	o.in(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 300, OpenRuns: 100})
	})
	for n := range overspendRuns {
		o.start(id, fmt.Sprintf(`{"n": %d}`, n), fmt.Sprint("nothing ", n))
	}
	o.work()
	o.work()
	require.Eventually(t, func() bool {
		return o.count(`SELECT count(*) FROM waits WHERE state = 'open' AND kind = 'cap'`) == 10*overspendRuns
	}, 2*time.Minute, 100*time.Millisecond)
	close(stop)
	require.Positive(t, (<-seen).looks)
	require.Empty(t, o.model.Seen())
	require.Zero(t, o.count(`SELECT count(*) FROM holds`))
	o.requireBooks()
}
