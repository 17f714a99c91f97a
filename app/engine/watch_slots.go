package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// unservedQuery finds slices that have been ready for long though there is room for them
// everywhere. $2 is not needed.
const unservedQuery = `
	SELECT s.tenant_id, s.run_id, s.id, s.fence, NULL::bigint, NULL::uuid
	FROM slices s CROSS JOIN LATERAL (SELECT s.tenant_id, s.window_id) w
	WHERE s.state = 'ready' AND s.ready_at < now() - $1::interval AND $2::uuid IS NOT NULL
		AND (s.window_id IS NULL OR ` + windowRoom + ` > 0)
		AND (SELECT count(*) FROM slices o WHERE o.state IN ('dispatched', 'running') AND o.tenant_id = s.tenant_id)
			< coalesce((SELECT q.parallel_slices FROM tenant_quotas q WHERE q.tenant_id = s.tenant_id), 1)
		AND (SELECT count(*) FROM slices o WHERE o.state IN ('dispatched', 'running'))
			< (SELECT coalesce(sum(l.slots), 0) FROM workers l WHERE l.stopped_at IS NULL
				AND greatest(l.beat_at, pg_postmaster_start_time()) > clock_timestamp() - $1::interval)`

// leftPausedQuery finds slices that were left paused when their run was resumed.
const leftPausedQuery = `
	SELECT s.tenant_id, s.run_id, s.id, s.fence, NULL::bigint, NULL::uuid
	FROM slices s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
	WHERE s.state = 'paused' AND r.state = 'running' AND s.ready_at < now() - $1::interval AND $2::uuid IS NOT NULL`

// unserved keeps of the findings those unserved slices that a pass of the pump passes
// over, too: a slot may just have become free for one that waited long for it.
func (w *Worker) unserved(ctx context.Context, found []Stuck) ([]Stuck, error) {
	kept, any := found[:0:0], false
	for _, f := range found {
		if f.Kind == StuckUnserved {
			any = true
		} else {
			kept = append(kept, f)
		}
	}
	if !any {
		return found, nil
	}
	if _, err := w.PumpOnce(ctx); err != nil {
		return kept, err
	}
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, unservedQuery+` LIMIT 100`, stuckAfter, w.ID)
		still, err := pgx.CollectRows(rows, scanStuck(StuckUnserved))
		kept = append(kept, still...)
		return err
	})
	return kept, err
}

// serve makes a slice ready anew, as if it had just been born, and pumps.
func (w *Worker) serve(ctx context.Context, f Stuck) error {
	err := w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		if paused, err := lockRunOfSlice(ctx, tx, f.Slice, f.Fence); err != nil || paused {
			return errStale
		}
		tag, err := tx.Exec(ctx, `
			UPDATE slices SET state = 'ready', ready_at = now(), crowded = false
			WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND state IN ('ready', 'paused')`, f.Tenant, f.Slice, f.Fence)
		if err != nil {
			return fmt.Errorf("serve a slice: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errStale
		}
		return nil
	})
	if err == nil {
		_, err = w.PumpOnce(ctx)
	}
	return err
}
