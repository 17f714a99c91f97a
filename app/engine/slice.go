package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// slice is one branch of a run that can go forward now.
type slice struct {
	id        SliceID
	run       RunID
	step      StepRunID // where it stands; zero at the run's beginning
	wait      WaitID    // the wait that set it going, if one did
	window    StepRunID // the innermost list around it, whose "at once" it counts towards
	fence     int64
	semantics int
	priority  int16 // of its run, from 1, the most urgent, to 4
	paused    bool  // its run pauses
}

// queueSlices makes slices, ready for a slot. But for the statement that takes events it
// is the only way in which slices come into being; whoever makes one nudges the pump once
// that is committed.
func queueSlices(b *tenants.Batch, tenant tenants.ID, born []slice) {
	if len(born) == 0 {
		return
	}
	var ids []SliceID
	var runs []RunID
	var steps, windows []StepRunID
	var waits []WaitID
	var semantics []int
	var priorities []int16
	var paused []bool
	for _, s := range born {
		ids, runs, steps, windows = append(ids, s.id), append(runs, s.run), append(steps, s.step), append(windows, s.window)
		waits, semantics, priorities, paused = append(waits, s.wait), append(semantics, s.semantics), append(priorities, s.priority), append(paused, s.paused)
	}
	b.Queue(`
		INSERT INTO slices (tenant_id, id, run_id, step_run_id, wait_id, window_id, state, semantics, priority)
		SELECT $1, n.id, n.run_id, n.step_run_id, n.wait_id, n.window_id, CASE WHEN n.paused THEN 'paused' ELSE 'ready' END, n.semantics, n.priority
		FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::int[], $8::smallint[], $9::bool[])
			AS n (id, run_id, step_run_id, wait_id, window_id, semantics, priority, paused)`,
		tenant, ids, runs, steps, waits, windows, semantics, priorities, paused)
}

// addSlices is queueSlices in an open transaction.
func (e *Engine) addSlices(ctx context.Context, tx tenants.Tx, born ...slice) error {
	batch := &tenants.Batch{ByKey: true}
	queueSlices(batch, tx.Tenant, born)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("make slices: %w", err)
	}
	tx.AfterCommit(e.nudge)
	return nil
}

// errStale tells that a job's slice has moved on without it.
var errStale = errors.New("the slice is no longer this job's")

// handOver gives a slice back under the next fence and at step: ready for another slot,
// or paused where its run pauses. Its old job finds the fence outdated. It returns
// errStale where the slice was not at fence any more; the transaction must then be given
// up.
//
// Step runs come before slices in the order of locks, so their fence is lifted first.
// It is lifted again once the slice is locked: the old worker may have begun a step in
// between, and none begins after.
func (e *Engine) handOver(ctx context.Context, tx tenants.Tx, id SliceID, fence int64, step *StepRunID) error {
	paused, err := lockRunOfSlice(ctx, tx, id, fence)
	if err != nil {
		return err
	}
	if err := liftFence(ctx, tx, id, fence+1); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		UPDATE slices SET state = CASE WHEN $5 THEN 'paused' ELSE 'ready' END, fence = fence + 1, ready_at = now(), job_id = NULL, worker_id = NULL, dispatched_at = NULL, claimed_at = NULL,
			step_run_id = coalesce($4, step_run_id), wait_id = CASE WHEN $4::uuid IS NULL THEN wait_id END
		WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND `+stateByKey+` IN ('dispatched', 'running')`, tx.Tenant, id, fence, step, paused)
	if err != nil {
		return fmt.Errorf("hand a slice over: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errStale
	}
	tx.AfterCommit(e.nudge)
	return liftFence(ctx, tx, id, fence+1)
}

// lockRunOfSlice locks the run of a slice at fence, shared, so that no pause begins or
// ends meanwhile, and tells whether it pauses.
func lockRunOfSlice(ctx context.Context, tx tenants.Tx, id SliceID, fence int64) (paused bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT r.state <> 'running' FROM slices s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		WHERE s.tenant_id = $1 AND s.id = $2 AND s.fence = $3 FOR SHARE OF r`, tx.Tenant, id, fence).Scan(&paused)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, errStale
	}
	if err != nil {
		return false, fmt.Errorf("lock a slice's run: %w", err)
	}
	return paused, nil
}

// liftFence puts the slice's open step runs under the new fence, so that a commit of
// the old worker changes nothing. If the old worker moved to its next step while we
// waited for its row, that row shows only to a further statement.
func liftFence(ctx context.Context, tx tenants.Tx, id SliceID, fence int64) error {
	for range 2 {
		tag, err := tx.Exec(ctx, `
			UPDATE step_runs SET fence = $3
			WHERE tenant_id = $1 AND slice_id = $2 AND state IN ('running', 'waiting') AND fence < $3`, tx.Tenant, id, fence)
		if err != nil {
			return fmt.Errorf("lift a fence: %w", err)
		}
		if tag.RowsAffected() > 0 {
			return nil
		}
	}
	return nil
}
