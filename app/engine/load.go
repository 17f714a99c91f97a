package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// late tells that the position was ended by somebody else before the slice came to it: a
// part was cancelled, or a group was joined, and whoever joined it has gone on.
func (d *drive) late(ctx context.Context, tx tenants.Tx) (bool, error) {
	if d.outcome.kind != passed || !forks(d.step.Kind) {
		return d.outcome.kind == passed && IsPart(d.step.Kind), nil
	}
	behind := d.program.Node(d.step.StepID).Next()
	if behind == nil {
		return len(d.groups) == 0 || d.groups[0].State != StepRunning, nil
	}
	var begun bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND step_id = $3 AND parent_id IS NOT DISTINCT FROM $4)`,
		tx.Tenant, d.run.ID, behind.ID(), d.step.Parent).Scan(&begun)
	if err != nil {
		return false, fmt.Errorf("look behind a group: %w", err)
	}
	return begun, nil
}

// loadProgram reads the run's program and its input, as far as the claim did not.
func (d *drive) loadProgram(ctx context.Context, tx tenants.Tx, input given) error {
	version, err := pipeline.VersionByNumber(ctx, tx, d.run.PipelineID, d.run.Version)
	if err != nil {
		return err
	}
	if input.whole() {
		return d.understand(version.Program, input.content)
	}
	content, err := Value(ctx, tx, d.run.Input)
	if err != nil {
		return fmt.Errorf("read a run's input: %w", err)
	}
	return d.understand(version.Program, content.Bytes)
}

// understand makes the run's program and input ready for decisions.
func (d *drive) understand(program *pipeline.Program, input []byte) error {
	d.program = program
	var err error
	d.scope, err = newScope(d.run, input)
	return err
}

func newScope(run Run, input []byte) (scope, error) {
	decoded, err := expr.DecodeJSON(input)
	if err != nil {
		return scope{}, fmt.Errorf("read a run's input: %w", err)
	}
	facts := map[string]any{
		"id": run.ID.String(), "number": json.Number(fmt.Sprint(run.Number)), "name": run.Name,
		"pipeline": run.PipelineName, "started_by": run.StartedName,
		"started_at": run.CreatedAt.Format("2006-01-02T15:04:05Z07:00"),
	}
	return scope{
		input: decoded, run: facts, found: map[place]*found{}, values: map[Digest]any{}, items: map[StepRunID]any{},
		spent: map[StepRunID]int64{}, turns: map[StepRunID][]turn{}, last: map[StepRunID]int{}, earlier: map[Digest]earlierLook{},
	}, nil
}

// loadPosition reads what is around the step run where the slice stands, and works out
// from its state what came out there.
func (d *drive) loadPosition(ctx context.Context, tx tenants.Tx) error {
	if d.step == nil {
		d.outcome.kind = entered
		return nil
	}
	var err error
	if d.groups, err = groupsAround(ctx, tx, d.step.Parent); err != nil {
		return err
	}
	if err := d.loadBlock(ctx, tx); err != nil {
		return err
	}
	switch {
	case !d.step.State.Open():
		d.outcome.kind = passed
	case d.step.State == StepQueued:
		d.outcome.kind = renewed
	case d.step.State == StepRunning && (d.step.Caught() || slices.Contains(groups, string(d.step.Kind))):
		d.outcome.kind = arrived
	case d.step.State == StepRunning:
		d.outcome = outcome{kind: interrupted, settle: &settle{abandoned: &abandoned{d.step.ID, d.step.Attempt}}}
		return d.loadCallInput(ctx, tx)
	default:
		return d.loadWaitOutcome(ctx, tx)
	}
	return nil
}

// loadWaitOutcome reads what the wait that woke the slice came to.
func (d *drive) loadWaitOutcome(ctx context.Context, tx tenants.Tx) error {
	var kind WaitKind
	var output, failure []byte
	err := tx.QueryRow(ctx, `
		SELECT kind, output_digest, failure FROM waits
		WHERE tenant_id = $1 AND id = $2 AND step_run_id = $3 AND state <> 'open'`,
		tx.Tenant, d.slice.wait, d.step.ID).Scan(&kind, &output, &failure)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("slice %s stands at a waiting step that nothing woke", d.slice.id)
	}
	if err != nil {
		return fmt.Errorf("read a wait: %w", err)
	}
	switch {
	case failure != nil:
		d.outcome = outcome{kind: failed, failure: &Failure{}}
		return json.Unmarshal(failure, d.outcome.failure)
	case kind == WaitRetry, kind == WaitCap, kind == WaitSlot:
		d.outcome.kind = again
		return d.loadCallInput(ctx, tx)
	case output == nil: // the time came; there is nothing to hand on
		d.outcome.kind = done
		return nil
	}
	content, err := Value(ctx, tx, digestFrom(output))
	if err != nil {
		return fmt.Errorf("read what a wait came to: %w", err)
	}
	d.outcome = outcome{kind: done, output: content.Bytes}
	if callsOutside(d.step.Kind) { // asked about a call, which may be made again
		return d.loadCallInput(ctx, tx)
	}
	return nil
}

func (d *drive) loadCallInput(ctx context.Context, tx tenants.Tx) error {
	content, err := Value(ctx, tx, d.step.Input)
	if err != nil {
		return fmt.Errorf("read a call's input: %w", err)
	}
	d.scope.callInput = content.Bytes
	return nil
}

// groupsAround reads the open groups from parent outwards.
func groupsAround(ctx context.Context, tx tenants.Tx, parent StepRunID) ([]StepRun, error) {
	var groups []StepRun
	for !parent.IsZero() {
		rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND id = $2`, tx.Tenant, parent)
		if err != nil {
			return nil, err
		}
		if len(rows) != 1 {
			return nil, fmt.Errorf("step run %s is missing", parent)
		}
		groups = append(groups, rows[0])
		parent = rows[0].Parent
	}
	return groups, nil
}
