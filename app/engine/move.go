package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Why a run is not moved to another version, besides ErrEnded and *NoFit.
var (
	ErrAtWork       = errors.New("a step of the run is under way")
	ErrOtherVersion = errors.New("the run was moved to another version since")
)

// NoFit tells that a run cannot go on under another version of its pipeline.
type NoFit struct{ Misfits []Misfit }

func (e *NoFit) Error() string {
	return fmt.Sprintf("the run does not fit the other version, for %d reasons", len(e.Misfits))
}

// MovePlan is what moving a run to another version would mean.
type MovePlan struct {
	Run      Run
	From, To pipeline.Version
	Misfits  []Misfit // none: it fits
	AtWork   bool     // a step is under way; it fits once the run waits or is paused
	Done     int      // step runs that have ended, which stay
	Waits    int      // open waits, which stay
}

// PlanMove says what moving a run to another version would mean. It returns ErrEnded for
// a run that has ended, and pipeline.ErrNotFound where there is no such version.
func PlanMove(ctx context.Context, tx tenants.Tx, id RunID, to int) (MovePlan, error) {
	var p MovePlan
	var err error
	if p.Run, err = RunByID(ctx, tx, id); err != nil {
		return p, err
	}
	if p.From, err = pipeline.VersionByNumber(ctx, tx, p.Run.PipelineID, p.Run.Version); err != nil {
		return p, err
	}
	if p.To, err = pipeline.VersionByNumber(ctx, tx, p.Run.PipelineID, to); err != nil {
		return p, err
	}
	if p.Run.State.Final() {
		return p, ErrEnded
	}
	traces, err := p.trace(ctx, tx)
	if err != nil {
		return p, err
	}
	p.Misfits = Misfits(p.From.Program, p.To.Program, traces)
	return p, p.look(ctx, tx)
}

// trace reads what the run has come to, a row for each step however often it ran, and
// counts what has ended.
func (p *MovePlan) trace(ctx context.Context, tx tenants.Tx) ([]Trace, error) {
	rows, _ := tx.Query(ctx, `
		SELECT step_id, kind, list, CASE WHEN kind = 'branch' OR chosen LIKE 'error:%' THEN chosen ELSE '' END,
			bool_or(ended_at IS NOT NULL), count(*) FILTER (WHERE ended_at IS NOT NULL AND kind <> ALL ($3))
		FROM step_runs WHERE tenant_id = $1 AND run_id = $2 GROUP BY 1, 2, 3, 4`, tx.Tenant, p.Run.ID, groups)
	traces, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Trace, error) {
		var t Trace
		var done int
		err := row.Scan(&t.StepID, &t.Kind, &t.List, &t.Chosen, &t.Ended, &done)
		p.Done += done
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what a run has come to: %w", err)
	}
	return traces, nil
}

// look counts what the run waits for, and what it is at.
func (p *MovePlan) look(ctx context.Context, tx tenants.Tx) error {
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM waits WHERE tenant_id = $1 AND run_id = $2 AND state = 'open'),
			EXISTS (SELECT 1 FROM slices WHERE tenant_id = $1 AND run_id = $2 AND state IN ('dispatched', 'running'))`,
		tx.Tenant, p.Run.ID).Scan(&p.Waits, &p.AtWork)
	if err != nil {
		return fmt.Errorf("look at a run: %w", err)
	}
	return nil
}

// Move lets a run that waits or is paused go on under another version of its pipeline. It
// returns what PlanMove would have told: ErrEnded, ErrAtWork or *NoFit; and
// ErrOtherVersion where the run is not on the version from any more. A run that is on the
// version already stays as it is, and moved is false.
func (e *Engine) Move(ctx context.Context, tx tenants.Tx, id RunID, from, to int, by tenants.UserID) (moved bool, err error) {
	if _, err := tx.Exec(ctx, `SELECT 1 FROM runs WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tx.Tenant, id); err != nil {
		return false, fmt.Errorf("lock a run: %w", err)
	}
	plan, err := PlanMove(ctx, tx, id, to)
	switch {
	case err != nil:
		return false, err
	case plan.Run.Version == to:
		return false, nil
	case plan.Run.Version != from:
		return false, ErrOtherVersion
	case len(plan.Misfits) > 0:
		return false, &NoFit{plan.Misfits}
	}
	if err := moveSlices(ctx, tx, id, plan.To.Document.Semantics); err != nil {
		return false, err
	}
	tx.AfterCommit(e.nudge)
	return true, writeMove(ctx, tx, plan, by)
}

// moveSlices puts the run's slices under the rules of its new version. One that has a
// slot, or comes to it meanwhile, may be driven by the old ones.
func moveSlices(ctx context.Context, tx tenants.Tx, id RunID, semantics int) error {
	_, err := tx.Exec(ctx, `
		UPDATE slices SET semantics = $3 WHERE tenant_id = $1 AND run_id = $2 AND state IN ('ready', 'paused')`,
		tx.Tenant, id, semantics)
	if err != nil {
		return fmt.Errorf("move a run's slices: %w", err)
	}
	var atWork bool
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM slices WHERE tenant_id = $1 AND run_id = $2 AND state NOT IN ('ready', 'paused'))`,
		tx.Tenant, id).Scan(&atWork)
	if err != nil {
		return fmt.Errorf("look at a run's slices: %w", err)
	}
	if atWork {
		return ErrAtWork
	}
	return nil
}

// writeMove changes the run's version and keeps a record of it.
func writeMove(ctx context.Context, tx tenants.Tx, plan MovePlan, by tenants.UserID) error {
	batch := &tenants.Batch{}
	batch.Guarded(`
		UPDATE runs SET version = $4, changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND version = $3 AND ended_at IS NULL RETURNING 1`,
		tx.Tenant, plan.Run.ID, plan.From.Number, plan.To.Number)
	batch.Queue(`
		INSERT INTO run_moves (tenant_id, run_id, id, from_version, to_version, moved_by) VALUES ($1, $2, $3, $4, $5, $6)`,
		tx.Tenant, plan.Run.ID, tenants.NewID[Run](), plan.From.Number, plan.To.Number, by)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("move a run: %w", err)
	}
	return nil
}
