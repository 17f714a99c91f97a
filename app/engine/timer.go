package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// dueWait is an open wait whose time has come.
type dueWait struct {
	Tenant tenants.ID
	Step   StepRunID
	Kind   WaitKind
}

// FireTimers wakes what is due and returns how many waits it closed. It runs in every
// worker, at least once a second; of two at once the first wins.
func (e *Engine) FireTimers(ctx context.Context) (int, error) {
	var due []dueWait
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `
			SELECT tenant_id, step_run_id, kind FROM waits
			WHERE state = 'open' AND due_at <= clock_timestamp() ORDER BY due_at LIMIT 500`)
		var err error
		due, err = pgx.CollectRows(rows, pgx.RowToStructByPos[dueWait])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for due waits: %w", err)
	}
	fired := 0
	for _, one := range due {
		err := e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error { return e.fire(ctx, tx, one) })
		if err == nil {
			fired++
		} else if !errors.Is(err, ErrNotWaiting) {
			return fired, fmt.Errorf("fire a timer: %w", err)
		}
	}
	return fired, nil
}

func (e *Engine) fire(ctx context.Context, tx tenants.Tx, due dueWait) error {
	if due.Kind == WaitReview {
		return e.expireReview(ctx, tx, due.Step)
	}
	return e.wake(ctx, tx, waking{step: due.Step, state: "done"})
}

// ResumeCapped wakes what was stopped by a cap, after it was raised, and returns how
// many step runs try again now. Those that still do not fit wait on.
func (e *Engine) ResumeCapped(ctx context.Context, tx tenants.Tx) (int, error) {
	rows, _ := tx.Query(ctx, `SELECT step_run_id FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind = 'cap' ORDER BY id`, tx.Tenant)
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[StepRunID])
	if err != nil {
		return 0, fmt.Errorf("look for steps stopped by a cap: %w", err)
	}
	for _, step := range waiting {
		if err := e.wake(ctx, tx, waking{step: step, state: "done"}); err != nil && !errors.Is(err, ErrNotWaiting) {
			return 0, err
		}
	}
	return len(waiting), nil
}
