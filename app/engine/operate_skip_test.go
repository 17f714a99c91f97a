package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// A step that failed or waits is skipped with a value, which later steps read.
func TestAStepIsSkippedWithAValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		skipped string
		wait    engine.WaitKind
	}{
		"failed":             {sendTo("two", "bad@example.com"), ""},
		"waits for a person": {askRita("two", "Well?"), engine.WaitReview},
		"waits for an event": {step("two", "event", `{"name": "paid"}`), engine.WaitEvent},
		"waits for a time":   {step("two", "wait", `{"for": "1h"}`), engine.WaitTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, newPatient("bad").callers())
			h.work()
			run := h.start(h.publish(flow("steps.both.combined", step("both", "parallel", `{"branches": [
				{"id": "l", "name": "L", "steps": [`+c.skipped+","+setTo("x", "1")+`], "result": "steps.x.x"}, {"id": "r", "name": "R", "steps": [`+setTo("y", "2")+`], "result": "steps.y.x"}]}`))), numbers(1))
			if c.wait == "" {
				h.awaitEnd(run)
			} else {
				h.awaitWait(run, c.wait)
			}
			id := h.stepRun(run, "two")
			var plan engine.SkipPlan
			h.in(func(ctx context.Context, tx tenants.Tx) error {
				var err error
				plan, err = engine.PlanSkip(ctx, tx, run, id)
				return err
			})
			require.Equal(t, "two", plan.Node.ID())
			require.Error(t, h.skip(run, id, `{"to": `, plan.Mark), "no JSON")
			require.NoError(t, h.skip(run, id, `{"to": "by hand"}`, plan.Mark))
			p := h.awaitEnd(run)
			require.JSONEq(t, `[1, 2]`, h.result(p))
			h.requireClean(p)
			require.JSONEq(t, `{"to": "by hand"}`, h.outputOf(run, "two"))
			require.ErrorIs(t, h.skip(run, id, `1`, ""), engine.ErrNotSkippable)
			require.Equal(t, 1, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'step.skipped'`))
		})
	}
}

func (h *house) skip(run engine.RunID, step engine.StepRunID, value string, seen engine.Mark) error {
	return h.op(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Skip(ctx, tx, run, step, []byte(value), seen, hand())
	})
}

// stepRun is the only execution of a step.
func (h *house) stepRun(run engine.RunID, step string) engine.StepRunID {
	h.t.Helper()
	var found []engine.StepRunID
	for _, row := range h.progress(run).Steps {
		if row.StepID == step {
			found = append(found, row.ID)
		}
	}
	require.Len(h.t, found, 1)
	return found[0]
}

// An event that a person answers for counts as received; what comes later is unused.
func TestAWaitForAnEventIsAnsweredByHand(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	run := h.start(h.publish(flow("steps.paid.data.sum", step("paid", "event", `{"name": "paid"}`))), numbers(1))
	_, step := h.awaitWait(run, engine.WaitEvent)
	err := h.op(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Answer(ctx, tx, run, step, []byte(`{"sum": 9007199254740993}`), "", hand())
	})
	require.NoError(t, err)
	p := h.awaitEnd(run)
	require.Equal(t, "9007199254740993", h.result(p))
	require.Contains(t, p.Steps[0].Note, "Ana")
	require.Zero(t, h.send("paid", "", "1").Served)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'wait.answered'`))
}

// Whoever is first, a person or the event: the step ends once, and the other is told.
func TestAnAnswerByHandRacingTheEvent(t *testing.T) {
	t.Parallel()
	race(t, flow("1", step("paid", "event", `{"name": "paid", "key": "{{ run.id }}"}`)), func(h *house, run engine.RunID) {
		_, step := h.awaitWait(run, engine.WaitEvent)
		var both sync.WaitGroup
		var err error
		both.Go(func() {
			someTime(3 * time.Millisecond)
			_, _ = h.trySend(engine.Event{Name: "paid", Key: run.String(), Data: []byte(`1`), Sender: "shop"})
		})
		both.Go(func() {
			someTime(3 * time.Millisecond)
			err = h.op(func(ctx context.Context, tx tenants.Tx) error {
				return h.engine.Answer(ctx, tx, run, step, []byte(`2`), "", hand())
			})
		})
		both.Wait()
		if err != nil {
			require.ErrorIs(h.t, err, engine.ErrNotWaiting)
		}
		h.awaitEnd(run)
		require.Equal(h.t, err == nil, h.count(`SELECT count(*) FROM event_uses WHERE run_id = $1`, run) == 0)
	})
}

// Whoever is first, a skip or the run's end by a cancel: the run has one end, the other is
// told, and nothing is left behind.
func TestASkipRacingACancel(t *testing.T) {
	t.Parallel()
	race(t, flow("1", askRita("ask", "Well?"), setTo("x", "1")), func(h *house, run engine.RunID) {
		_, step := h.awaitWait(run, engine.WaitReview)
		var both sync.WaitGroup
		var skipped, cancelled error
		both.Go(func() { someTime(3 * time.Millisecond); skipped = h.skip(run, step, `{}`, "") })
		both.Go(func() {
			someTime(3 * time.Millisecond)
			cancelled = h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Ana") })
		})
		both.Wait()
		p := h.awaitEnd(run)
		if cancelled != nil {
			require.ErrorIs(h.t, cancelled, engine.ErrEnded)
		}
		require.Equal(h.t, cancelled == nil, p.Run.State == engine.RunCancelled)
		if skipped != nil {
			require.Condition(h.t, func() bool { return errors.Is(skipped, engine.ErrNotSkippable) || errors.Is(skipped, engine.ErrMoved) }, "%v", skipped)
			require.Equal(h.t, engine.RunCancelled, p.Run.State)
		}
	})
}
