package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ErrNotRunning tells that a run cannot be paused: it is queued, or pausing or paused
// already. ErrNotPaused tells that there is nothing to resume.
var (
	ErrNotRunning = errors.New("the run is not running")
	ErrNotPaused  = errors.New("the run is not paused")
)

// Pause lets a run finish the steps it is at and begin no more, until it is resumed.
// What it waits for may come meanwhile; it goes on from there afterwards. It returns
// ErrEnded for a run that has ended and ErrNotRunning for one in any other state.
func (e *Engine) Pause(ctx context.Context, tx tenants.Tx, id RunID) error {
	if err := moveRun(ctx, tx, id, RunPausing, ErrNotRunning, RunRunning); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		UPDATE slices SET state = 'paused', fence = fence + 1, dispatched_at = NULL
		WHERE tenant_id = $1 AND run_id = $2 AND state IN ('ready', 'dispatched')`, tx.Tenant, id)
	if err != nil {
		return fmt.Errorf("pause slices: %w", err)
	}
	tx.AfterCommit(e.roomMade)
	return settlePause(ctx, tx, id)
}

// Resume lets a paused run go on. It returns ErrEnded for a run that has ended and
// ErrNotPaused for one that is not paused.
func (e *Engine) Resume(ctx context.Context, tx tenants.Tx, id RunID) error {
	if err := moveRun(ctx, tx, id, RunRunning, ErrNotPaused, RunPausing, RunPaused); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		UPDATE slices SET state = 'ready', ready_at = now() WHERE tenant_id = $1 AND run_id = $2 AND state = 'paused'`, tx.Tenant, id)
	if err != nil {
		return fmt.Errorf("resume slices: %w", err)
	}
	tx.AfterCommit(e.nudge)
	return nil
}

// moveRun gives a run another state, if it is in one of from; else it returns why not.
// Its lock is exclusive, so that whatever the run's branches are about to commit comes
// before or sees the new state.
func moveRun(ctx context.Context, tx tenants.Tx, id RunID, to RunState, otherwise error, from ...RunState) error {
	tag, err := tx.Exec(ctx, `
		UPDATE runs SET state = $3, changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = ANY ($4)`, tx.Tenant, id, to, from)
	if err != nil {
		return fmt.Errorf("change a run's state: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	run, err := RunByID(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case run.State.Final():
		return ErrEnded
	}
	return otherwise
}

// settlePause makes a pausing run paused, once none of its slices is under way. Of two
// that park at once the later to look finds the other's gone.
func settlePause(ctx context.Context, tx tenants.Tx, id RunID) error {
	_, err := tx.Exec(ctx, `
		UPDATE runs SET state = 'paused', changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = 'pausing' AND NOT EXISTS (
			SELECT 1 FROM slices WHERE tenant_id = $1 AND run_id = $2 AND `+stateByKey+` <> 'paused')`, tx.Tenant, id)
	if err != nil {
		return fmt.Errorf("end a pause's begin: %w", err)
	}
	return nil
}

// SettlePauses makes those runs paused whose last slice parked without a word, as where
// its process died right then, and returns how many it looked at.
func (e *Engine) SettlePauses(ctx context.Context) (int, error) {
	var pausing []runOf
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT tenant_id, id FROM runs WHERE state = 'pausing' LIMIT 1000`)
		var err error
		pausing, err = pgx.CollectRows(rows, pgx.RowToStructByPos[runOf])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for pausing runs: %w", err)
	}
	return each(pausing, "settle a pause", func(one runOf) error {
		return e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error { return settlePause(ctx, tx, one.Run) })
	})
}

// runOf names a run across tenants.
type runOf struct {
	Tenant tenants.ID
	Run    RunID
}

// putAside puts the slice aside where it stands, because its run pauses and nothing is in
// our hands that must be recorded.
func (d *drive) putAside(ctx context.Context) error {
	if err := d.giveBack(ctx); err != nil {
		return err
	}
	return errEnded
}

// pausing tells that the run is to begin nothing more for now.
func (d *drive) pausing() bool { return d.run.State == RunPausing || d.run.State == RunPaused }

// settlePause looks whether this slice was the last of a pausing run. It comes after the
// commit that ended the slice, so that of two at once the later sees both gone.
func (d *drive) settlePause(ctx context.Context) error {
	if !d.pausing() {
		return nil
	}
	return patiently(ctx, func() error {
		return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error { return settlePause(ctx, tx, d.run.ID) })
	})
}
