package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// mendWait gives a step that waits without a wait what it lost, and tells whether it
// waits on. Where its last wait is over, the slice goes on with what that came to; where
// that was called off, the step waits anew for the same. A wait for a time or an event
// that left no trace fails the step, since nothing else says what it was for; any other
// step is tried again.
func (e *Engine) mendWait(ctx context.Context, tx tenants.Tx, s *slice) (waitsOn bool, err error) {
	if asked, err := reopenReviewWait(ctx, tx, s.step); asked || err != nil {
		return asked, err
	}
	var last WaitID
	var kind WaitKind
	var state string
	err = tx.QueryRow(ctx, `
		SELECT id, kind, state FROM waits WHERE tenant_id = $1 AND run_id = $2 AND step_run_id = $3 ORDER BY opened_at DESC, id DESC LIMIT 1`,
		tx.Tenant, s.run, s.step).Scan(&last, &kind, &state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, replaceWait(ctx, tx, s)
	case err != nil:
		return false, fmt.Errorf("look for a lost wait: %w", err)
	case state != "cancelled":
		s.wait = last
		return false, nil
	case kind == WaitTime, kind == WaitEvent:
		return true, waitAnew(ctx, tx, last)
	}
	return false, replaceWait(ctx, tx, s)
}

// waitAnew opens a wait again that was called off. An event that came meanwhile is
// spread to it.
func waitAnew(ctx context.Context, tx tenants.Tx, last WaitID) error {
	batch := &tenants.Batch{}
	batch.Queue(`
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, due_at, reason, event_name, event_key)
		SELECT tenant_id, $3, run_id, step_run_id, kind, due_at, reason, event_name, event_key FROM waits WHERE tenant_id = $1 AND id = $2`,
		tx.Tenant, last, tenants.NewID[Wait]())
	batch.Queue(`
		UPDATE events e SET spreading = true FROM waits w
		WHERE w.tenant_id = $1 AND w.id = $2 AND w.kind = 'event' AND e.tenant_id = $1 AND e.name = w.event_name AND e.key = w.event_key
			AND e.sent_at >= w.opened_at AND NOT e.spreading`, tx.Tenant, last)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("open a lost wait again: %w", err)
	}
	return nil
}

// replaceWait puts a wait that is over in the place of one that left no trace.
func replaceWait(ctx context.Context, tx tenants.Tx, s *slice) error {
	s.wait = tenants.NewID[Wait]()
	lost := &Failure{Class: ClassInternal, Message: "What this step waited for was lost, by a defect of ours. Start the run again."}
	_, err := tx.Exec(ctx, `
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, state, reason, failure, closed_at)
		SELECT tenant_id, $3, run_id, id, 'retry', 'done', 'The wait was lost; the watchdog set the step going again.',
			CASE WHEN kind = ANY ($4) THEN $5::jsonb END, now()
		FROM step_runs WHERE tenant_id = $1 AND id = $2`,
		tx.Tenant, s.step, s.wait, []string{string(pipeline.KindWait), string(pipeline.KindEvent)}, lost.json())
	if err != nil {
		return fmt.Errorf("replace a lost wait: %w", err)
	}
	return nil
}
