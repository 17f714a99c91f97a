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
	fence     int64
	semantics int
	jobID     int64
}

// dispatch makes a slice at a step and the job that drives it.
func (e *Engine) dispatch(ctx context.Context, tx tenants.Tx, s slice, priority int16) error {
	s.fence = 1
	var err error
	if s.jobID, err = e.insertJob(ctx, tx, s.id, s.fence, s.semantics, priority); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO slices (tenant_id, id, run_id, step_run_id, wait_id, state, fence, job_id, semantics, dispatched_at)
		VALUES ($1, $2, $3, $4, $5, 'dispatched', $6, $7, $8, now())`,
		tx.Tenant, s.id, s.run, s.step, s.wait, s.fence, s.jobID, s.semantics)
	if err != nil {
		return fmt.Errorf("dispatch a slice: %w", err)
	}
	return nil
}

// errStale tells that a job's slice has moved on without it.
var errStale = errors.New("the slice is no longer this job's")

// claimSlice takes a slice for a worker. The same job may claim again after a try of it
// broke off, since River runs a job once at a time; any other is stale.
func claimSlice(ctx context.Context, tx tenants.Tx, args DriveSlice, jobID int64, worker WorkerID) (slice, error) {
	s := slice{id: args.Slice, fence: args.Fence, jobID: jobID}
	err := tx.QueryRow(ctx, `
		UPDATE slices SET state = 'running', worker_id = $5, claimed_at = now(), job_id = $4
		WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND (state = 'dispatched' OR job_id = $4)
		RETURNING run_id, step_run_id, wait_id, semantics`,
		tx.Tenant, args.Slice, args.Fence, jobID, worker).Scan(&s.run, &s.step, &s.wait, &s.semantics)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, errStale
	}
	if err != nil {
		return s, fmt.Errorf("claim a slice: %w", err)
	}
	return s, nil
}

// handOver gives a slice to a new job under the next fence, at step. The caller
// completes or cancels the old job. It returns errStale where the slice was not at
// fence any more; the transaction must then be given up.
//
// Step runs come before slices in the order of locks, so their fence is lifted first.
// It is lifted again once the slice is locked: the old worker may have begun a step in
// between, and none begins after.
func (e *Engine) handOver(ctx context.Context, tx tenants.Tx, id SliceID, fence int64, step *StepRunID) error {
	if err := liftFence(ctx, tx, id, fence+1); err != nil {
		return err
	}
	semantics, priority, err := lockSlice(ctx, tx, id, fence)
	if err != nil {
		return err
	}
	job, err := e.insertJob(ctx, tx, id, fence+1, semantics, priority)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		UPDATE slices SET state = 'dispatched', fence = $3, job_id = $4, worker_id = NULL, dispatched_at = now(), claimed_at = NULL,
			step_run_id = coalesce($5, step_run_id), wait_id = CASE WHEN $5::uuid IS NULL THEN wait_id END
		WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id, fence+1, job, step)
	if err != nil {
		return fmt.Errorf("hand a slice over: %w", err)
	}
	return liftFence(ctx, tx, id, fence+1)
}

// lockSlice locks a slice that stands at fence and tells how its job is queued.
func lockSlice(ctx context.Context, tx tenants.Tx, id SliceID, fence int64) (int, int16, error) {
	var semantics int
	var priority int16
	err := tx.QueryRow(ctx, `
		SELECT s.semantics, r.priority FROM slices s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		WHERE s.tenant_id = $1 AND s.id = $2 AND s.fence = $3 FOR UPDATE OF s`, tx.Tenant, id, fence).Scan(&semantics, &priority)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, errStale
	}
	if err != nil {
		return 0, 0, fmt.Errorf("lock a slice: %w", err)
	}
	return semantics, priority, nil
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
