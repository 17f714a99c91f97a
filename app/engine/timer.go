package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// dueWait is an open wait whose time has come.
type dueWait struct {
	Tenant    tenants.ID
	Step      StepRunID
	Kind      WaitKind
	Due       time.Time
	ID        WaitID
	EventName string
	EventKey  string
}

// duePage is how many due waits are read at a time.
const duePage = 500

// FireTimers wakes what is due and returns how many waits it closed. It runs in every
// worker, at least once a second; of two at once the first wins. A wait that cannot be
// closed stops no other, and is tried again next time.
func (e *Engine) FireTimers(ctx context.Context) (int, error) {
	fired := 0
	var failures []error
	var last dueWait
	for {
		due, err := e.dueAfter(ctx, last)
		if err != nil {
			return fired, errors.Join(append(failures, err)...)
		}
		done, err := each(due, "fire a timer", func(one dueWait) error {
			return e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error { return e.fire(ctx, tx, one) })
		})
		fired += done
		failures = append(failures, err)
		if len(due) < duePage || ctx.Err() != nil {
			return fired, errors.Join(failures...)
		}
		last = due[len(due)-1]
	}
}

// dueAfter reads the waits that are due, from behind last in the order of their times.
func (e *Engine) dueAfter(ctx context.Context, last dueWait) ([]dueWait, error) {
	var due []dueWait
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `
			SELECT tenant_id, step_run_id, kind, due_at, id, event_name, event_key FROM waits
			WHERE state = 'open' AND due_at <= clock_timestamp() AND ($2::uuid IS NULL OR (due_at, id) > ($1, $2::uuid))
			ORDER BY due_at, id LIMIT $3`, last.Due, last.ID, duePage)
		var err error
		due, err = pgx.CollectRows(rows, pgx.RowToStructByPos[dueWait])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for due waits: %w", err)
	}
	return due, nil
}

func (e *Engine) fire(ctx context.Context, tx tenants.Tx, due dueWait) error {
	switch due.Kind {
	case WaitReview:
		return e.expireReview(ctx, tx, due.Step)
	case WaitEvent:
		return e.expireEvent(ctx, tx, due)
	}
	return e.wake(ctx, tx, waking{step: due.Step, state: "done"})
}
