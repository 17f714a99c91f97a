package engine

import (
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// rerunItems are the items of a list that is joined again.
type rerunItems struct {
	from, to, item StepRunID // the list of the original, the new one, and the item that is done again
	value          []byte
	others         bool
}

// list opens the list of which one item is done again.
func (r *rerun) list(p RerunPlan, edit *ItemEdit) error {
	if edit == nil {
		return nil
	}
	if p.From.Kind() != pipeline.KindEach {
		return ErrNoPart
	}
	if err := checkByHand(edit.Value); err != nil {
		return err
	}
	row := StepRun{ID: tenants.NewID[StepRun](), StepID: p.From.ID(), Kind: pipeline.KindEach, List: p.From.List, State: StepRunning, Attempt: 1, AtOnce: p.From.Each().AtOnce}
	if len(p.Kept) > 0 {
		row.Parent = r.rows[len(p.Kept)-1].row.ID
	}
	r.rows, r.at, r.window = append(r.rows, insertStep{row: row}), row.ID, row.ID
	r.items = &rerunItems{from: p.Items.Item.Parent, to: row.ID, item: edit.Item, value: edit.Value, others: edit.Others}
	return nil
}

// queueItems adds the items of the list: those that are done with what they gave, and those
// that are done again in their places, with the values they had or were given. What a done
// one was about can be seen in the original.
func (r *rerun) queueItems(b *tenants.Batch, tenant tenants.ID, run RunID) {
	if r.items == nil {
		return
	}
	i := r.items
	value := queueValue(b, tenant, run, mediaJSON, i.value)
	b.Queue(`
		WITH taken AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, input_digest, output_digest, failure, score, reused_from, ended_at)
			SELECT $1, gen_random_uuid(), $2, $3, o.step_id, o.kind, o.list, o.turn, n.state, CASE WHEN o.id = $5 THEN $6 WHEN n.state <> 'done' THEN o.input_digest END,
				CASE WHEN n.state = 'done' THEN o.output_digest END, CASE WHEN n.state = 'failed' THEN o.failure END, o.score,
				CASE WHEN n.state <> 'queued' THEN o.id END, CASE WHEN n.state <> 'queued' THEN now() END
			FROM step_runs o CROSS JOIN LATERAL (
				SELECT CASE WHEN o.id <> $5 AND o.state IN ('done', 'failed') AND NOT (o.state = 'failed' AND $7) THEN o.state ELSE 'queued' END AS state OFFSET 0) n
			WHERE o.tenant_id = $1 AND o.parent_id = $4 AND o.kind = 'item'
			RETURNING input_digest, output_digest)
		INSERT INTO run_values (tenant_id, digest, run_id)
		SELECT $1, v.digest, $2 FROM taken CROSS JOIN LATERAL (VALUES (input_digest), (output_digest)) v (digest) WHERE v.digest IS NOT NULL
		ON CONFLICT DO NOTHING`, tenant, run, i.to, i.from, i.item, value.bytes(), i.others)
}
