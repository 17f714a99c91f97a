package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

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
func lockEvents(ctx context.Context, tx tenants.Tx, key eventKey) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key.lock(tx.Tenant))
	if err != nil {
		return fmt.Errorf("lock an event's key: %w", err)
	}
	return nil
}

// takeQuery gives waits the events they wait for: the oldest that was sent since the
// run began and before the wait is due, and that the run has not used. It takes the
// oldest waits first, of each run one, and locks as every change of steps does.
//
// $1 is the tenant, $2 and $3 the event's name and key, $4 the only step to serve or
// null, $5 the most that are served, $6 ids for their slices.
const takeQuery = `
	WITH fitting AS MATERIALIZED (
		SELECT w.id, w.step_run_id, w.run_id, w.opened_at, e.id AS event_id
		FROM waits w
		JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id AND r.state = 'running'
		CROSS JOIN LATERAL (
			SELECT e.id FROM events e
			WHERE e.tenant_id = $1 AND e.name = $2 AND e.key = $3 AND e.sent_at >= r.created_at AND (w.due_at IS NULL OR e.sent_at < w.due_at)
				AND NOT EXISTS (SELECT 1 FROM event_uses u WHERE u.tenant_id = $1 AND u.event_id = e.id AND u.run_id = w.run_id)
			ORDER BY e.sent_at, e.id LIMIT 1
		) e
		WHERE w.tenant_id = $1 AND w.event_name = $2 AND w.event_key = $3 AND w.state = 'open' AND w.kind = 'event'
			AND ($4::uuid IS NULL OR w.step_run_id = $4)
		ORDER BY w.opened_at, w.id LIMIT $5
	), first AS (
		SELECT DISTINCT ON (run_id) * FROM fitting ORDER BY run_id, opened_at, id
	), locked AS (
		SELECT f.*, r.priority, v.semantics, ` + windowAround + ` AS window_id
		FROM first f
		JOIN runs r ON r.tenant_id = $1 AND r.id = f.run_id AND r.state = 'running'
		JOIN pipeline_versions v ON v.tenant_id = $1 AND v.pipeline_id = r.pipeline_id AND v.number = r.version
		JOIN step_runs s ON s.tenant_id = $1 AND s.id = f.step_run_id AND s.` + stateByKey + ` = 'waiting' AND s.slice_id IS NULL
		JOIN waits w ON w.tenant_id = $1 AND w.id = f.id AND w.` + stateByKey + ` = 'open'
		ORDER BY f.run_id, f.step_run_id FOR SHARE OF r FOR UPDATE OF s, w
	), taken AS (
		SELECT l.*, ids.slice_id, e.output, sha256(e.output) AS digest
		FROM (SELECT *, row_number() OVER () AS place FROM locked) l
		JOIN unnest($6::uuid[]) WITH ORDINALITY AS ids (slice_id, place) ON ids.place = l.place
		CROSS JOIN LATERAL (
			SELECT convert_to('{"outcome":"event","data":', 'UTF8') || e.data || '}'::bytea AS output
			FROM events e WHERE e.tenant_id = $1 AND e.id = l.event_id
		) e
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
		SELECT DISTINCT $1::uuid, digest, octet_length(output), '` + mediaJSON + `', output FROM taken ON CONFLICT DO NOTHING
	), needed AS (
		INSERT INTO run_values (tenant_id, digest, run_id) SELECT $1, digest, run_id FROM taken ON CONFLICT DO NOTHING
	)
	SELECT slice_id, run_id, step_run_id, id, semantics, priority, window_id FROM taken`

// takeEvents gives at most so many waits for a key the events they wait for, only that
// of one step where it is named, and sends their runs on. The caller holds the key's
// lock. Of several waits of a run one is served at a time; whether any is left only
// another call can tell.
func (e *Engine) takeEvents(ctx context.Context, tx tenants.Tx, key eventKey, only StepRunID, most int) (int, error) {
	ids := make([]SliceID, most)
	for i := range ids {
		ids[i] = tenants.NewID[slice]()
	}
	rows, _ := tx.Query(ctx, takeQuery, tx.Tenant, key.name, key.key, only, most, ids)
	woken, err := pgx.CollectRows(rows, scanWoken)
	if err != nil {
		return 0, fmt.Errorf("give waits their events: %w", err)
	}
	return len(woken), e.addSlices(ctx, tx, woken...)
}

// scanWoken reads the slice that goes on from a wait which got its event.
func scanWoken(row pgx.CollectableRow) (slice, error) {
	var s slice
	return s, row.Scan(&s.id, &s.run, &s.step, &s.wait, &s.semantics, &s.priority, &s.window)
}
