package engine

import (
	"context"
	"errors"
	"fmt"

	"tollgate/tenants"
)

// freeSlot gives back a slot that nobody uses: with the slice, where its run has ended,
// else by handing the slice to another worker.
func (w *Worker) freeSlot(ctx context.Context, f Stuck) error {
	err := w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM slices s USING runs r
			WHERE s.tenant_id = $1 AND s.id = $2 AND s.fence = $3 AND r.tenant_id = s.tenant_id AND r.id = s.run_id AND r.ended_at IS NOT NULL`,
			f.Tenant, f.Slice, f.Fence)
		if err != nil {
			return fmt.Errorf("free a slot: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errStale
		}
		tx.AfterCommit(w.nudge)
		return w.endJob(ctx, tx, f.Job)
	})
	if errors.Is(err, errStale) {
		return w.takeOver(ctx, lostSlice{f.Tenant, f.Slice, f.Fence, f.Job})
	}
	return err
}

// errNoAnswer tells that the review behind a wait is over, and its answer did not reach
// the run. It is for people to look at: an answer is not made up.
var errNoAnswer = errors.New("the review is over, and its answer did not reach the run")

// wakeLost lets the timers close a wait that has no time. Other wakers cannot be made up.
func (w *Worker) wakeLost(ctx context.Context, tx tenants.Tx, f Stuck) error {
	if _, err := lockRunOf(ctx, tx, f.Step); err != nil {
		return err
	}
	if err := w.recheck(ctx, tx, f); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		UPDATE waits SET due_at = now() WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open' AND kind IN ('time', 'retry') AND due_at IS NULL`,
		tx.Tenant, f.Step)
	if err != nil {
		return fmt.Errorf("give a wait its time: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errNoAnswer
	}
	return nil
}

// standAtGroup sets a slice at a list or at branches side by side, where it takes on what
// is left, or joins. Items that were claimed by a slice which is gone are free again.
func (w *Worker) standAtGroup(ctx context.Context, tx tenants.Tx, s slice) error {
	_, err := tx.Exec(ctx, `
		UPDATE step_runs c SET slice_id = NULL
		WHERE c.tenant_id = $1 AND c.run_id = $2 AND c.parent_id = $3 AND c.state = 'queued' AND c.slice_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = c.tenant_id AND s.id = c.slice_id)`, tx.Tenant, s.run, s.step)
	if err != nil {
		return fmt.Errorf("free the items of a list: %w", err)
	}
	s.id = tenants.NewID[slice]()
	return w.addSlices(ctx, tx, s)
}
