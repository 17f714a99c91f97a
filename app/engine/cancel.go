package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
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
		WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL`, tx.Tenant, id, expr.Plain(by))
	if err != nil {
		return fmt.Errorf("cancel a run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		if _, err := RunByID(ctx, tx, id); err != nil {
			return err
		}
		return ErrEnded
	}
	tx.AfterCommit(e.nudgeQueue)
	tx.AfterCommit(e.roomMade)
	if err := e.closeReviews(ctx, tx, id); err != nil {
		return err
	}
	return endOpenSteps(ctx, tx, id, SliceID{}, nil)
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

// endOpenSteps ends the open step runs and waits of a run that has ended, writes down
// the tries under way, books their money, and removes the slices, so that their jobs
// find nothing left to do. With a failure, the steps of the slice that failed and the
// groups fail by it; all others are cancelled.
func endOpenSteps(ctx context.Context, tx tenants.Tx, run RunID, failing SliceID, failure *Failure) error {
	rows, _ := tx.Query(ctx, `
		UPDATE step_runs s SET ended_at = now(), slice_id = NULL, changed = pg_current_xact_id(),
			state = CASE WHEN o.fails THEN 'failed' ELSE 'cancelled' END, failure = CASE WHEN o.fails THEN $4::jsonb END
		FROM (
			SELECT id, state, $4::jsonb IS NOT NULL AND (slice_id = $3 OR kind = ANY ($5)) AS fails
			FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND state IN ('running', 'waiting')
			ORDER BY id FOR UPDATE
		) o
		WHERE s.tenant_id = $1 AND s.id = o.id
		RETURNING s.id, s.attempt, s.begun_at, o.state = 'running' AND s.kind = ANY ($6) AS calling, coalesce(o.fails, false)`,
		tx.Tenant, run, failing, failure.json(), groups, outside)
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[endedStep])
	if err != nil {
		return fmt.Errorf("end a run's steps: %w", err)
	}
	batch := &tenants.Batch{}
	batch.Queue(`UPDATE waits SET state = 'cancelled', closed_at = now() WHERE tenant_id = $1 AND run_id = $2 AND state = 'open'`, tx.Tenant, run)
	for _, step := range ended {
		step.queueTry(batch, tx.Tenant, failure)
		ledger.QueueAbandon(batch, ledger.StepRunID(step.ID), step.Attempt)
		queueCost(batch, tx.Tenant, step.ID)
	}
	batch.Queue(`DELETE FROM slices WHERE tenant_id = $1 AND run_id = $2`, tx.Tenant, run)
	return tx.Send(ctx, batch)
}

// endedStep is a step run that was ended from outside its slice.
type endedStep struct {
	ID      StepRunID
	Attempt int
	BegunAt time.Time
	Calling bool // its outside call was under way
	Fails   bool
}

// queueTry writes down the try that was under way.
func (s endedStep) queueTry(b *tenants.Batch, tenant tenants.ID, failure *Failure) {
	if !s.Calling {
		return
	}
	outcome := AttemptCancelled
	if s.Fails {
		outcome = AttemptFailed
	} else {
		failure = nil
	}
	b.Queue(`
		INSERT INTO attempts (tenant_id, step_run_id, number, outcome, began_at, failure)
		VALUES ($1, $2, $3, $4, $5, $6)`, tenant, s.ID, s.Attempt, outcome, s.BegunAt, failure.json())
}

// outside are the kinds whose steps call outside, groups those that hold other steps.
var (
	outside = []string{string(pipeline.KindAI), string(pipeline.KindEmail)}
	groups  = []string{string(pipeline.KindBranch), string(pipeline.KindRepeat), string(pipeline.KindEach), string(pipeline.KindParallel)}
)
