package engine

import (
	"tollgate/app/expr"
	"tollgate/tenants"
)

// renewedSteps are steps that begin again in the rows that they have.
type renewedSteps struct{ rows []renewedStep }

type renewedStep struct {
	row StepRun
	by  SliceID
}

func (r *renewedSteps) add(c *commitment, row StepRun) {
	r.rows = append(r.rows, renewedStep{row, c.slice})
}

// queue begins each row that still is queued for its slice. Those of a list of many come
// one by one, as their slices do.
func (r *renewedSteps) queue(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	for _, one := range r.rows {
		row := one.row
		if row.State != StepRunning {
			row.Slice = SliceID{} // only a slice that works on a step is held by it
		}
		b.Queue(`
			WITH hit AS (
				UPDATE step_runs SET state = $4, worker_id = $5, fence = $6, slice_id = $7, chosen = $8, input_digest = $9, output_digest = $10,
					failure = $11, note = $12, score = $13, at_once = $14, chain = NULL, begun_at = now(), changed = pg_current_xact_id(),
					ended_at = CASE WHEN $4 IN ('running', 'waiting') THEN NULL ELSE now() END
				WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = 'queued' AND slice_id = $3 RETURNING 1)
			SELECT require_rows((SELECT count(*) FROM hit), 1)`,
			tenant, row.ID, one.by, string(row.State), worker, row.Fence, row.Slice, string(row.Chosen), row.Input.bytes(), row.Output.bytes(),
			row.Failure.json(), expr.Plain(row.Note), row.Score, positive(row.AtOnce))
	}
}
