package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// eventKey is what an event and the waits for it have in common.
type eventKey struct{ name, key string }

// lock is the number under which opening a wait for such an event, sending one and
// giving up waiting for one go one after the other, so that of a wait and an event the
// later always finds the earlier.
func (k eventKey) lock(tenant tenants.ID) int64 {
	sum := sha256.Sum256([]byte("event\x00" + tenant.String() + "\x00" + k.name + "\x00" + k.key))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// lockEvents comes before every other lock, so that nobody waits for it who holds one.
// The statement that takes events is planned once for each connection, with indexes,
// also where the tables were all but empty then.
const lockEvents = `SELECT pg_advisory_xact_lock($1), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// takeQuery gives waits the events they wait for: the oldest that was sent since the
// run began and before the wait is due, and that the run has not used. It takes the
// oldest waits first, each event once for a run, locks as every change of steps does,
// and makes the slices that go on. Of two waits of a run for the same event the second
// comes away empty, whatever else was sent; it needs another query.
//
// which chooses among the waits w; $1 is the tenant, $2 ids for the slices, $3 the most
// that are served.
func takeQuery(which string) string {
	return `
	WITH fitting AS MATERIALIZED (
		SELECT w.id, w.step_run_id, w.run_id, w.opened_at, e.id AS event_id, e.sent_at
		FROM waits w
		CROSS JOIN LATERAL (
			SELECT r.created_at FROM runs r
			WHERE r.tenant_id = w.tenant_id AND r.id = w.run_id AND r.` + goesOn + ` OFFSET 0
		) r
		CROSS JOIN LATERAL (
			SELECT e.id, e.sent_at FROM events e
			WHERE e.tenant_id = $1 AND e.name = w.event_name AND e.key = w.event_key
				AND e.sent_at >= r.created_at AND (w.due_at IS NULL OR e.sent_at < w.due_at)
				AND NOT EXISTS (SELECT 1 FROM event_uses u WHERE u.tenant_id = $1 AND u.event_id = e.id AND u.run_id = w.run_id)
			ORDER BY e.sent_at, e.id LIMIT 1
		) e
		WHERE w.tenant_id = $1 AND w.state = 'open' AND w.kind = 'event' AND ` + which + `
		ORDER BY w.opened_at, w.id LIMIT $3
	), first AS (
		SELECT DISTINCT ON (run_id, event_id) * FROM fitting ORDER BY run_id, event_id, opened_at, id
	), locked AS (
		SELECT f.*, r.priority, CASE r.state WHEN 'running' THEN 'ready' ELSE 'paused' END AS slice_state, ` + semanticsOf + ` AS semantics, ` + windowAround + ` AS window_id
		FROM (SELECT * FROM first ORDER BY run_id, step_run_id) f
		CROSS JOIN LATERAL (
			SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.id = f.run_id AND r.` + goesOn + ` FOR SHARE OFFSET 0) r
		CROSS JOIN LATERAL (
			SELECT s.* FROM step_runs s WHERE s.tenant_id = $1 AND s.id = f.step_run_id AND s.` + stateByKey + ` = 'waiting' AND s.slice_id IS NULL FOR UPDATE OFFSET 0) s
		CROSS JOIN LATERAL (
			SELECT 1 FROM waits w WHERE w.tenant_id = $1 AND w.id = f.id AND w.` + stateByKey + ` = 'open' AND (w.due_at IS NULL OR f.sent_at < w.due_at) FOR UPDATE OFFSET 0) w
	), said AS MATERIALIZED (
		SELECT d.event_id, e.output, sha256(e.output) AS digest
		FROM (SELECT DISTINCT event_id FROM locked) d
		CROSS JOIN LATERAL (
			SELECT convert_to('{"outcome":"` + pipeline.EventReceived + `","data":', 'UTF8') || e.data || '}'::bytea AS output
			FROM events e WHERE e.tenant_id = $1 AND e.id = d.event_id OFFSET 0
		) e
	), taken AS (
		SELECT l.*, ids.slice_id, said.digest
		FROM (SELECT *, row_number() OVER () AS place FROM locked) l
		JOIN unnest($2::uuid[]) WITH ORDINALITY AS ids (slice_id, place) ON ids.place = l.place
		JOIN said ON said.event_id = l.event_id
	), used AS (
		INSERT INTO event_uses (tenant_id, event_id, run_id, step_run_id) SELECT $1, event_id, run_id, step_run_id FROM taken
	), woken AS (
		UPDATE step_runs s SET slice_id = t.slice_id, fence = 1, changed = pg_current_xact_id()
		FROM taken t WHERE s.tenant_id = $1 AND s.id = t.step_run_id
	), closed AS (
		UPDATE waits w SET state = 'done', closed_at = now(), output_digest = t.digest
		FROM taken t WHERE w.tenant_id = $1 AND w.id = t.id
	), kept AS (
		INSERT INTO stored_values (tenant_id, digest, size, media_type, content)
		SELECT $1, digest, octet_length(output), '` + mediaJSON + `', output FROM said ON CONFLICT DO NOTHING
	), needed AS (
		INSERT INTO run_values (tenant_id, digest, run_id) SELECT DISTINCT $1::uuid, digest, run_id FROM taken ON CONFLICT DO NOTHING
	), born AS (
		INSERT INTO slices (tenant_id, id, run_id, step_run_id, wait_id, window_id, state, semantics, priority)
		SELECT $1, slice_id, run_id, step_run_id, id, window_id, slice_state, semantics, priority FROM taken
	)
	SELECT count(*) FROM taken`
}

// The two ways of choosing waits.
var (
	takeByKey   = takeQuery(`w.event_name = $4 AND w.event_key = $5`)
	takeBySteps = takeQuery(`w.step_run_id = ANY ($4)`)
)

// takeEvents gives at most so many waits for a key the events they wait for, and sends
// their runs on. The caller holds the key's lock. Whether any is left only another call
// can tell.
func (e *Engine) takeEvents(ctx context.Context, tx tenants.Tx, key eventKey, most int) (int, error) {
	return e.take(ctx, tx, takeByKey, tx.Tenant, newIDs[slice](most), most, key.name, key.key)
}

// takeForStep is takeEvents for the wait of one step.
func (e *Engine) takeForStep(ctx context.Context, tx tenants.Tx, step StepRunID) (bool, error) {
	served, err := e.take(ctx, tx, takeBySteps, tx.Tenant, newIDs[slice](1), 1, []StepRunID{step})
	return served == 1, err
}

func (e *Engine) take(ctx context.Context, tx tenants.Tx, query string, args ...any) (int, error) {
	served := 0
	if err := tx.QueryRow(ctx, query, args...).Scan(&served); err != nil {
		return 0, fmt.Errorf("give waits their events: %w", err)
	}
	if served > 0 {
		tx.AfterCommit(e.nudge)
	}
	return served, nil
}

func newIDs[Of any](n int) []tenants.IDOf[Of] {
	ids := make([]tenants.IDOf[Of], n)
	for i := range ids {
		ids[i] = tenants.NewID[Of]()
	}
	return ids
}
