package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// ErrNotSkippable tells that a step has ended, or is at work, and so cannot be skipped.
var ErrNotSkippable = errors.New("the step neither waits nor failed")

// maxByHand bounds a value that somebody types, in bytes.
const maxByHand = 256 << 10

// SkipPlan is what happens when a step that failed or waits is skipped: it counts as
// ended with a value that somebody gives, and the run goes on behind it.
type SkipPlan struct {
	Run   Run
	Step  StepRun
	Node  *pipeline.Node
	Mark  Mark
	Wait  *Wait    // that ends with it; nil for a step that failed
	Reads []string // what later steps read of it: "text"; "" is all of it
	Again []Redone // other steps that failed or were stopped with it, and begin anew

	reopening reopening
}

// stoodStep is a step run with what a plan for it is made from.
type stoodStep struct {
	standstill
	step StepRun
	wait *Wait
}

// planSkip says what skipping means. It is pure.
func planSkip(s stoodStep) (SkipPlan, error) {
	plan := SkipPlan{Run: s.run, Step: s.step, Node: s.program.Node(s.step.StepID), Mark: markOf(s.run, s.step), Wait: s.wait}
	if plan.Node == nil || IsPart(s.step.Kind) {
		return plan, ErrNotSkippable
	}
	plan.Reads = readsOf(s.program, plan.Node)
	if s.wait != nil && s.run.State.goesOn() {
		return plan, nil
	}
	fell := slices.ContainsFunc(s.rows, func(f fallen) bool { return f.row.ID == s.step.ID })
	if s.run.State != RunFailed || s.step.State != StepFailed || !fell {
		return plan, ErrNotSkippable
	}
	var err error
	if plan.reopening, err = s.reopening(s.step.ID); err != nil {
		return plan, err
	}
	plan.Again = plan.reopening.again(s.program)
	return plan, nil
}

// goesOn tells a run whose waits can be ended.
func (s RunState) goesOn() bool { return s == RunRunning || s == RunPausing || s == RunPaused }

// readsOf lists what formulas and texts of a program read of a step.
func readsOf(program *pipeline.Program, step *pipeline.Node) []string {
	var reads []string
	note := func(refs []expr.Ref) {
		for _, ref := range refs {
			if ref.Root != "steps" || len(ref.Path) == 0 || ref.Path[0] != step.ID() {
				continue
			}
			field := ""
			if len(ref.Path) > 1 {
				field = ref.Path[1]
			}
			if !slices.Contains(reads, field) {
				reads = append(reads, field)
			}
		}
	}
	eachNode(program.Roots(), func(node *pipeline.Node) { note(node.Refs()) })
	for _, value := range program.Result() {
		note(value.Formula.Refs())
	}
	return reads
}

// eachNode goes through steps and what is inside them.
func eachNode(nodes []*pipeline.Node, visit func(*pipeline.Node)) {
	for _, node := range nodes {
		visit(node)
		for _, list := range node.Lists {
			eachNode(list.Nodes, visit)
		}
	}
}

// PlanSkip says what skipping a step run means. It returns ErrNoRun, ErrNoPart,
// ErrNotSkippable, or a *NotRetryable.
func PlanSkip(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID) (SkipPlan, error) {
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return SkipPlan{}, err
	}
	return planSkip(s)
}

func stoodStepOf(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID) (stoodStep, error) {
	var s stoodStep
	var err error
	if s.standstill, err = standstillOf(ctx, tx, run); err != nil {
		return s, err
	}
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND id = $3`, tx.Tenant, run, step)
	if err != nil {
		return s, err
	}
	if len(rows) == 0 {
		return s, ErrNoPart
	}
	s.step = rows[0]
	s.wait, err = openWaitOf(ctx, tx, step)
	return s, err
}

// openWaitOf reads the open wait of a step run; nil where it has none.
func openWaitOf(ctx context.Context, tx tenants.Tx, step StepRunID) (*Wait, error) {
	rows, _ := tx.Query(ctx, `SELECT `+waitColumns+` FROM waits WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open'`, tx.Tenant, step)
	wait, err := pgx.CollectExactlyOneRow(rows, scanWait)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the wait of a step: %w", err)
	}
	return &wait, nil
}

// Skip lets a run go on behind a step that failed or waits, with a value that somebody
// gives as JSON. It returns ErrMoved where things are not as seen says, the errors of
// PlanSkip and Retry, ErrTooLarge, and *expr.BadJSON.
func (e *Engine) Skip(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID, output []byte, seen Mark, hand Hand) error {
	before, err := hand.doneBefore(ctx, tx, run)
	if err != nil || before {
		return err
	}
	owner, err := RunByID(ctx, tx, run)
	if err != nil {
		return err
	}
	var to entry
	if owner.State == RunFailed {
		if to, err = e.readmit(ctx, tx, owner); err != nil {
			return err
		}
	}
	if err := lockRun(ctx, tx, run); err != nil {
		return err
	}
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return err
	}
	if seen != "" && seen != markOf(s.run, s.step) || s.run.State != owner.State {
		return ErrMoved
	}
	plan, err := planSkip(s)
	if err != nil {
		return err
	}
	if err := checkByHand(output); err != nil {
		return err
	}
	if err := e.skip(ctx, tx, plan, output, to, hand); err != nil {
		return err
	}
	return hand.note(ctx, tx, run, "step.skipped", map[string]any{"step": plan.Node.ID(), "name": plan.Node.Step.Name})
}

// skip writes the value down and carries the run on behind the step.
func (e *Engine) skip(ctx context.Context, tx tenants.Tx, plan SkipPlan, output []byte, to entry, hand Hand) error {
	batch := &tenants.Batch{}
	digest := queueValue(batch, tx.Tenant, plan.Run.ID, mediaJSON, output)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("keep a value: %w", err)
	}
	note := "skipped by " + hand.By.Name
	if plan.Wait == nil {
		return e.letGoOn(ctx, tx, plan.Run, plan.reopening, to, note, digest)
	}
	return e.skipWait(ctx, tx, plan, note, digest)
}

// skipWait ends a step that waits, and whatever it waits for.
func (e *Engine) skipWait(ctx context.Context, tx tenants.Tx, plan SkipPlan, note string, output Digest) error {
	s, err := lockRunOf(ctx, tx, plan.Step.ID)
	if err != nil {
		return err
	}
	if err := e.closeReviews(ctx, tx, `step_run_id = $2`, plan.Step.ID); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		UPDATE step_runs SET state = 'skipped', output_digest = $3, note = $4, ended_at = now(), changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = 'waiting' AND slice_id IS NULL`, tx.Tenant, plan.Step.ID, output.bytes(), expr.Plain(note))
	if err != nil {
		return fmt.Errorf("skip a step: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return ErrMoved
	}
	_, err = tx.Exec(ctx, `
		UPDATE waits SET state = 'cancelled', closed_at = now() WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open'`, tx.Tenant, plan.Step.ID)
	if err != nil {
		return fmt.Errorf("end the wait of a step: %w", err)
	}
	s.id = tenants.NewID[slice]()
	return e.addSlices(ctx, tx, s)
}

// checkByHand refuses a value that no formula could read.
func checkByHand(value []byte) error {
	if len(value) > maxByHand {
		return ErrTooLarge
	}
	_, err := expr.DecodeJSON(value)
	return err
}
