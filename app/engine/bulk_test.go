package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// cloneFailed makes more runs of a run that has one step and is done, and lets each have
// failed at that step.
const cloneFailed = `
	WITH r AS (
		INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, failure, ended_at)
		SELECT tenant_id, gen_random_uuid(), pipeline_id, version, 1000 + n, 'Run ' || n, 'failed', input_digest, 'clone' || n,
			jsonb_build_object('class', 'mail_refused', 'message', 'Cause ' || n % 2, 'step_id', 'x'), now()
		FROM runs, generate_series(1, $2::int) n WHERE id = $1 RETURNING *
	), s AS (
		INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, list, state, failure, ended_at)
		SELECT tenant_id, gen_random_uuid(), id, 'x', 'set', 'steps', 'failed', failure, now() FROM r
	)
	INSERT INTO run_values (tenant_id, digest, run_id) SELECT tenant_id, input_digest, id FROM r`

// failedRuns are runs that failed, every second one for cause 0, and would now do well.
func (h *house) failedRuns(n int) pipeline.ID {
	h.t.Helper()
	id := h.publish(flow("steps.x.x", setTo("x", "input.n")))
	first := h.start(id, numbers(1))
	h.awaitEnd(first)
	_, err := h.super().Exec(h.t.Context(), cloneFailed, first, n)
	require.NoError(h.t, err)
	return id
}

func (h *house) bulk(action engine.BulkAction, filter engine.Filter, key string) (engine.BulkID, error) {
	var id engine.BulkID
	err := h.op(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		by := tenants.Membership{User: tenants.User{ID: h.owner, Name: "Ana"}}
		id, err = h.engine.StartBulk(ctx, tx, action, filter, by, "", key)
		return err
	})
	return id, err
}

func (h *house) bulkNow(id engine.BulkID) (bulk engine.Bulk) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		bulk, err = engine.BulkByID(ctx, tx, id)
		return err
	})
	return bulk
}

// All failed runs of a cause are tried again in the background, each once and on record,
// however many processes work; the others are left alone.
func TestABulkTriesFailedRunsAgain(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	h.work()
	id := h.failedRuns(60)
	filter := engine.Filter{Group: engine.GroupFailed, Pipeline: id, Cause: "Cause 0"}
	var plan engine.BulkPlan
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		plan, err = engine.PlanBulk(ctx, tx, engine.BulkRetry, filter)
		return err
	})
	require.Equal(t, 30, plan.Runs)
	require.Equal(t, []engine.CauseCount{{"mail_refused", "Cause 0", 30}}, plan.Causes)
	bulk, err := h.bulk(engine.BulkRetry, filter, "form")
	require.NoError(t, err)
	again, err := h.bulk(engine.BulkRetry, filter, "form")
	require.NoError(t, err)
	require.Equal(t, bulk, again, "a form that is sent twice begins one")
	require.Eventually(t, func() bool { return h.bulkNow(bulk).State == "done" }, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, 30, h.bulkNow(bulk).Done)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM runs WHERE state = 'completed' AND reopened = 1`) == 30
	}, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, 30, h.count(`SELECT count(DISTINCT target_id) FROM audit_entries WHERE action = 'run.retried'`))
	require.Equal(t, 30, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'run.retried'`))
	require.Equal(t, 30, h.count(`SELECT count(*) FROM runs WHERE state = 'failed'`))
	require.Equal(t, 2, h.count(`SELECT count(*) FROM audit_entries WHERE target_kind = 'bulk'`))
	var bad *engine.BadBulk
	_, err = h.bulk(engine.BulkRetry, filter, "another")
	require.ErrorAs(t, err, &bad)
}

// A bulk that is stopped leaves the rest alone; every run is counted once.
func TestABulkIsStopped(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	stop := h.workUntilStopped()
	h.failedRuns(400)
	stop()
	bulk, err := h.bulk(engine.BulkRetry, engine.Filter{Group: engine.GroupFailed}, "form")
	require.NoError(t, err)
	var working sync.WaitGroup
	working.Go(func() { _, _ = h.engine.RunBulks(t.Context()) })
	require.Eventually(t, func() bool { return h.bulkNow(bulk).Done > 5 }, 30*time.Second, time.Millisecond)
	end := func() error {
		return h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.StopBulk(ctx, tx, bulk, hand().By) })
	}
	require.NoError(t, end())
	working.Wait()
	now := h.bulkNow(bulk)
	require.Equal(t, "stopped", now.State)
	require.Equal(t, now.Total, now.Done+now.Left)
	require.Positive(t, now.Left)
	require.Equal(t, now.Done, h.count(`SELECT count(*) FROM runs WHERE reopened = 1`))
	require.ErrorIs(t, end(), engine.ErrBulkEnded)
	other, _ := h.db.Tenant(t)
	require.ErrorIs(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.StopBulk(ctx, tx, bulk, hand().By)
	}), engine.ErrNoBulk)
}

// What does not fit a run any more is passed over with the reason; every action does what
// the button for one run does.
func TestABulkOfEachAction(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	id := h.publish(flow("1", step("pause", "wait", `{"for": "1h"}`)))
	var runs []engine.RunID
	for range 3 {
		runs = append(runs, h.start(id, numbers(1)))
	}
	for _, run := range runs {
		h.awaitWait(run, engine.WaitTime)
	}
	do := func(action engine.BulkAction, state engine.RunState, want int) {
		bulk, err := h.bulk(action, engine.Filter{Pipeline: id}, string(action))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return h.bulkNow(bulk).State == "done" }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, want, h.bulkNow(bulk).Done, action)
		require.Equal(t, want, h.count(`SELECT count(*) FROM runs WHERE state = $1`, string(state)), action)
	}
	do(engine.BulkPause, engine.RunPaused, 3)
	do(engine.BulkResume, engine.RunRunning, 3)
	do(engine.BulkCancel, engine.RunCancelled, 3)
	do(engine.BulkRerun, engine.RunRunning, 3)
	require.Equal(t, 3, h.count(`SELECT count(*) FROM runs WHERE origin_run IS NOT NULL`))
	require.Equal(t, 3, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'run.cancelled'`))
}
