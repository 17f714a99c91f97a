package main

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// redriven is how many failed runs the test lets be tried again; TOLLGATE_REDRIVE says
// otherwise, as "make redrive" does.
func redriven() int {
	if n, err := strconv.Atoi(os.Getenv("TOLLGATE_REDRIVE")); err == nil {
		return n
	}
	return 200
}

// The bar: redrive of 1,000 failed runs by filter. Its progress is seen, each is done
// once and is on record, and a kill -9 half-way loses and doubles nothing.
func TestKillHalfWayThroughABulk(t *testing.T) {
	t.Parallel()
	redriven := redriven()
	f := onSharedServer(t)
	first := f.work()
	id := f.publish(`{"semantics": 1, "name": "Redrive", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "x", "name": "X", "kind": "set", "with": {"values": [{"name": "x", "formula": "input.n"}]}}]}`)
	f.start(id, `{"n": 1}`, "first")
	require.Eventually(t, func() bool { return f.number(`SELECT count(*) FROM runs WHERE state = 'completed'`) == 1 }, 30*time.Second, 50*time.Millisecond)
	_, err := f.super.Exec(t.Context(), `
		WITH r AS (
			INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, failure, ended_at)
			SELECT tenant_id, gen_random_uuid(), pipeline_id, version, 1000 + n, 'Run ' || n, 'failed', input_digest, 'clone' || n,
				'{"class": "mail_refused", "message": "Refused.", "step_id": "x"}', now()
			FROM runs, generate_series(1, $1::int) n WHERE start_key = 'first' RETURNING *
		), s AS (
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, list, state, failure, ended_at)
			SELECT tenant_id, gen_random_uuid(), id, 'x', 'set', 'steps', 'failed', failure, now() FROM r
		)
		INSERT INTO run_values (tenant_id, digest, run_id) SELECT tenant_id, input_digest, id FROM r`, redriven)
	require.NoError(t, err)
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		by := tenants.Membership{User: tenants.User{ID: f.owner, Name: "Ana"}}
		_, err := f.rooms.engine.StartBulk(ctx, tx, engine.BulkRetry, engine.Filter{Group: engine.GroupFailed, Class: "mail_refused"}, by, "", "form")
		return err
	})
	began := time.Now()
	require.Eventually(t, func() bool { return f.number(`SELECT count(*) FROM bulk_runs WHERE state = 'done'`) > redriven/3 }, 60*time.Second, 10*time.Millisecond)
	first.Kill()
	left := f.number(`SELECT count(*) FROM bulk_runs WHERE state = 'pending'`)
	require.Positive(t, left, "the kill came half-way")
	f.work()
	require.Eventually(t, func() bool { return f.number(`SELECT count(*) FROM bulk_jobs WHERE state = 'done'`) == 1 }, 60*time.Second, 50*time.Millisecond)
	t.Logf("%d runs tried again in %s, killed with %d to go", redriven, time.Since(began).Round(time.Millisecond), left)
	require.Eventually(t, func() bool { return f.number(`SELECT count(*) FROM runs WHERE state = 'completed'`) == redriven+1 }, 60*time.Second, 50*time.Millisecond)
	require.Equal(t, redriven, f.number(`SELECT count(*) FROM runs WHERE reopened = 1`), "each once")
	require.Equal(t, redriven, f.number(`SELECT count(*) FROM audit_entries WHERE action = 'run.retried'`), "each on record")
	require.Equal(t, redriven, f.number(`SELECT count(DISTINCT target_id) FROM audit_entries WHERE action = 'run.retried'`))
	require.Equal(t, 1, f.number(`SELECT count(*) FROM audit_entries WHERE action = 'bulk.done' AND detail ->> 'done' = $1::int::text`, redriven))
}

func (f *fleet) number(query string, args ...any) int {
	f.t.Helper()
	var n int
	require.NoError(f.t, f.super.QueryRow(context.Background(), query, args...).Scan(&n))
	return n
}
