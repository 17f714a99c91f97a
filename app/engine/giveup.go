package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// maxFailures is how often a slice's job may fail, for reasons that are nobody's but
// ours, before its run is given up. Trouble with the database does not count, nor does
// a worker that dies: a take-over makes a new job. With River's pauses between the
// tries it takes some minutes, so that a bad release can be taken back.
const maxFailures = 10

// giveUp fails the run of a slice that fails at every try, so that it stands still with
// a reason instead of trying for ever. It reads as little as it can, since whatever it
// reads may be what is broken.
func (d *drive) giveUp(ctx context.Context) error {
	err := d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		run, _, err := d.stand(ctx, tx)
		if err != nil {
			return err
		}
		if err := lockRun(ctx, tx, run); err != nil {
			return err
		}
		_, stepID, err := d.stand(ctx, tx) // under the lock: it may have been taken over
		if err != nil {
			return err
		}
		failure := &Failure{Class: ClassInternal, StepID: stepID, Detail: d.job.LastError(),
			Message: "Tollgate could not carry this run on, for a reason that lies in Tollgate itself. It was tried several times. Tell whoever runs Tollgate."}
		if err := failRun(ctx, tx, run, failure); err != nil {
			return err
		}
		tx.AfterCommit(d.nudgeQueue)
		return d.endRest(ctx, tx, run, d.slice.id, failure)
	})
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// stand is the run of the slice and the step where it stands.
func (d *drive) stand(ctx context.Context, tx tenants.Tx) (RunID, string, error) {
	var run RunID
	var stepID string
	err := tx.QueryRow(ctx, `
		SELECT s.run_id, coalesce(
			(SELECT p.step_id FROM step_runs p WHERE p.tenant_id = s.tenant_id AND p.slice_id = s.id AND p.state IN ('running', 'waiting') LIMIT 1),
			(SELECT p.step_id FROM step_runs p WHERE p.tenant_id = s.tenant_id AND p.id = s.step_run_id), '')
		FROM slices s WHERE s.tenant_id = $1 AND s.id = $2 AND s.fence = $3`,
		tx.Tenant, d.slice.id, d.slice.fence).Scan(&run, &stepID)
	if errors.Is(err, pgx.ErrNoRows) {
		return run, "", errStale
	}
	if err != nil {
		return run, "", fmt.Errorf("find a slice's step: %w", err)
	}
	return run, stepID, nil
}

func lockRun(ctx context.Context, tx tenants.Tx, run RunID) error {
	if _, err := tx.Exec(ctx, `SELECT 1 FROM runs WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tx.Tenant, run); err != nil {
		return fmt.Errorf("lock a run: %w", err)
	}
	return nil
}

func failRun(ctx context.Context, tx tenants.Tx, run RunID, failure *Failure) error {
	tag, err := tx.Exec(ctx, `
		UPDATE runs SET state = 'failed', failure = $3, ended_at = now(), changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL`, tx.Tenant, run, failure.json())
	if err != nil {
		return fmt.Errorf("fail a run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errStale
	}
	return nil
}
