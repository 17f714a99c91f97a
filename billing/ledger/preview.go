package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Preview is what runs of a version cost until now, to say what the next one may cost.
type Preview struct {
	Runs    int    // that ended well, the newest, as many as were asked for at most
	Average Micros // of a run with the runs it started
	Least   Micros
	Most    Micros
	Steps   []StepPreview // that called a model, the dearest first
}

// StepPreview is what one step of a pipeline cost in those runs.
type StepPreview struct {
	StepID string
	Calls  int64  // over all of the runs
	Each   Micros // average of a call
	PerRun Micros // average of a run
}

// maxPreviewRuns bounds how many runs a preview is drawn from.
const maxPreviewRuns = 100

// PreviewOf is drawn from the newest runs of a version that ended well, of calls paid with
// some funds. Without such runs it says Runs 0.
func PreviewOf(ctx context.Context, tx tenants.Tx, pipeline PipelineID, version int, funds Funds, runs int) (Preview, error) {
	runs = max(1, min(runs, maxPreviewRuns))
	var p Preview
	var ids []RunID
	err := tx.QueryRow(ctx, `
		WITH last AS (
			SELECT r.id FROM runs r WHERE r.tenant_id = $1 AND r.pipeline_id = $2 AND r.version = $3 AND r.state = 'completed'
			ORDER BY r.id DESC LIMIT $5
		), cost AS (
			SELECT l.id, coalesce(b.spent_micros, 0) AS spent FROM last l
			LEFT JOIN balances b ON b.tenant_id = $1 AND b.scope = 'run' AND b.scope_id = l.id::text AND b.funds = $4
				AND b.period = 'once' AND b.period_start = 'epoch'
		)
		SELECT count(*), coalesce(round(avg(spent)), 0)::bigint, coalesce(min(spent), 0)::bigint, coalesce(max(spent), 0)::bigint,
			coalesce(array_agg(id), '{}') FROM cost`, tx.Tenant, pipeline, version, funds, runs).
		Scan(&p.Runs, &p.Average, &p.Least, &p.Most, &ids)
	if err != nil {
		return Preview{}, fmt.Errorf("read what runs of a version cost: %w", err)
	}
	rows, _ := tx.Query(ctx, `
		SELECT s.step_id, count(*), round(avg(c.cost_micros))::bigint, round(sum(c.cost_micros)::numeric / greatest($4, 1))::bigint AS per_run
		FROM charges c JOIN step_runs s ON s.tenant_id = c.tenant_id AND s.id = c.step_run_id
		WHERE c.tenant_id = $1 AND c.run_id = ANY ($2) AND c.funds = $3 AND c.kind = 'ordinary'
		GROUP BY s.step_id ORDER BY per_run DESC, s.step_id`, tx.Tenant, ids, funds, p.Runs)
	p.Steps, err = pgx.CollectRows(rows, pgx.RowToStructByPos[StepPreview])
	if err != nil {
		return Preview{}, fmt.Errorf("read what steps of a version cost: %w", err)
	}
	return p, nil
}
