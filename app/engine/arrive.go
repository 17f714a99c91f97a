package engine

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// arrival is what a slice finds to do at a list or at branches side by side.
type arrival int

const (
	stays      arrival = iota // with an item, or by joining
	leaves                    // for good: others go on, or nobody needs to
	movesUp                   // to the list around
	looksAgain                // others have moved meanwhile
)

// arrive looks what is left to do at the group where the slice stands. Where nothing is,
// it goes to the list around, which may have items left, or ends, which errEnded tells.
func (d *drive) arrive(ctx context.Context) error {
	d.scope.keep(append([]StepRun{*d.step}, d.groups...))
	found, err := d.lookAround(ctx)
	if err != nil {
		return err
	}
	switch found {
	case leaves:
		return errEnded
	case movesUp:
		d.moveUp()
		return d.arrive(ctx)
	case looksAgain:
		return d.arrive(ctx)
	}
	return nil
}

// moveUp lets the slice stand at the list around.
func (d *drive) moveUp() {
	outer := d.outerWindow()
	d.step, d.groups = &d.groups[outer], d.groups[outer+1:]
	d.slice.window, d.outcome = d.step.ID, outcome{kind: arrived}
}

func (d *drive) lookAround(ctx context.Context) (arrival, error) {
	if d.step.Kind == pipeline.KindEach {
		return d.atList(ctx)
	}
	return d.inTx(ctx, d.atBranches)
}

// inTx finds something out in a transaction, patiently.
func (d *drive) inTx(ctx context.Context, find func(context.Context, tenants.Tx) (arrival, error)) (arrival, error) {
	var found arrival
	err := patiently(ctx, func() error {
		return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			found, err = find(ctx, tx)
			return err
		})
	})
	return found, err
}

// outerWindow is the place in d.groups of the innermost list around; -1 where none is.
func (d *drive) outerWindow() int {
	return slices.IndexFunc(d.groups, func(group StepRun) bool { return group.isWindow() })
}

// openInside finds whether anything right inside the group $2 is still open.
const openInside = `EXISTS (SELECT 1 FROM step_runs o WHERE o.tenant_id = $1 AND o.run_id = $3 AND o.parent_id = $2 AND o.state IN ('queued', 'running', 'waiting'))`

// atBranches joins branches side by side once all of them have ended, and leaves them
// before. Of two slices whose branches end together at least one finds none open, since
// each looks behind its own commit; of two that find none open one joins.
func (d *drive) atBranches(ctx context.Context, tx tenants.Tx) (arrival, error) {
	ended, err := d.groupEnded(ctx, tx)
	if err != nil {
		return stays, err
	}
	if ended {
		return d.leaveLate(ctx, tx)
	}
	gone, err := d.departWhile(ctx, tx, openInside)
	if err != nil || !gone {
		return stays, err
	}
	if d.outerWindow() >= 0 {
		return movesUp, nil
	}
	return leaves, nil
}

// groupEnded tells that the group where the slice stands has ended without it.
func (d *drive) groupEnded(ctx context.Context, tx tenants.Tx) (bool, error) {
	var state StepState
	err := tx.QueryRow(ctx, `SELECT state FROM step_runs WHERE tenant_id = $1 AND id = $2`, tx.Tenant, d.step.ID).Scan(&state)
	if err != nil {
		return false, fmt.Errorf("look at a group: %w", err)
	}
	return state != StepRunning, nil
}

// leaveLate takes the slice from a group that ended without it. One that counts towards
// the list around must go there: others may have left that list because of it.
func (d *drive) leaveLate(ctx context.Context, tx tenants.Tx) (arrival, error) {
	outer := d.outerWindow()
	if outer < 0 || d.groups[outer].ID != d.slice.window {
		return leaves, d.dropSlice(ctx, tx)
	}
	gone, err := d.departWhile(ctx, tx, always)
	if err == nil && !gone {
		err = errStale
	}
	return movesUp, err
}

// always is a condition that departWhile takes, and that holds.
const always = `$2::uuid IS NOT NULL AND $3::uuid IS NOT NULL`

// departWhile takes the slice from its group, to the list around or for good, while a
// condition about the group $2 of the run $3 holds, and tells whether it did.
func (d *drive) departWhile(ctx context.Context, tx tenants.Tx, condition string) (bool, error) {
	statement := `DELETE FROM slices WHERE tenant_id = $1 AND id = $4 AND fence = $5 AND ` + condition
	args := []any{tx.Tenant, d.step.ID, d.run.ID, d.slice.id, d.slice.fence}
	if outer := d.outerWindow(); outer >= 0 {
		statement = `UPDATE slices SET step_run_id = $6, window_id = $6, wait_id = NULL
			WHERE tenant_id = $1 AND id = $4 AND fence = $5 AND ` + condition
		args = append(args, d.groups[outer].ID)
	}
	tag, err := tx.Exec(ctx, statement, args...)
	if err != nil {
		return false, fmt.Errorf("leave a group: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// leaveCaught takes a slice away that comes to a group whose failure is handled: whoever
// handles it stands further inside.
func (d *drive) leaveCaught(ctx context.Context) error {
	return d.endLate(ctx)
}

// dropSlice ends the slice, whose branch has nothing more to do.
func (d *drive) dropSlice(ctx context.Context, tx tenants.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM slices WHERE tenant_id = $1 AND id = $2 AND fence = $3`, tx.Tenant, d.slice.id, d.slice.fence)
	if err != nil {
		return fmt.Errorf("end a slice: %w", err)
	}
	return nil
}
