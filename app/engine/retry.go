package engine

import (
	"context"
	"errors"
	"fmt"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// ErrNotFailed tells that only a run that has failed can be tried again.
var ErrNotFailed = errors.New("the run has not failed")

// ErrNoRoom tells that the pipeline takes no more runs at once, and skips what comes.
var ErrNoRoom = errors.New("the pipeline takes no more runs at once")

// RetryPlan is what happens when the failed step of a run is tried again: the run goes on
// as the same run, with the same version and input.
type RetryPlan struct {
	Run   Run
	Mark  Mark
	Again []Redone // begin anew; the first failed
	Items int      // of lists, that nobody had begun and that go on
	Kept  int      // steps that are done and stay so

	reopening reopening
}

// standstill is what a plan for a failed run is made from.
type standstill struct {
	run     Run
	program *pipeline.Program
	rows    []fallen
	items   int
	kept    int
	last    StepRunID // the step at the top that ended last
}

// planRetry says what trying again means. It is pure.
func planRetry(s standstill) (RetryPlan, error) {
	r, err := s.reopening(StepRunID{})
	if err != nil {
		return RetryPlan{}, err
	}
	plan := RetryPlan{Run: s.run, Mark: markOf(s.run, StepRun{}), Items: s.items, Kept: s.kept, reopening: r}
	plan.Again = r.again(s.program)
	return plan, nil
}

// reopening is how the run goes on, with one of its steps spared or none.
func (s standstill) reopening(spared StepRunID) (reopening, error) {
	if s.run.State != RunFailed {
		return reopening{}, ErrNotFailed
	}
	if len(s.rows) > 0 {
		return reopen(s.rows, spared)
	}
	if s.run.Failure == nil || s.run.Failure.Class != ClassInternal {
		return reopening{}, &NotRetryable{Why: "All its steps ran. What failed is working out the result, which would fail again."}
	}
	return reopening{whole: true, behind: s.last}, nil
}

// PlanRetry says what trying the failed step of a run again means. It returns ErrNoRun,
// ErrNotFailed, or a *NotRetryable.
func PlanRetry(ctx context.Context, tx tenants.Tx, id RunID) (RetryPlan, error) {
	s, err := standstillOf(ctx, tx, id)
	if err != nil {
		return RetryPlan{}, err
	}
	if err := s.count(ctx, tx); err != nil {
		return RetryPlan{}, err
	}
	return planRetry(s)
}

func standstillOf(ctx context.Context, tx tenants.Tx, id RunID) (standstill, error) {
	var s standstill
	var err error
	if s.run, err = RunByID(ctx, tx, id); err != nil {
		return s, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, s.run.PipelineID, s.run.Version)
	if err != nil {
		return s, err
	}
	s.program = version.Program
	if s.run.State != RunFailed {
		return s, nil
	}
	if s.rows, err = fallenRows(ctx, tx, id); err != nil {
		return s, err
	}
	s.last, err = lastAtTop(ctx, tx, id)
	return s, err
}

// count counts what stays and what goes on by itself, which only a page needs to know.
func (s *standstill) count(ctx context.Context, tx tenants.Tx) error {
	if s.run.State != RunFailed {
		return nil
	}
	lists := []StepRunID{}
	for _, f := range s.rows {
		if f.row.Kind == pipeline.KindEach {
			lists = append(lists, f.row.ID)
		}
	}
	var err error
	if s.items, err = untakenIn(ctx, tx, lists); err != nil {
		return err
	}
	s.kept, err = doneSteps(ctx, tx, s.run.ID)
	return err
}

// doneSteps counts the executions of steps that ended well; groups' parts are no steps.
func doneSteps(ctx context.Context, tx tenants.Tx, id RunID) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND state IN ('done', 'skipped') AND kind NOT IN ('item', 'round', 'lane')`,
		tx.Tenant, id).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the steps that are done: %w", err)
	}
	return n, nil
}

// Retry lets a failed run go on by trying its failed step again: finished steps are kept,
// and what was stopped with the failed one goes on, too. Where the run is not as seen
// says, it returns ErrMoved; else the errors of PlanRetry, ErrNoRoom and *TooManyRuns.
func (e *Engine) Retry(ctx context.Context, tx tenants.Tx, id RunID, seen Mark, hand Hand) error {
	before, err := hand.doneBefore(ctx, tx, id)
	if err != nil || before {
		return err
	}
	s, to, err := e.standstillToChange(ctx, tx, id)
	if err != nil {
		return err
	}
	plan, err := planRetry(s)
	switch {
	case err != nil:
		return err
	case seen != "" && seen != plan.Mark:
		return ErrMoved
	}
	if err := e.letGoOn(ctx, tx, s.run, plan.reopening, to, "tried again by "+hand.By.Name, Digest{}); err != nil {
		return err
	}
	return hand.note(ctx, tx, id, "run.retried", map[string]any{"steps": len(plan.Again)})
}

// standstillToChange locks a failed run, behind its pipeline, as starts do, and says how
// it would go on.
func (e *Engine) standstillToChange(ctx context.Context, tx tenants.Tx, id RunID) (standstill, entry, error) {
	run, err := RunByID(ctx, tx, id)
	if err != nil {
		return standstill{}, entry{}, err
	}
	if run.State != RunFailed {
		return standstill{}, entry{}, ErrNotFailed
	}
	to, err := e.readmit(ctx, tx, run)
	if err != nil {
		return standstill{}, to, err
	}
	if err := lockRun(ctx, tx, id); err != nil {
		return standstill{}, to, err
	}
	s, err := standstillOf(ctx, tx, id)
	return s, to, err
}

// readmit says how a run that has ended goes on, by the limits on runs at once.
func (e *Engine) readmit(ctx context.Context, tx tenants.Tx, run Run) (entry, error) {
	if err := e.checkOpenRuns(ctx, tx); err != nil {
		return entry{}, err
	}
	owner, err := pipeline.ByID(ctx, tx, run.PipelineID)
	if err != nil {
		return entry{}, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, max(owner.Live, 1))
	if err != nil {
		return entry{}, err
	}
	limit := version.Document.Concurrency
	if limit == nil {
		return entry{state: RunRunning}, nil
	}
	if err := lockPipeline(ctx, tx, run.PipelineID); err != nil {
		return entry{}, err
	}
	to, err := e.admit(ctx, tx, run.PipelineID, limit)
	if err == nil && to.state.Final() {
		err = ErrNoRoom
	}
	return to, err
}

// letGoOn makes a failed run run again, or wait until its pipeline has room.
func (e *Engine) letGoOn(ctx context.Context, tx tenants.Tx, run Run, r reopening, to entry, note string, output Digest) error {
	born, err := r.write(ctx, tx, run.ID, note, output)
	if err != nil {
		return err
	}
	var of slice
	err = tx.QueryRow(ctx, `
		UPDATE runs r SET state = $3, failure = NULL, ended_at = NULL, ended_by = '', changed = pg_current_xact_id(), reopened = r.reopened + 1
		FROM pipeline_versions v
		WHERE r.tenant_id = $1 AND r.id = $2 AND r.state = 'failed' AND v.tenant_id = $1 AND v.pipeline_id = r.pipeline_id AND v.number = r.version
		RETURNING r.priority, v.semantics`, tx.Tenant, run.ID, to.state).Scan(&of.priority, &of.semantics)
	if err != nil {
		return fmt.Errorf("let a run go on: %w", err)
	}
	for i := range born {
		born[i].run, born[i].priority, born[i].semantics, born[i].paused = run.ID, of.priority, of.semantics, to.state == RunQueued
	}
	return e.addSlices(ctx, tx, born...)
}
