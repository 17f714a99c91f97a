package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Stopped is a run that a cap has stopped at some step.
type Stopped struct {
	Run      Run
	Step     StepRunID // the one that has been stopped for longest
	StepID   string    // its place in the pipeline
	Since    time.Time
	Reason   string        // which cap, in words for people
	AsksWord bool          // it waits for a person's word, also where there is room
	Steps    int           // of the run that are stopped
	Needs    ledger.Micros // what the step's next call would reserve; 0 where that is not known
	Funds    ledger.Funds
}

// StoppedFilter chooses among the stopped runs; zero parts choose all.
type StoppedFilter struct {
	Pipeline pipeline.ID
	Run      RunID
	Limit    int // 0: 20
}

const stoppedWaits = `
	FROM waits w
	JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id
	WHERE w.tenant_id = $1 AND w.state = 'open' AND w.kind = 'cap' AND r.ended_at IS NULL
		AND ($2::uuid IS NULL OR r.pipeline_id = $2) AND ($3::uuid IS NULL OR r.id = $3)`

// StoppedRuns reads the runs that a cap has stopped, the longest stopped first, and how
// many there are.
func (e *Engine) StoppedRuns(ctx context.Context, tx tenants.Tx, filter StoppedFilter) ([]Stopped, int, error) {
	if filter.Limit <= 0 {
		filter.Limit = 20
	}
	var total int
	if err := tx.QueryRow(ctx, `SELECT count(DISTINCT w.run_id)`+stoppedWaits, tx.Tenant, filter.Pipeline, filter.Run).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count runs stopped by a cap: %w", err)
	}
	rows, _ := tx.Query(ctx, `
		SELECT f.run_id, f.step_run_id, s.step_id, f.opened_at, f.reason, f.asks_word, f.steps FROM (
			SELECT DISTINCT ON (w.run_id) w.*, count(*) OVER (PARTITION BY w.run_id) AS steps`+stoppedWaits+` ORDER BY w.run_id, w.id
		) f
		JOIN step_runs s ON s.tenant_id = f.tenant_id AND s.id = f.step_run_id
		ORDER BY f.id LIMIT $4`, tx.Tenant, filter.Pipeline, filter.Run, filter.Limit)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stopped, error) {
		var s Stopped
		err := row.Scan(&s.Run.ID, &s.Step, &s.StepID, &s.Since, &s.Reason, &s.AsksWord, &s.Steps)
		return s, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list runs stopped by a cap: %w", err)
	}
	return found, total, e.completeStopped(ctx, tx, found)
}

// completeStopped adds each run and what its next call needs.
func (e *Engine) completeStopped(ctx context.Context, tx tenants.Tx, found []Stopped) error {
	for i := range found {
		var err error
		if found[i].Run, err = RunByID(ctx, tx, found[i].Run.ID); err != nil {
			return err
		}
		steps, err := stepRuns(ctx, tx, `tenant_id = $1 AND id = $2 AND state = 'waiting'`, tx.Tenant, found[i].Step)
		if err != nil || len(steps) == 0 {
			return err
		}
		need, err := e.needOf(ctx, tx, steps[0])
		if err != nil {
			return err
		}
		if need.hold != nil {
			found[i].Needs, found[i].Funds = need.hold.Amount, need.hold.Price.Funds
		}
	}
	return nil
}

// AskWord lets the stopped runs wait for a person's word before they go on, also where
// there is room.
func AskWord(ctx context.Context, tx tenants.Tx, filter StoppedFilter) error {
	_, err := tx.Exec(ctx, `UPDATE waits SET asks_word = true
		WHERE tenant_id = $1 AND state = 'open' AND id IN (SELECT w.id`+stoppedWaits+`)`, tx.Tenant, filter.Pipeline, filter.Run)
	if err != nil {
		return fmt.Errorf("let stopped runs wait for a word: %w", err)
	}
	return nil
}

// mostLetGoOn bounds how many steps one word wakes; the others follow with the next one,
// and those that ask for no word by themselves.
const mostLetGoOn = 10_000

// LetGoOn is a person's word that stopped runs go on: each tries its call again, and is
// stopped anew where no cap has room for it. It returns how many steps that were. Each is
// a transaction of its own.
func (e *Engine) LetGoOn(ctx context.Context, by tenants.Membership, filter StoppedFilter) (int, error) {
	if err := by.Require(tenants.StartRuns); err != nil && by.Require(tenants.SetCaps) != nil {
		return 0, err
	}
	var steps []StepRunID
	err := e.DB.InTx(ctx, by.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT w.step_run_id`+stoppedWaits+` ORDER BY w.id LIMIT $4`, tx.Tenant, filter.Pipeline, filter.Run, mostLetGoOn)
		var err error
		steps, err = pgx.CollectRows(rows, pgx.RowTo[StepRunID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for steps stopped by a cap: %w", err)
	}
	return each(steps, "let a stopped step go on", func(step StepRunID) error {
		return e.DB.InTx(ctx, by.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
			return e.wake(ctx, tx, waking{step: step, state: "done"})
		})
	})
}
