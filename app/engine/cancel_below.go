package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// cancelBelow ends the branches that a decision cancels. The decision has locked the run
// against all others.
func (d *drive) cancelBelow(ctx context.Context, tx tenants.Tx, changes []change) error {
	for _, entry := range changes {
		cancel, ok := entry.(cancelBelow)
		if !ok {
			continue
		}
		if cancel.all {
			return d.endRest(ctx, tx, d.run.ID, SliceID{}, nil)
		}
		if err := d.endBelow(ctx, tx, cancel); err != nil {
			return err
		}
	}
	return nil
}

// endBelow ends everything that is open inside groups: their steps, reviews, waits and
// money, and the slices that were on their way there, but for this one and for what the
// same decision begins because of the failure.
func (d *drive) endBelow(ctx context.Context, tx tenants.Tx, cancel cancelBelow) error {
	lost, err := d.slicesBelow(ctx, tx, cancel)
	if err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE below AS (
			SELECT id FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND parent_id = ANY ($5) AND state IN ('queued', 'running', 'waiting')
				AND (parent_id IS DISTINCT FROM $6 OR list NOT LIKE 'error:%')
			UNION
			SELECT s.id FROM below b CROSS JOIN LATERAL (
				SELECT id FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND parent_id = b.id AND state IN ('queued', 'running', 'waiting') OFFSET 0) s
		), open AS (
			SELECT id, state, false AS fails FROM step_runs WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM below)) ORDER BY id FOR UPDATE
		)`+endQuery, tx.Tenant, d.run.ID, nil, outside, cancel.groups, cancel.keep)
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[endedStep])
	if err != nil {
		return fmt.Errorf("end branches: %w", err)
	}
	return d.endWaits(ctx, tx, ended, lost)
}

// endWaits ends what hung on steps that were ended, and the slices that were lost by it.
// Items that those had taken on are given back.
func (d *drive) endWaits(ctx context.Context, tx tenants.Tx, ended []endedStep, lost []SliceID) error {
	var waited []StepRunID
	batch := &tenants.Batch{}
	for _, step := range ended {
		step.queueMoney(batch, tx.Tenant, nil)
		if step.State == StepWaiting {
			waited = append(waited, step.ID)
		}
	}
	if err := d.closeReviews(ctx, tx, `step_run_id = ANY ($2)`, waited); err != nil {
		return err
	}
	first := &tenants.Batch{}
	first.Queue(releaseQuery, tx.Tenant, lost)
	first.Queue(`UPDATE waits SET state = 'cancelled', closed_at = now() WHERE tenant_id = $1 AND step_run_id = ANY ($2) AND state = 'open'`, tx.Tenant, waited)
	batch.QueuedQueries = append(first.QueuedQueries, batch.QueuedQueries...)
	batch.Queue(`DELETE FROM slices WHERE tenant_id = $1 AND id = ANY ($2)`, tx.Tenant, lost)
	return tx.Send(ctx, batch)
}

// slicesBelow finds the other slices inside groups: those that carry an open step there,
// and those that stand there.
func (d *drive) slicesBelow(ctx context.Context, tx tenants.Tx, cancel cancelBelow) ([]SliceID, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE others AS (
			SELECT id, step_run_id FROM slices WHERE tenant_id = $1 AND run_id = $2 AND id <> $4
		), at AS (
			SELECT id AS slice_id, step_run_id AS id FROM others
			UNION
			SELECT o.id, p.id FROM others o CROSS JOIN LATERAL (
				SELECT id FROM step_runs WHERE slice_id = o.id AND state IN ('running', 'waiting') OFFSET 0) p
			UNION
			SELECT a.slice_id, p.parent_id FROM at a CROSS JOIN LATERAL (
				SELECT parent_id FROM step_runs WHERE tenant_id = $1 AND id = a.id AND parent_id IS NOT NULL
					AND (parent_id IS DISTINCT FROM $5 OR list NOT LIKE 'error:%') LIMIT 1) p
		) SELECT DISTINCT slice_id FROM at WHERE id = ANY ($3) ORDER BY 1`, tx.Tenant, d.run.ID, cancel.groups, d.slice.id, cancel.keep)
	found, err := pgx.CollectRows(rows, pgx.RowTo[SliceID])
	if err != nil {
		return nil, fmt.Errorf("find the slices of branches: %w", err)
	}
	return found, nil
}
