package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// PlanRerun says what doing a run again from a step means; only what the request says
// about the step and the version counts for it. It returns ErrNoRun, ErrNoPart,
// ErrNotLive, or a *NotRerunnable.
func PlanRerun(ctx context.Context, tx tenants.Tx, request RerunRequest) (RerunPlan, error) {
	m, from, frames, err := rerunMomentOf(ctx, tx, request)
	if err != nil {
		return RerunPlan{}, err
	}
	if m.costs, err = costsBelow(ctx, tx, m.run.ID, frames); err != nil {
		return RerunPlan{}, err
	}
	return planRerun(m, from)
}

// planUnpriced is PlanRerun without the costs, which only a page tells.
func planUnpriced(ctx context.Context, tx tenants.Tx, request RerunRequest) (RerunPlan, error) {
	m, from, _, err := rerunMomentOf(ctx, tx, request)
	if err != nil {
		return RerunPlan{}, err
	}
	return planRerun(m, from)
}

// rerunMomentOf reads what a plan is made from but the costs, with the id of the step and
// the cases around it.
func rerunMomentOf(ctx context.Context, tx tenants.Tx, request RerunRequest) (rerunMoment, string, []StepRunID, error) {
	m := rerunMoment{rows: map[place]StepRun{}}
	var err error
	if m.run, err = RunByID(ctx, tx, request.Run); err != nil {
		return m, "", nil, err
	}
	if err := m.readVersions(ctx, tx, request.Newest); err != nil {
		return m, "", nil, err
	}
	from, err := m.stepNamed(ctx, tx, request.From)
	if err != nil {
		return m, "", nil, err
	}
	frames, err := m.readRows(ctx, tx, from)
	if err != nil {
		return m, "", nil, err
	}
	if m.sent, err = sentBy(ctx, tx, m.run.ID, m.version.Program); err != nil {
		return m, "", nil, err
	}
	if request.Item != nil {
		m.items, err = itemsOf(ctx, tx, m.run.ID, from, request.Item.Item)
	}
	return m, from, frames, err
}

// readVersions reads what the original followed, and what the new run would.
func (m *rerunMoment) readVersions(ctx context.Context, tx tenants.Tx, newest bool) error {
	var err error
	if m.version, err = pipeline.VersionByNumber(ctx, tx, m.run.PipelineID, m.run.Version); err != nil {
		return err
	}
	m.old = m.version.Program
	if !newest {
		return nil
	}
	owner, err := pipeline.ByID(ctx, tx, m.run.PipelineID)
	if err != nil {
		return err
	}
	if owner.Live == 0 {
		return ErrNotLive
	}
	m.version, err = pipeline.VersionByNumber(ctx, tx, m.run.PipelineID, owner.Live)
	return err
}

// stepNamed finds a step by its id, or by that of one of its executions.
func (m *rerunMoment) stepNamed(ctx context.Context, tx tenants.Tx, name string) (string, error) {
	if m.version.Program.Node(name) != nil || m.old.Node(name) != nil {
		return name, nil
	}
	id, err := tenants.ParseID[StepRun](name)
	if err != nil {
		return "", ErrNoPart
	}
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND id = $3`, tx.Tenant, m.run.ID, id)
	if err == nil && len(rows) == 0 {
		err = ErrNoPart
	}
	if err != nil {
		return "", err
	}
	return rows[0].StepID, nil
}

// readRows reads the steps at the top, and those inside the cases around a step.
func (m *rerunMoment) readRows(ctx context.Context, tx tenants.Tx, from string) ([]StepRunID, error) {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND parent_id IS NULL`, tx.Tenant, m.run.ID)
	if err != nil {
		return nil, err
	}
	var frames []StepRunID
	path := pathTo(m.version.Program.Node(from))
	for depth := 0; ; depth++ {
		frame := StepRunID{}
		for _, row := range rows {
			m.rows[place{frame: row.Parent, step: row.StepID}] = row
			if depth < len(path)-1 && row.StepID == path[depth].ID() && row.Kind == pipeline.KindBranch {
				frame = row.ID
			}
		}
		if frame.IsZero() {
			return frames, nil
		}
		frames = append(frames, frame)
		if rows, err = stepRuns(ctx, tx, `tenant_id = $1 AND parent_id = $2`, tx.Tenant, frame); err != nil {
			return nil, err
		}
	}
}

// costsBelow sums what the steps at the top of a run, and those inside some frames, cost
// with all that is inside them, in micro-USD.
func costsBelow(ctx context.Context, tx tenants.Tx, run RunID, frames []StepRunID) (map[StepRunID]int64, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE down AS (
			SELECT s.id AS root, s.id, s.kind, s.cost_micros FROM step_runs s
			WHERE s.tenant_id = $1 AND s.run_id = $2 AND (s.parent_id IS NULL OR s.parent_id = ANY ($3)) AND s.id <> ALL ($3)
			UNION ALL
			SELECT d.root, s.id, s.kind, s.cost_micros FROM down d CROSS JOIN LATERAL (
				SELECT * FROM step_runs s WHERE s.tenant_id = $1 AND s.parent_id = d.id OFFSET 0) s
		)
		SELECT root, sum(cost_micros)::bigint FROM down WHERE kind NOT IN `+groupKinds+` GROUP BY root`, tx.Tenant, run, notNil(frames))
	costs := map[StepRunID]int64{}
	var root StepRunID
	var cost int64
	_, err := pgx.ForEachRow(rows, []any{&root, &cost}, func() error {
		costs[root] = cost
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sum what the steps of a run cost: %w", err)
	}
	return costs, nil
}

// notNil makes a list that Postgres takes for an empty one where there is none.
func notNil(ids []StepRunID) []StepRunID {
	if ids == nil {
		return []StepRunID{}
	}
	return ids
}

// sentBy finds the steps that have sent something in a run, or had it sent before the run.
func sentBy(ctx context.Context, tx tenants.Tx, run RunID, program *pipeline.Program) (map[string]Twice, error) {
	var steps []string
	eachNode(program.Roots(), func(node *pipeline.Node) {
		if sends(node) {
			steps = append(steps, node.ID())
		}
	})
	sent := map[string]Twice{}
	if len(steps) == 0 {
		return sent, nil
	}
	rows, _ := tx.Query(ctx, `
		SELECT step_id, count(*)::int, CASE WHEN count(*) = 1 THEN (array_agg(output_digest))[1] END
		FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND step_id = ANY ($3) AND state = 'done' GROUP BY step_id
		UNION ALL
		SELECT step_id, 1, output_digest FROM run_suppressed WHERE tenant_id = $1 AND run_id = $2 AND step_id = ANY ($3)`, tx.Tenant, run, steps)
	var step string
	var one Twice
	var gave []byte
	_, err := pgx.ForEachRow(rows, []any{&step, &one.Times, &gave}, func() error {
		one.Gave = digestFrom(gave)
		sent[step] = one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find what a run has sent: %w", err)
	}
	return sent, nil
}

// itemsOf reads an item of a list at the top, or in a case, and counts the others.
func itemsOf(ctx context.Context, tx tenants.Tx, run RunID, list string, item StepRunID) (ItemsPlan, error) {
	var plan ItemsPlan
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND id = $3 AND kind = 'item' AND step_id = $4`, tx.Tenant, run, item, list)
	if err == nil && len(rows) == 0 {
		err = ErrNoPart
	}
	if err != nil {
		return plan, err
	}
	if plan.Item = rows[0]; plan.Item.Input.IsZero() {
		return plan, &NotRerunnable{"This item was taken over from an earlier run. Correct it there."}
	}
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state <> 'done')
		FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND kind = 'item' AND id <> $3`,
		tx.Tenant, plan.Item.Parent, item).Scan(&plan.Reused, &plan.Lost)
	if err != nil {
		return plan, fmt.Errorf("count the items of a list: %w", err)
	}
	return plan, nil
}
