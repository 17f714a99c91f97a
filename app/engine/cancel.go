package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// ErrEnded tells that the run had ended before; its state does not change any more.
var ErrEnded = errors.New("the run has ended already")

// Cancel stops a run for good: no step of it starts any more, its reviews are closed,
// and calls under way are cut by their worker's next beat. What they may have cost is
// booked. by is shown as who did it.
func (e *Engine) Cancel(ctx context.Context, tx tenants.Tx, id RunID, by string) error {
	tag, err := tx.Exec(ctx, `
		UPDATE runs SET state = 'cancelled', ended_at = now(), ended_by = $3, changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL`, tx.Tenant, id, by)
	if err != nil {
		return fmt.Errorf("cancel a run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		if _, err := RunByID(ctx, tx, id); err != nil {
			return err
		}
		return ErrEnded
	}
	if err := e.closeReviews(ctx, tx, id); err != nil {
		return err
	}
	return e.cancelSteps(ctx, tx, id)
}

func (e *Engine) closeReviews(ctx context.Context, tx tenants.Tx, id RunID) error {
	rows, _ := tx.Query(ctx, `SELECT id FROM reviews WHERE tenant_id = $1 AND run_id = $2 AND state = 'open' ORDER BY id`, tx.Tenant, id)
	open, err := pgx.CollectRows(rows, pgx.RowTo[review.ID])
	if err != nil {
		return fmt.Errorf("find a run's reviews: %w", err)
	}
	for _, one := range open {
		if _, err := e.Reviews.Close(ctx, tx, one, review.OutcomeCancelled); err != nil {
			return err
		}
	}
	return nil
}

// cancelSteps ends the open step runs and waits, books the money of calls under way,
// and removes the slices, so that their jobs find nothing left to do.
func (e *Engine) cancelSteps(ctx context.Context, tx tenants.Tx, id RunID) error {
	rows, _ := tx.Query(ctx, `
		UPDATE step_runs SET state = 'cancelled', ended_at = now(), slice_id = NULL, changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND run_id = $2 AND state IN ('running', 'waiting') RETURNING id, attempt`, tx.Tenant, id)
	cancelled, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		ID      StepRunID
		Attempt int
	}])
	if err != nil {
		return fmt.Errorf("cancel steps: %w", err)
	}
	batch := &tenants.Batch{}
	batch.Queue(`UPDATE waits SET state = 'cancelled', closed_at = now() WHERE tenant_id = $1 AND run_id = $2 AND state = 'open'`, tx.Tenant, id)
	for _, step := range cancelled {
		ledger.QueueAbandon(batch, ledger.StepRunID(step.ID), step.Attempt)
	}
	batch.Queue(`DELETE FROM slices WHERE tenant_id = $1 AND run_id = $2`, tx.Tenant, id)
	return tx.Send(ctx, batch)
}
