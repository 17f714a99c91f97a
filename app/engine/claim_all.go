package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// claimAll takes the slices of a tenant's jobs and reads where they stand. Each statement
// looks its rows up one by one, by their keys: were they joined freely, a plan that was
// made while a table was young might go through all of it.
func (e *Engine) claimAll(ctx context.Context, tenant tenants.ID, all []*claim) error {
	ordered := slices.SortedFunc(slices.Values(all), func(x, y *claim) int {
		return cmp.Or(compareIDs(x.Slice, y.Slice), cmp.Compare(y.Fence, x.Fence))
	})
	c := claims{byID: map[SliceID]*claim{}}
	for _, one := range ordered {
		one.taken = false
		if _, twice := c.byID[one.Slice]; twice {
			continue // by an outdated job
		}
		c.byID[one.Slice] = one
		c.ids, c.fences, c.jobs = append(c.ids, one.Slice), append(c.fences, one.Fence), append(c.jobs, one.job)
	}
	batch := &tenants.Batch{ByKey: true, Unhurried: true}
	c.queueTake(batch, tenant, ordered[0].worker)
	c.queueRuns(batch, tenant)
	c.queueInputs(batch, tenant)
	c.queueWaits(batch, tenant)
	c.queueRows(batch, tenant)
	if err := e.DB.Send(ctx, tenant, batch); err != nil {
		return err
	}
	c.handOut()
	return nil
}

// claims are jobs that claim their slices together, and what was read for them.
type claims struct {
	ids    []SliceID
	fences []int64
	jobs   []int64
	byID   map[SliceID]*claim

	runs   map[RunID]Run
	inputs map[Digest]given
	rows   map[StepRunID]StepRun
}

// claimedSlices are the slices $2, each found by its key.
const claimedSlices = `unnest($2::uuid[]) AS g (id) CROSS JOIN LATERAL (
	SELECT s.* FROM slices s WHERE s.tenant_id = $1 AND s.id = g.id OFFSET 0) s`

// queueTake takes the slices for a worker. The same job may claim again after a try of it
// broke off, since River runs a job once at a time; any other is outdated. The commit need
// not wait for the disk: should a crash undo it, it undoes all that was built on it.
func (c *claims) queueTake(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	b.Queue(`
		UPDATE slices s SET state = 'running', worker_id = $5, claimed_at = now(), job_id = m.job
		FROM (
			SELECT g.job, at.place FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS g (id, fence, job)
			CROSS JOIN LATERAL (
				SELECT t.ctid AS place FROM slices t
				WHERE t.tenant_id = $1 AND t.id = g.id AND t.fence = g.fence AND (t.`+stateByKey+` = 'dispatched' OR t.job_id = g.job)
				FOR NO KEY UPDATE OFFSET 0) at
			LIMIT $6) m
		WHERE s.ctid = m.place
		RETURNING s.id, s.fence, s.run_id, s.step_run_id, s.wait_id, s.window_id, s.semantics, s.priority`,
		tenant, c.ids, c.fences, c.jobs, worker, len(c.ids)).Query(func(rows pgx.Rows) error {
		var s slice
		_, err := pgx.ForEachRow(rows, []any{&s.id, &s.fence, &s.run, &s.step, &s.wait, &s.window, &s.semantics, &s.priority}, func() error {
			one := c.byID[s.id]
			one.taken, one.slice = true, s
			return nil
		})
		return err
	})
}

// queueRuns reads the runs, each once.
func (c *claims) queueRuns(b *tenants.Batch, tenant tenants.ID) {
	b.Queue(`
		SELECT `+runColumns+` FROM (SELECT DISTINCT s.run_id FROM `+claimedSlices+`) g
		CROSS JOIN LATERAL (SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.id = g.run_id OFFSET 0) r `+runJoins,
		tenant, c.ids).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanRun)
		c.runs = map[RunID]Run{}
		for _, run := range found {
			c.runs[run.ID] = run
		}
		return err
	})
}

// queueInputs reads what the runs were started with, each value once.
func (c *claims) queueInputs(b *tenants.Batch, tenant tenants.ID) {
	b.Queue(`
		SELECT v.digest, v.size, CASE WHEN v.size <= $3 THEN v.content END FROM (
			SELECT DISTINCT r.input_digest FROM (SELECT DISTINCT s.run_id FROM `+claimedSlices+`) g
			CROSS JOIN LATERAL (SELECT r.input_digest FROM runs r WHERE r.tenant_id = $1 AND r.id = g.run_id OFFSET 0) r) i
		CROSS JOIN LATERAL (SELECT v.* FROM stored_values v WHERE v.tenant_id = $1 AND v.digest = i.input_digest OFFSET 0) v`,
		tenant, c.ids, carried).Query(func(rows pgx.Rows) error {
		c.inputs = map[Digest]given{}
		var digest []byte
		var value given
		_, err := pgx.ForEachRow(rows, []any{&digest, &value.size, &value.content}, func() error {
			c.inputs[digestFrom(digest)] = value
			return nil
		})
		return err
	})
}

// queueWaits reads what the waits came to that set slices going.
func (c *claims) queueWaits(b *tenants.Batch, tenant tenants.ID) {
	b.Queue(`
		SELECT s.id, w.step_run_id, w.kind, w.failure, coalesce(v.size, CASE WHEN w.output_digest IS NULL THEN 0 ELSE -1 END), v.content
		FROM `+claimedSlices+`
		CROSS JOIN LATERAL (SELECT w.* FROM waits w WHERE w.tenant_id = $1 AND w.id = s.wait_id AND w.`+stateByKey+` <> 'open' OFFSET 0) w
		LEFT JOIN LATERAL (
			SELECT v.size, CASE WHEN v.size <= $3 THEN v.content END AS content FROM stored_values v
			WHERE v.tenant_id = $1 AND v.digest = w.output_digest OFFSET 0) v ON true`,
		tenant, c.ids, carried).Query(func(rows pgx.Rows) error {
		var id SliceID
		var w woken
		_, err := pgx.ForEachRow(rows, []any{&id, &w.step, &w.kind, &w.failure, &w.output.size, &w.output.content}, func() error {
			c.byID[id].woken = w
			return nil
		})
		return err
	})
}

// queueRows reads the step runs that belong to the slices or that they name, and the
// groups around those.
func (c *claims) queueRows(b *tenants.Batch, tenant tenants.ID) {
	b.Queue(`
		WITH RECURSIVE place (at) AS (
			SELECT s.step_run_id FROM `+claimedSlices+` WHERE s.step_run_id IS NOT NULL
			UNION
			SELECT o.id FROM unnest($2::uuid[]) AS g (id) CROSS JOIN LATERAL (
				SELECT o.id FROM step_runs o WHERE o.slice_id = g.id AND o.tenant_id = $1 OFFSET 0) o
			UNION
			SELECT o.parent_id FROM place CROSS JOIN LATERAL (
				SELECT o.parent_id FROM step_runs o WHERE o.tenant_id = $1 AND o.id = place.at OFFSET 0) o
			WHERE o.parent_id IS NOT NULL
		)
		SELECT `+stepRunColumns+` FROM place CROSS JOIN LATERAL (
			SELECT o.* FROM step_runs o WHERE o.tenant_id = $1 AND o.id = place.at OFFSET 0) o`,
		tenant, c.ids).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanStepRun)
		c.rows = map[StepRunID]StepRun{}
		for _, row := range found {
			c.rows[row.ID] = row
		}
		return err
	})
}

// handOut gives each claim what was read for it.
func (c *claims) handOut() {
	for _, one := range c.byID {
		one.run, one.rows, one.input = c.runs[one.slice.run], c.rows, given{size: -1}
		if input, ok := c.inputs[one.run.Input]; ok {
			one.input = input
		}
	}
}
