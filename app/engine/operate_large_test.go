package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// roundsMeasured is how often each operation is measured; TOLLGATE_ROUNDS says otherwise,
// as "make operations" does.
func roundsMeasured() int {
	if n, err := strconv.Atoi(os.Getenv("TOLLGATE_ROUNDS")); err == nil {
		return n
	}
	return 2
}

// largeSteps are what the runs that are measured have: a step, a list, and waits side by
// side behind it.
var largeSteps = flow("1", setTo("first", "1"),
	step("all", "each", `{"items": "input.list", "at_once": 50, "result": "steps.part.x", "steps": [`+setTo("part", "item")+`]}`),
	step("both", "parallel", `{"branches": [
		{"id": "l", "name": "L", "steps": [`+step("paid", "event", `{"name": "paid"}`)+`]},
		{"id": "r", "name": "R", "steps": [`+askRita("ask", "Well?")+`]}]}`))

// addItems fills the list of a run: done of them are done, each with its step, one has
// failed, and stopped had not begun when it did.
const addItems = `
	WITH list AS (SELECT * FROM step_runs WHERE run_id = $1 AND kind = 'each'),
	items AS (
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, input_digest, output_digest, failure, ended_at, cost_micros)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'all', 'item', 'steps', i, CASE WHEN i < $2::int THEN 'done' WHEN i = $2::int THEN 'failed' ELSE 'cancelled' END,
			sha256(convert_to(i::text, 'UTF8')), CASE WHEN i < $2::int THEN sha256(convert_to(i::text, 'UTF8')) END, CASE WHEN i = $2::int THEN '{"class": "formula", "message": "No."}'::jsonb END, now(), 0
		FROM list, generate_series(1, $2::int + $3::int - 1) i RETURNING *
	), parts AS (
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, output_digest, failure, ended_at)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'part', 'set', 'steps', state, output_digest, failure, now() FROM items WHERE turn <= $2::int
	), kept AS (
		INSERT INTO stored_values (tenant_id, digest, size, media_type, content)
		SELECT tenant_id, input_digest, length(turn::text), 'application/json', convert_to(turn::text, 'UTF8') FROM items ON CONFLICT DO NOTHING
	)
	INSERT INTO run_values (tenant_id, digest, run_id) SELECT tenant_id, input_digest, run_id FROM items ON CONFLICT DO NOTHING`

// failAtTheList lets a run %[1]s that came further have failed at its list.
const failAtTheList = `
	SET session_replication_role = replica;
	DELETE FROM step_runs WHERE run_id = '%[1]s' AND (step_id IN ('paid', 'ask', 'both') OR kind = 'lane');
	UPDATE step_runs SET state = 'failed', output_digest = NULL, failure = '{"class": "formula", "message": "No."}' WHERE run_id = '%[1]s' AND kind = 'each';
	UPDATE runs SET state = 'failed', failure = '{"class": "formula", "message": "No.", "step_id": "part"}' WHERE id = '%[1]s';
	SET session_replication_role = origin`

// errUndo ends a transaction that was only made to be measured.
var errUndo = errors.New("undone")

// The bar: each operation on a run of 10,000 step runs takes 300 ms at most, 95 times of
// 100, and so does planning it, as its page does. Each is done in a transaction that is
// undone.
func TestOperationsOnALargeRun(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	stop := h.workUntilStopped()
	id := h.publish(largeSteps)
	waits, failed := h.start(id, numbers(1)), h.start(id, numbers(1))
	h.awaitWait(waits, engine.WaitReview)
	h.awaitWait(waits, engine.WaitEvent)
	h.awaitWait(failed, engine.WaitReview)
	h.awaitWait(failed, engine.WaitEvent)
	stop()
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, failed, "Ana") })
	for run, size := range map[engine.RunID][2]int{waits: {5000, 0}, failed: {3330, 3340}} {
		_, err := h.super().Exec(t.Context(), addItems, run, size[0], size[1])
		require.NoError(t, err)
	}
	h.exec(fmt.Sprintf(failAtTheList, failed))
	h.exec(`ANALYZE`)
	for _, run := range []engine.RunID{waits, failed} {
		require.GreaterOrEqual(t, h.count(`SELECT count(*) FROM step_runs WHERE run_id = $1`, run), 10_000)
	}
	for _, m := range h.measured(waits, failed) {
		h.exec(`VACUUM ANALYZE step_runs`)
		h.exec(`VACUUM ANALYZE run_values`)
		var took []time.Duration
		for range roundsMeasured() {
			began := time.Now()
			err := h.op(func(ctx context.Context, tx tenants.Tx) error {
				if err := m.do(ctx, tx); err != nil {
					return err
				}
				return errUndo
			})
			took = append(took, time.Since(began))
			require.ErrorIs(t, err, errUndo, m.name)
		}
		slices.Sort(took)
		t.Logf("%-28s p50 %5.1f ms, p95 %5.1f ms", m.name, milliseconds(took[len(took)/2]), milliseconds(took[min(len(took)-1, len(took)*95/100)]))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

type measuredOperation struct {
	name string
	do   func(ctx context.Context, tx tenants.Tx) error
}

// measured are all operations on one run.
func (h *house) measured(waits, failed engine.RunID) []measuredOperation {
	e, event, ask := h.engine, h.stepRun(waits, "paid"), h.stepRun(waits, "ask")
	item := func(run engine.RunID) engine.StepRunID {
		var id engine.StepRunID
		require.NoError(h.t, h.super().QueryRow(h.t.Context(), `SELECT id FROM step_runs WHERE run_id = $1 AND kind = 'item' AND turn = 77`, run).Scan(&id))
		return id
	}
	var part engine.StepRunID
	require.NoError(h.t, h.super().QueryRow(h.t.Context(), `SELECT id FROM step_runs WHERE run_id = $1 AND step_id = 'part' AND state = 'failed'`, failed).Scan(&part))
	again := func(request engine.RerunRequest) func(context.Context, tenants.Tx) error {
		return func(ctx context.Context, tx tenants.Tx) error {
			_, err := e.Rerun(ctx, tx, request, h.owner, "", hand())
			return err
		}
	}
	plan := func(request engine.RerunRequest) func(context.Context, tenants.Tx) error {
		return func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.PlanRerun(ctx, tx, request)
			return err
		}
	}
	return []measuredOperation{
		{"plan a retry", func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.PlanRetry(ctx, tx, failed)
			return err
		}},
		{"retry", func(ctx context.Context, tx tenants.Tx) error { return e.Retry(ctx, tx, failed, "", hand()) }},
		{"plan a skip", func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.PlanSkip(ctx, tx, failed, part)
			return err
		}},
		{"skip a failed step", func(ctx context.Context, tx tenants.Tx) error {
			return e.Skip(ctx, tx, failed, part, []byte(`{"x": 1}`), "", hand())
		}},
		{"skip a review", func(ctx context.Context, tx tenants.Tx) error {
			return e.Skip(ctx, tx, waits, ask, []byte(`{}`), "", hand())
		}},
		{"answer a wait", func(ctx context.Context, tx tenants.Tx) error {
			return e.Answer(ctx, tx, waits, event, []byte(`{}`), "", hand())
		}},
		{"plan a rerun", plan(engine.RerunRequest{Run: waits, From: "both"})},
		{"plan a correction", plan(engine.RerunRequest{Run: waits, From: "all", Item: &engine.ItemEdit{Item: item(waits)}})},
		{"rerun behind the list", again(engine.RerunRequest{Run: waits, From: "both"})},
		{"rerun from the list", again(engine.RerunRequest{Run: failed, From: "all"})},
		{"correct an item", again(engine.RerunRequest{Run: waits, From: "all", Item: &engine.ItemEdit{Item: item(waits), Value: []byte(`5`)}})},
		{"correct an item of a failed run", again(engine.RerunRequest{Run: failed, From: "all", Item: &engine.ItemEdit{Item: item(failed), Value: []byte(`5`), Others: true}})},
		{"pause", func(ctx context.Context, tx tenants.Tx) error { return e.Pause(ctx, tx, waits) }},
		{"pause and resume", func(ctx context.Context, tx tenants.Tx) error {
			return errors.Join(e.Pause(ctx, tx, waits), e.Resume(ctx, tx, waits))
		}},
		{"cancel", func(ctx context.Context, tx tenants.Tx) error { return e.Cancel(ctx, tx, waits, "Ana") }},
	}
}
