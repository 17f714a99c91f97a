package engine

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// atList takes on items of a list, joins it once all have ended, or leaves it. Where too
// many have failed, or items were taken on before, there is nothing to look for.
func (d *drive) atList(ctx context.Context) (arrival, error) {
	list := d.program.Node(d.step.StepID).Each()
	there, err := d.takeItems(ctx, list)
	switch {
	case err != nil:
		return stays, err
	case d.outcome.lost.count > list.MaxFailed:
		return stays, nil
	case there > list.AtOnce && len(d.block) == 0:
		return d.inTx(ctx, func(ctx context.Context, tx tenants.Tx) (arrival, error) { return d.leaveSurplus(ctx, tx, list.AtOnce) })
	case len(d.block) == 0 && d.outerWindow() >= 0:
		return d.inTx(ctx, d.leaveInner)
	case len(d.block) == 0:
		return d.leaveList(ctx)
	case d.took.fresh && there < list.AtOnce:
		return d.inTx(ctx, func(ctx context.Context, tx tenants.Tx) (arrival, error) {
			return stays, d.grow(ctx, tx, max(there, 1), list.AtOnce)
		})
	}
	return stays, nil
}

// growth is how many slices more each of a list's slices sets going.
const growth = 4

// grow sets more slices going in the list, while items are left and all of those that are
// there have their slots.
func (d *drive) grow(ctx context.Context, tx tenants.Tx, there, atOnce int) error {
	if there >= atOnce {
		return nil
	}
	alone, err := tx.Exec(ctx, `
		SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE SKIP LOCKED`, tx.Tenant, d.step.ID)
	if err != nil {
		return fmt.Errorf("lock a list: %w", err)
	}
	if alone.RowsAffected() == 0 {
		return nil // somebody else sees to it
	}
	var left int
	err = tx.QueryRow(ctx, `
		SELECT count(*) FROM (
			SELECT 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL AND turn > $3 LIMIT $4) untaken
		WHERE NOT EXISTS (SELECT 1 FROM slices WHERE tenant_id = $1 AND window_id = $2 AND state IN ('ready', 'dispatched'))`,
		tx.Tenant, d.step.ID, d.took.last, min(growth*there, atOnce-there)).Scan(&left)
	if err != nil {
		return fmt.Errorf("look who is in a list: %w", err)
	}
	if left == 0 {
		return nil
	}
	born := make([]slice, left)
	for i := range born {
		born[i] = slice{id: tenants.NewID[slice](), run: d.run.ID, step: d.step.ID, window: d.step.ID,
			semantics: d.slice.semantics, priority: d.slice.priority}
	}
	return d.addSlices(ctx, tx, born...)
}

// inWindow counts the slices of a list's window.
const inWindow = `SELECT count(*) FROM slices WHERE tenant_id = $1 AND window_id = $2`

// leaveSurplus ends the slice where the list has more than may go at once: others were
// woken behind waits, and come first. The lock keeps two from leaving for each other; who
// finds that another has left looks for items again.
func (d *drive) leaveSurplus(ctx context.Context, tx tenants.Tx, atOnce int) (arrival, error) {
	if _, err := d.lockGroup(ctx, tx); err != nil {
		return stays, err
	}
	var there int
	if err := tx.QueryRow(ctx, inWindow, tx.Tenant, d.step.ID).Scan(&there); err != nil {
		return stays, fmt.Errorf("count a list's slices: %w", err)
	}
	if there <= atOnce {
		return looksAgain, nil
	}
	return leaves, d.dropSlice(ctx, tx)
}

// lockGroup makes the slices that leave a group do so one after the other.
func (d *drive) lockGroup(ctx context.Context, tx tenants.Tx) (StepState, error) {
	var state StepState
	err := tx.QueryRow(ctx, `
		SELECT state FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tx.Tenant, d.step.ID).Scan(&state)
	if err != nil {
		return "", fmt.Errorf("lock a group: %w", err)
	}
	return state, nil
}

// leaveList takes the slice from a list that has no items left for it. The last one joins
// the list if nothing is open in it any more. Where items still wait for something, what is
// woken there comes to the list again.
func (d *drive) leaveList(ctx context.Context) (arrival, error) {
	leaving := &leaver{list: d.step.ID, run: d.run.ID, slice: d.slice.id, fence: d.slice.fence}
	err := patiently(ctx, func() error { return d.worker.leavers.do(d.tenant, leaving) })
	switch {
	case err != nil:
		return stays, err
	case leaving.joins:
		return stays, nil
	case leaving.gone:
		return leaves, nil
	}
	return stays, errStale
}

// leaveInner is leaveList for a list inside another. There the last one, if it does not
// join, goes to the list around, so that the items there have somebody.
func (d *drive) leaveInner(ctx context.Context, tx tenants.Tx) (arrival, error) {
	state, err := d.lockGroup(ctx, tx)
	if err != nil {
		return stays, err
	}
	if state != StepRunning {
		return leaves, d.dropSlice(ctx, tx)
	}
	var open bool
	var others int
	err = tx.QueryRow(ctx, `SELECT `+openInside+`, (`+inWindow+` AND id <> $4)`, tx.Tenant, d.step.ID, d.run.ID, d.slice.id).Scan(&open, &others)
	if err != nil {
		return stays, fmt.Errorf("look at a list: %w", err)
	}
	switch {
	case others > 0:
		return leaves, d.dropSlice(ctx, tx)
	case !open:
		return stays, nil
	}
	gone, err := d.departWhile(ctx, tx, always)
	if err == nil && !gone {
		err = errStale
	}
	return movesUp, err
}
