package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/tenants"
)

// Rerun does a run again from a step on, as a new run that is linked to it. Steps before
// are taken over with what they gave, or with what the request says, and cost nothing. A
// form that is sent again leads to the same new run. It returns ErrMoved where things are
// not as seen says, the errors of PlanRerun, *expr.BadJSON, ErrTooLarge, *TooManyRuns.
func (e *Engine) Rerun(ctx context.Context, tx tenants.Tx, request RerunRequest, by tenants.UserID, seen Mark, hand Hand) (Run, error) {
	batch := &tenants.Batch{}
	queueKeyLocks(batch, tx.Tenant, hand.Key)
	if err := tx.Send(ctx, batch); err != nil {
		return Run{}, fmt.Errorf("wait for a form that was sent twice: %w", err)
	}
	earlier, err := RunByKey(ctx, tx, hand.Key)
	if err == nil || !errors.Is(err, ErrNoRun) {
		return earlier, err
	}
	plan, err := planUnpriced(ctx, tx, request)
	switch {
	case err != nil:
		return Run{}, err
	case seen != "" && seen != plan.Mark:
		return Run{}, ErrMoved
	}
	again, err := plan.again(ctx, tx, request)
	if err != nil {
		return Run{}, err
	}
	run, err := e.startAgain(ctx, tx, plan, again, by, hand)
	if err != nil {
		return Run{}, err
	}
	detail := map[string]any{"step": plan.From.ID(), "name": plan.From.Step.Name, "run": run.ID.String(), "number": run.Number, "reused": len(plan.Reused)}
	if err := hand.note(ctx, tx, plan.Run.ID, "run.rerun", detail); err != nil {
		return Run{}, err
	}
	return run, hand.note(ctx, tx, run.ID, "run.started", map[string]any{"origin": plan.Run.ID.String(), "step": plan.From.ID()})
}

// rerun is what a new run begins with that does an older one again.
type rerun struct {
	origin  Run
	step    string
	input   []byte
	rows    []insertStep
	at      StepRunID // where its slice stands; zero: at the beginning
	window  StepRunID
	silent  []Twice
	fresh   bool
	items   *rerunItems
	digests [][]byte // values of the original that it needs
}

// again prepares the new run's rows.
func (p RerunPlan) again(ctx context.Context, tx tenants.Tx, request RerunRequest) (*rerun, error) {
	r := &rerun{origin: p.Run, step: p.From.ID(), input: request.Input, fresh: request.Fresh}
	if r.input == nil {
		content, err := Value(ctx, tx, p.Run.Input)
		if err != nil {
			return nil, fmt.Errorf("read a run's input: %w", err)
		}
		r.input = content.Bytes
	} else if err := checkByHand(r.input); err != nil {
		return nil, err
	}
	for _, twice := range p.Twice {
		if slices.Contains(request.Suppress, twice.Node.ID()) {
			r.silent = append(r.silent, twice)
		}
	}
	if err := r.takeOver(ctx, tx, p, request.Outputs); err != nil {
		return nil, err
	}
	return r, r.list(p, request.Item)
}

// takeOver copies the steps that are taken over, with what is inside them but for items,
// into rows of the new run, and opens the cases that it stays in.
func (r *rerun) takeOver(ctx context.Context, tx tenants.Tx, p RerunPlan, outputs map[string][]byte) error {
	copies := map[StepRunID]StepRunID{}
	for _, around := range p.Kept {
		row := around.Step
		copies[row.ID] = tenants.NewID[StepRun]()
		opened := StepRun{ID: copies[row.ID], Parent: copies[row.Parent], StepID: row.StepID, Kind: row.Kind, List: row.List, State: StepRunning, Attempt: 1, Chosen: row.Chosen}
		r.rows, r.at = append(r.rows, insertStep{row: opened}), opened.ID
	}
	var tops []StepRunID
	for _, reused := range p.Reused {
		tops = append(tops, reused.Step.ID)
	}
	rows, err := copied(ctx, tx, tops)
	if err != nil {
		return err
	}
	for _, row := range rows {
		copies[row.ID] = tenants.NewID[StepRun]()
		if err := r.copy(row, copies, outputs); err != nil {
			return err
		}
	}
	if last := p.From.Previous(); last != nil {
		r.at = copies[p.Reused[len(p.Reused)-1].Step.ID]
	}
	return nil
}

// copy adds the row of a step that is taken over.
func (r *rerun) copy(row StepRun, copies map[StepRunID]StepRunID, outputs map[string][]byte) error {
	taken := insertStep{row: StepRun{
		ID: copies[row.ID], Parent: copies[row.Parent], StepID: row.StepID, Kind: row.Kind, List: row.List, Turn: row.Turn,
		State: row.State, Attempt: 1, Chosen: row.Chosen, Score: row.Score, Input: row.Input, Output: row.Output, Failure: row.Failure, ReusedFrom: row.ID,
	}}
	if edited, ok := outputs[row.StepID]; ok && !IsPart(row.Kind) {
		if err := checkByHand(edited); err != nil {
			return err
		}
		taken.output, taken.row.Output, taken.row.Note = edited, Digest{}, "with another result than it gave"
	}
	for _, kept := range []Digest{taken.row.Input, taken.row.Output} {
		if !kept.IsZero() {
			r.digests = append(r.digests, kept.bytes())
		}
	}
	r.rows = append(r.rows, taken)
	return nil
}

// copied reads steps with what is inside them, outer ones first. The items of lists are
// left out: nothing reads them but their list, which has its results.
func copied(ctx context.Context, tx tenants.Tx, tops []StepRunID) ([]StepRun, error) {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND id = ANY (ARRAY(
		WITH RECURSIVE taken AS (
			SELECT id, kind FROM step_runs WHERE tenant_id = $1 AND id = ANY ($2)
			UNION ALL
			SELECT s.id, s.kind FROM taken t CROSS JOIN LATERAL (
				SELECT id, kind FROM step_runs s WHERE s.tenant_id = $1 AND s.parent_id = t.id AND s.kind <> 'item' OFFSET 0) s
		) SELECT id FROM taken)) ORDER BY created_at, id`, tx.Tenant, tops)
	if err != nil {
		return nil, err
	}
	return outerFirst(rows), nil
}

// outerFirst puts rows before what is inside them.
func outerFirst(rows []StepRun) []StepRun {
	known := map[StepRunID]bool{}
	for _, row := range rows {
		known[row.ID] = true
	}
	inside := map[StepRunID][]StepRun{}
	for _, row := range rows {
		parent := row.Parent
		if !known[parent] {
			parent = StepRunID{}
		}
		inside[parent] = append(inside[parent], row)
	}
	var out []StepRun
	for next := []StepRunID{{}}; len(next) > 0; next = next[1:] {
		for _, row := range inside[next[0]] {
			out, next = append(out, row), append(next, row.ID)
		}
	}
	return out
}

// startAgain starts the new run.
func (e *Engine) startAgain(ctx context.Context, tx tenants.Tx, p RerunPlan, again *rerun, by tenants.UserID, hand Hand) (Run, error) {
	one := &starting{version: p.Version, name: p.Run.PipelineName, StartRequest: StartRequest{
		Pipeline: p.Run.PipelineID, Input: again.input, Sample: p.Run.Sample && DigestOf(again.input) == p.Run.Input, By: by, Key: hand.Key, Fresh: again.fresh, again: again,
	}}
	sheet := newStartSheet(tx)
	how, err := e.mayStart(ctx, tx, sheet, one)
	if err != nil {
		return Run{}, err
	}
	if err := sheet.add(one, how); err != nil {
		return Run{}, err
	}
	if err := sheet.write(ctx); err != nil {
		return Run{}, err
	}
	tx.AfterCommit(e.nudge)
	return one.started.Run, nil
}

// startedAgain is a run that does an older one again, and its first slice.
type startedAgain struct {
	*rerun
	first slice
}

// queue adds what the new run begins with, and its slice.
func (r startedAgain) queue(b *tenants.Batch, tenant tenants.ID) {
	s := r.first
	values, steps := valueRows{}, stepInserts{}
	b.Queue(`UPDATE runs SET origin_run = $3, origin_step = $4 WHERE tenant_id = $1 AND id = $2`, tenant, s.run, r.origin.ID, r.step)
	for _, entry := range r.rows {
		if entry.output != nil {
			entry.row.Output = values.add(s.run, entry.output)
		}
		steps.add(s.run, entry.row)
	}
	values.queue(b, tenant)
	b.Queue(`
		INSERT INTO run_values (tenant_id, digest, run_id)
		SELECT v.tenant_id, v.digest, $2 FROM run_values v
		WHERE v.tenant_id = $1 AND v.run_id = $3 AND (v.digest = ANY ($4) OR EXISTS (
			SELECT 1 FROM stored_values f WHERE f.tenant_id = $1 AND f.digest = v.digest AND f.media_type <> $5))
		ON CONFLICT DO NOTHING`, tenant, s.run, r.origin.ID, r.digests, mediaJSON)
	steps.queue(b, tenant, WorkerID{})
	r.queueItems(b, tenant, s.run)
	for _, silent := range r.silent {
		b.Queue(`INSERT INTO run_suppressed (tenant_id, run_id, step_id, output_digest) VALUES ($1, $2, $3, $4)`,
			tenant, s.run, silent.Node.ID(), silent.Gave.bytes())
		b.Queue(`INSERT INTO run_values (tenant_id, digest, run_id) SELECT $1, $2, $3 WHERE $2::bytea IS NOT NULL ON CONFLICT DO NOTHING`,
			tenant, silent.Gave.bytes(), s.run)
	}
	s.step, s.window = r.at, r.window
	queueSlices(b, tenant, []slice{s})
}
