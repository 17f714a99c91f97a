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
	return e.endRest(ctx, tx, id, SliceID{}, nil)
}

// endRest ends everything that is still open in a run that has ended.
func (e *Engine) endRest(ctx context.Context, tx tenants.Tx, id RunID, failing SliceID, failure *Failure) error {
	if err := e.closeReviews(ctx, tx, `run_id = $2`, id); err != nil {
		return err
	}
	return endOpenSteps(ctx, tx, id, failing, failure)
}

// closeReviews closes the open reviews that a condition on $2 chooses.
func (e *Engine) closeReviews(ctx context.Context, tx tenants.Tx, condition string, of any) error {
	rows, _ := tx.Query(ctx, `SELECT id FROM reviews WHERE tenant_id = $1 AND `+condition+` AND state = 'open' ORDER BY id`, tx.Tenant, of)
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
		WITH open AS (
			SELECT id, state, $3::jsonb IS NOT NULL AND (slice_id = $5 OR kind = ANY ($6)) AND state <> 'queued' AS fails
			FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND state IN ('queued', 'running', 'waiting')
			ORDER BY id FOR UPDATE
		)`+endQuery, tx.Tenant, run, failure.json(), outside, failing, groups)
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[endedStep])
	if err != nil {
		return fmt.Errorf("end a run's steps: %w", err)
	}
	batch := &tenants.Batch{}
	batch.Queue(`UPDATE waits SET state = 'cancelled', closed_at = now() WHERE tenant_id = $1 AND run_id = $2 AND state = 'open'`, tx.Tenant, run)
	for _, step := range ended {
		step.queueMoney(batch, tx.Tenant, failure)
	}
	batch.Queue(`DELETE FROM slices WHERE tenant_id = $1 AND run_id = $2`, tx.Tenant, run)
	return tx.Send(ctx, batch)
}

// endQuery ends the step runs in open, and gives those that may have called outside ($4)
// or waited. $3 is the failure of those that fail.
const endQuery = `, ended AS (
		UPDATE step_runs s SET ended_at = now(), slice_id = NULL, changed = pg_current_xact_id(),
			state = CASE WHEN o.fails THEN 'failed' ELSE 'cancelled' END, failure = CASE WHEN o.fails THEN $3::jsonb END
		FROM open o WHERE s.tenant_id = $1 AND s.id = o.id
		RETURNING s.id, s.kind = ANY ($4) AND s.chosen = '' AS outside, s.attempt, s.begun_at, o.state, coalesce(o.fails, false) AS fails
	)
	SELECT * FROM ended WHERE outside OR state = 'waiting'`

// endedStep is a step run that was ended from outside its slice.
type endedStep struct {
	ID      StepRunID
	Outside bool // it may have called outside
	Attempt int
	BegunAt time.Time
	State   StepState // before
	Fails   bool
}

// queueMoney writes down the try under way and books its money.
func (s endedStep) queueMoney(b *tenants.Batch, tenant tenants.ID, failure *Failure) {
	if !s.Outside {
		return
	}
	s.queueTry(b, tenant, failure)
	ledger.QueueAbandon(b, ledger.StepRunID(s.ID), s.Attempt)
	queueCost(b, tenant, s.ID)
}

// queueTry writes down the try that was under way.
func (s endedStep) queueTry(b *tenants.Batch, tenant tenants.ID, failure *Failure) {
	if s.State != StepRunning {
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
	outside = []string{string(pipeline.KindAI), string(pipeline.KindEmail), string(pipeline.KindHTTP)}
	groups  = []string{
		string(pipeline.KindBranch), string(pipeline.KindRepeat), string(pipeline.KindEach), string(pipeline.KindParallel),
		string(KindRound), string(KindItem), string(KindLane),
	}
)
