package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ErrNotWaiting tells that the step run has no open wait: it was woken before, or its
// run has ended.
var ErrNotWaiting = errors.New("the step is not waiting")

// waking is what a wait came to.
type waking struct {
	step    StepRunID
	state   string   // done or expired
	output  []byte   // the step's output, where the wait gives one
	failure *Failure // why the step fails, where it does
}

// wake closes the open wait of a step run and sends a slice on its way from there. The
// first to close it wins; everybody later gets ErrNotWaiting.
func (e *Engine) wake(ctx context.Context, tx tenants.Tx, w waking) error {
	s, err := lockRunOf(ctx, tx, w.step)
	if err != nil {
		return err
	}
	s.id = tenants.NewID[slice]()
	tag, err := tx.Exec(ctx, `
		UPDATE step_runs SET slice_id = $3, fence = 1, changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = 'waiting' AND slice_id IS NULL`, tx.Tenant, w.step, s.id)
	if err != nil {
		return fmt.Errorf("wake a step: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return ErrNotWaiting
	}
	if s.wait, err = closeWait(ctx, tx, s.run, w); err != nil {
		return err
	}
	return e.addSlices(ctx, tx, s)
}

// goesOn tells of a run that its waits are woken: it runs, or will once it is resumed.
const goesOn = `state IN ('running', 'pausing', 'paused')`

// lockRunOf locks the run of a step run, if it goes on, shared, as every change of steps
// does first, and gives the slice that could go on there.
func lockRunOf(ctx context.Context, tx tenants.Tx, step StepRunID) (slice, error) {
	s := slice{step: step}
	err := tx.QueryRow(ctx, `
		SELECT r.id, r.priority, `+semanticsOf+`, r.state <> 'running', `+windowAround+`
		FROM step_runs s
		JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		WHERE s.tenant_id = $1 AND s.id = $2 AND r.`+goesOn+` FOR SHARE OF r`,
		tx.Tenant, step).Scan(&s.run, &s.priority, &s.semantics, &s.paused, &s.window)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrNotWaiting
	}
	if err != nil {
		return s, fmt.Errorf("lock a run: %w", err)
	}
	return s, nil
}

// semanticsOf is the number of rules that the run r follows. It is looked up and not
// joined: where a statement waited for a run that was moved to another version meanwhile,
// a join would find nothing.
const semanticsOf = `(
	SELECT v.semantics FROM pipeline_versions v WHERE v.tenant_id = r.tenant_id AND v.pipeline_id = r.pipeline_id AND v.number = r.version)`

// windowAround finds the innermost list around the step run s.
const windowAround = `(
	WITH RECURSIVE around (id, depth) AS (
		SELECT s.parent_id, 0 WHERE s.parent_id IS NOT NULL
		UNION ALL
		SELECT p.parent_id, depth + 1 FROM around JOIN step_runs p ON p.tenant_id = s.tenant_id AND p.id = around.id WHERE p.parent_id IS NOT NULL
	)
	SELECT g.id FROM around JOIN step_runs g ON g.tenant_id = s.tenant_id AND g.id = around.id AND g.kind = 'each' AND g.chosen = '' ORDER BY depth LIMIT 1)`

// closeWait closes the step run's open wait with what it came to.
func closeWait(ctx context.Context, tx tenants.Tx, run RunID, w waking) (WaitID, error) {
	var output Digest
	if w.output != nil {
		batch := &tenants.Batch{}
		output = queueValue(batch, tx.Tenant, run, mediaJSON, w.output)
		if err := tx.Send(ctx, batch); err != nil {
			return WaitID{}, err
		}
	}
	var id WaitID
	err := tx.QueryRow(ctx, `
		UPDATE waits SET state = $3, closed_at = now(), output_digest = $4, failure = $5
		WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open' RETURNING id`,
		tx.Tenant, w.step, w.state, output.bytes(), w.failure.json()).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return id, ErrNotWaiting
	}
	if err != nil {
		return id, fmt.Errorf("close a wait: %w", err)
	}
	return id, nil
}
