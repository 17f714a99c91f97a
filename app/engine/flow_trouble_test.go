package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// fanOut is a run of many branches: for each item a loop of two rounds with two sides,
// and every outside call notes its key.
func fanOut(items int) (string, string) {
	sides := step("sides", "parallel", `{"branches": [
		{"id": "l", "name": "L", "steps": [`+sendTo("left", "l{{ item }}@example.com")+`]},
		{"id": "r", "name": "R", "steps": [`+sendTo("right", "r{{ item }}@example.com")+`]}]}`)
	rounds := step("again", "repeat", `{"until": "round >= 2", "max_rounds": 3, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "steps": [`+sides+`]}`)
	return flow("steps.all.results", step("all", "each", `{"items": "input.list", "at_once": 6, "result": "item * 2", "steps": [`+rounds+`]}`)), numbers(items)
}

func doubled(t *testing.T, n int) string {
	t.Helper()
	want := make([]int, n)
	for i := range want {
		want[i] = 2 * i
	}
	encoded, err := json.Marshal(want)
	require.NoError(t, err)
	return string(encoded)
}

// Workers die again and again in the middle of a fan-out: nothing that was finished is
// done again, each join happens once, and the result is whole.
func TestFanOutSurvivesItsWorkers(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	h := build(t, mailCaller(func(ctx context.Context, call engine.Call) engine.Reply {
		seen.add(call.Key)
		select {
		case <-ctx.Done():
			return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}, Retryable: true}
		case <-time.After(3 * time.Millisecond):
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	calm := h.storm([]*engine.Worker{h.work(), h.work(), h.work()})
	const items = 40
	document, input := fanOut(items)
	run := h.start(h.publish(document), input)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM step_runs WHERE run_id = $1`, run) > items*8 },
		30*time.Second, 50*time.Millisecond, "it does not get through the storm")
	calm()
	p := h.awaitEnd(run)
	require.JSONEq(t, doubled(t, items), h.result(p))
	h.requireClean(p)
	tries := 0
	for _, row := range p.Steps {
		if row.Kind == pipeline.KindEmail {
			tries += row.Attempt
			require.GreaterOrEqual(t, row.Attempt, seen.all()[row.ID.String()], "a finished step was called again")
		}
	}
	require.Len(t, seen.all(), items*2*2, "each step has one key")
	t.Logf("%d tries of %d steps", tries, items*4)
}

// A fan-out that is paused stands still, goes on where it was, and can be cancelled.
func TestFanOutIsPausedResumedAndCancelled(t *testing.T) {
	t.Parallel()
	var called atomic.Int64
	h := build(t, mailCaller(func(ctx context.Context, _ engine.Call) engine.Reply {
		called.Add(1)
		select {
		case <-ctx.Done():
			return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}}
		case <-time.After(5 * time.Millisecond):
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	h.work()
	document, input := fanOut(60)
	id := h.publish(document)
	for name, end := range map[string]engine.RunState{"resumed": engine.RunCompleted, "cancelled": engine.RunCancelled} {
		run := h.start(id, input)
		h.await(run, "some items", func(p engine.Progress) bool { return len(p.Steps) > 120 })
		require.NoError(t, h.pause(run), name)
		h.await(run, "the pause", func(p engine.Progress) bool { return p.Run.State == engine.RunPaused })
		before := called.Load()
		require.Zero(t, h.count(`SELECT count(*) FROM slices WHERE run_id = $1 AND state <> 'paused'`, run))
		require.Equal(t, before, called.Load(), "a paused run called")
		if end == engine.RunCancelled {
			h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Ana") })
		} else {
			require.NoError(t, h.resume(run))
		}
		p := h.awaitEnd(run)
		require.Equal(t, end, p.Run.State)
		if end == engine.RunCompleted {
			require.JSONEq(t, doubled(t, 60), h.result(p))
		}
		h.requireClean(p)
	}
}

// The limit on items is named.
func TestTooManyItemsAreRefused(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	id := h.publish(flow("1", step("all", "each", `{"items": "input.list", "at_once": 6, "steps": [`+setTo("x", "1")+`]}`)))
	p := h.awaitEnd(h.start(id, numbers(pipeline.MaxItems+1)))
	require.Equal(t, engine.ClassTooLarge, p.Run.Failure.Class)
	require.Equal(t, fmt.Sprintf("The list has %d items, and a step can go through at most 100000. Split the list, or do it in several runs.", pipeline.MaxItems+1), p.Run.Failure.Message)
}

// Promise 6, in groups: a round and an item cost the same, however many came before, and
// beside whatever else is open.
func TestPromise6ARoundAndAnItemCostTheSameInALongRun(t *testing.T) {
	t.Parallel()
	rounds := flow("steps.again.rounds", step("again", "repeat",
		`{"until": "round >= input.n", "max_rounds": 1000, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "result": "steps.sum.x", "steps": [`+
			setTo("sum", "default(steps.last.x, 0) + round")+","+sendTo("send", "k@example.com")+","+setTo("last", "steps.sum.x")+`]}`))
	items := flow("size(steps.all.results)", step("all", "each", `{"items": "input.list", "at_once": 1, "steps": [`+sendTo("send", "k{{ item }}@example.com")+`]}`))
	for name, document := range map[string]string{"rounds": rounds, "items": items} {
		few := readsOf(t, document, numbers(40), 1500) / 40
		many := readsOf(t, document, numbers(300), 1500) / 300
		t.Logf("%s: %.1f rows each of 40, %.1f each of 300", name, few, many)
		require.Less(t, many, 1.5*few, name)
	}
}
