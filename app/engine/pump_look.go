package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ask is a ready slice that asks for a slot, with what limits it.
type ask struct {
	Free       int // slots that the whole installation has left, the same in every ask
	Tenant     tenants.ID
	Served     *time.Time // when its tenant was last given a slot; nil: never
	Flight     int        // slots that its tenant has
	Room       int        // slots that its tenant's quota leaves
	Slice      SliceID
	Fence      int64
	Semantics  int
	Window     StepRunID
	WindowRoom int  // slots that its window leaves, where it has one
	Woken      bool // it goes on behind a wait, so it comes before its window's other slices
	Crowded    bool // it was set aside because its window was full
}

// pumpLock is the one lock that a pass holds from its look to its end: what it counts
// cannot grow meanwhile, so that no limit is ever passed, however many processes pump.
const pumpLock = 0x746f6c6c70756d70

// passSettings are for the transaction of a pass. A pass that gets lost in a crash is
// made again, so its commit need not wait for the disk; a process that is frozen in the
// middle of one must not stop the others; and planning would take longer than looking.
const passSettings = `
	SELECT set_config('synchronous_commit', 'off', true), set_config('idle_in_transaction_session_timeout', '2000', true),
		set_config('lock_timeout', '2000', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// lookForAsks waits for its turn to pump, and reads the ready slices that could be given
// a slot, in the order in which tenants are to be served and each tenant's own order.
// For each tenant it is one more than could be, to tell who has to wait. It counts who has
// the slots, too.
func lookForAsks(ctx context.Context, tx tenants.SystemTx) ([]ask, taken, error) {
	var asks []ask
	var held taken
	batch := &pgx.Batch{}
	batch.Queue(passSettings)
	batch.Queue(`SELECT pg_advisory_xact_lock($1)`, int64(pumpLock))
	batch.Queue(asksQuery, leaseTime, tenants.DefaultQuotas.ParallelSlices).Query(func(rows pgx.Rows) error {
		var err error
		asks, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ask])
		return err
	})
	batch.Queue(takenQuery, leaseTime).Query(held.read)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, held, fmt.Errorf("look for ready slices: %w", err)
	}
	return asks, held, nil
}

// windowRoom is how many more slices may go in a window w.
const windowRoom = `greatest(
	coalesce((SELECT l.at_once FROM step_runs l WHERE l.tenant_id = w.tenant_id AND l.id = w.window_id), 1000000) -
	(SELECT count(*) FROM slices o WHERE o.tenant_id = w.tenant_id AND o.window_id = w.window_id AND o.state IN ('dispatched', 'running')), 0)::int`

// asksQuery goes from tenant to tenant, and from crowded window to crowded window, by
// index, so that its cost does not grow with the number of slices that wait. Beside the
// workers' capacity an eighth of it may lie in River's queue, so that a worker whose slot
// becomes free need not wait for the next pass.
const asksQuery = `
WITH RECURSIVE live AS (
	SELECT coalesce(sum(slots), 0)::int AS slots, coalesce(max(semantics), 0) AS semantics FROM workers
	WHERE stopped_at IS NULL AND slots > 0 AND greatest(beat_at, pg_postmaster_start_time()) > clock_timestamp() - $1::interval
), flight AS MATERIALIZED (
	SELECT tenant_id, count(*)::int AS n FROM slices WHERE state IN ('dispatched', 'running') GROUP BY tenant_id
), room AS MATERIALIZED (
	SELECT greatest(slots + (slots + 7) / 8 - (SELECT coalesce(sum(n), 0) FROM flight), 0)::int AS free, semantics FROM live
), ready_tenants (id) AS (
	(SELECT tenant_id FROM slices WHERE state = 'ready' AND NOT crowded ORDER BY tenant_id LIMIT 1)
	UNION ALL
	SELECT (SELECT s.tenant_id FROM slices s WHERE s.state = 'ready' AND NOT s.crowded AND s.tenant_id > t.id ORDER BY s.tenant_id LIMIT 1)
	FROM ready_tenants t WHERE t.id IS NOT NULL
), crowded_windows (tenant_id, window_id) AS (
	(SELECT tenant_id, window_id FROM slices WHERE state = 'ready' AND crowded ORDER BY tenant_id, window_id LIMIT 1)
	UNION ALL
	SELECT n.* FROM crowded_windows w CROSS JOIN LATERAL (
		SELECT s.tenant_id, s.window_id FROM slices s
		WHERE s.state = 'ready' AND s.crowded AND (s.tenant_id, s.window_id) > (w.tenant_id, w.window_id)
		ORDER BY s.tenant_id, s.window_id LIMIT 1) n
), asking AS (
	SELECT t.id, u.served_at, coalesce(f.n, 0) AS flight, greatest(coalesce(q.parallel_slices, $2) - coalesce(f.n, 0), 0) AS room
	FROM (SELECT id FROM ready_tenants WHERE id IS NOT NULL UNION SELECT tenant_id FROM crowded_windows) t
	LEFT JOIN flight f ON f.tenant_id = t.id
	LEFT JOIN tenant_quotas q ON q.tenant_id = t.id
	LEFT JOIN tenant_turns u ON u.tenant_id = t.id
), asks AS (
	SELECT a.id, s.* FROM asking a CROSS JOIN room r CROSS JOIN LATERAL (
		SELECT s.id AS slice_id, s.fence, s.semantics, s.window_id, s.wait_id, s.crowded, s.priority, s.ready_at FROM slices s
		WHERE s.tenant_id = a.id AND s.state = 'ready' AND NOT s.crowded AND s.semantics <= r.semantics
		ORDER BY s.priority, s.ready_at, s.id LIMIT least(a.room, r.free) + 1) s
	UNION ALL
	SELECT w.tenant_id, s.* FROM crowded_windows w CROSS JOIN room r CROSS JOIN LATERAL (
		SELECT s.id, s.fence, s.semantics, s.window_id, s.wait_id, s.crowded, s.priority, s.ready_at FROM slices s
		WHERE s.tenant_id = w.tenant_id AND s.window_id = w.window_id AND s.state = 'ready' AND s.crowded AND s.semantics <= r.semantics
		ORDER BY s.priority, s.ready_at, s.id LIMIT least(` + windowRoom + `, r.free) + 1) s
)
SELECT r.free, k.id, a.served_at, a.flight, a.room, k.slice_id, k.fence, k.semantics, k.window_id, CASE WHEN k.window_id IS NULL THEN 0 ELSE (
		SELECT ` + windowRoom + ` FROM (SELECT k.id AS tenant_id, k.window_id) w) END,
	k.wait_id IS NOT NULL, k.crowded
FROM asks k JOIN asking a ON a.id = k.id CROSS JOIN room r
ORDER BY a.served_at NULLS FIRST, k.id, k.priority, k.ready_at, k.slice_id`
