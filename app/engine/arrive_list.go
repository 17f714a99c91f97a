package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// atList takes on items of a list, joins it once all have ended, or leaves it. Where too
// many have failed, or items were taken on before, there is nothing to look for.
func (d *drive) atList(ctx context.Context, tx tenants.Tx) (arrival, error) {
	list := d.program.Node(d.step.StepID).Each()
	var err error
	if d.outcome.lost, err = lostIn(ctx, tx, d.step.ID, list.MaxFailed); err != nil {
		return stays, err
	}
	if d.outcome.lost.count > list.MaxFailed || len(d.block) > 0 {
		return stays, nil
	}
	there, tooMany, err := d.surplus(ctx, tx, list.AtOnce)
	if tooMany || err != nil {
		return leaves, err
	}
	if err := d.takeItems(ctx, tx, list.AtOnce); err != nil {
		return stays, err
	}
	if len(d.block) > 0 {
		return stays, d.grow(ctx, tx, max(there, 1), list.AtOnce)
	}
	return d.leaveList(ctx, tx)
}

// grow sets as many slices more going in the list as there are, while items are left and
// all of those that are there have their slots.
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
		tx.Tenant, d.step.ID, d.took.last, min(there, atOnce-there)).Scan(&left)
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

// lostIn counts the items that failed, up to one more than may, and reads the first.
func lostIn(ctx context.Context, tx tenants.Tx, list StepRunID, may int) (lostItems, error) {
	var lost lostItems
	var failure []byte
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' LIMIT $3) lost), turn, failure
		FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' ORDER BY turn LIMIT 1`,
		tx.Tenant, list, may+1).Scan(&lost.count, &lost.first, &failure)
	if errors.Is(err, pgx.ErrNoRows) {
		return lost, nil
	}
	if err != nil {
		return lost, fmt.Errorf("count the items that failed: %w", err)
	}
	lost.why, err = failureFrom(failure)
	return lost, err
}

// inWindow counts the slices of a list's window.
const inWindow = `SELECT count(*) FROM slices WHERE tenant_id = $1 AND window_id = $2`

// surplus counts the slices of the list, and ends this one where they are more than may go
// at once: others were woken behind waits, and come first. The lock keeps two from leaving
// for each other.
func (d *drive) surplus(ctx context.Context, tx tenants.Tx, atOnce int) (there int, ends bool, err error) {
	for _, lock := range []bool{false, true} {
		if lock {
			if _, err := d.lockGroup(ctx, tx); err != nil {
				return 0, false, err
			}
		}
		if err := tx.QueryRow(ctx, inWindow, tx.Tenant, d.step.ID).Scan(&there); err != nil {
			return 0, false, fmt.Errorf("count a list's slices: %w", err)
		}
		if there <= atOnce {
			return there, false, nil
		}
	}
	return there, true, d.dropSlice(ctx, tx)
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

// leaveList joins a list in which nothing is open any more. Otherwise the slice goes: to
// the list around, if it is the last here, so that the items there have somebody.
func (d *drive) leaveList(ctx context.Context, tx tenants.Tx) (arrival, error) {
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
	case !open:
		return stays, nil
	case others > 0 || d.outerWindow() < 0:
		return leaves, d.dropSlice(ctx, tx)
	}
	gone, err := d.departWhile(ctx, tx, always)
	if err == nil && !gone {
		err = errStale
	}
	return movesUp, err
}
