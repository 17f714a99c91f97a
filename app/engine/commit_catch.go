package engine

import "tollgate/tenants"

// caughtRow finds rows whose failure is being handled, or was. What such a row does is
// inside it: it belongs to no slice, whatever its kind.
const (
	caughtRow = `chosen LIKE 'error:%'`
	notCaught = `chosen NOT LIKE 'error:%'`
)

// catchMoves are step runs that become frames of what is done about their failure, in
// columns. They are rare, so that the ordinary statement about moves is spared them.
type catchMoves struct {
	stepMoves
	chosen []string
}

func (c *catchMoves) add(entry catchStep, output Digest) {
	c.stepMoves.add(entry.moveStep, output)
	c.chosen = append(c.chosen, string(entry.chosen))
}

func (c *catchMoves) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(c.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE step_runs s SET
				state = m.to_state, chosen = m.chosen, attempt = m.attempt, output_digest = m.output, failure = m.failure,
				note = CASE WHEN m.note = '' THEN s.note ELSE m.note END, cost_micros = s.cost_micros + m.cost,
				ended_at = CASE WHEN m.to_state IN ('running', 'waiting') THEN NULL ELSE now() END,
				slice_id = NULL, fence = 0, changed = pg_current_xact_id()
			FROM (
				SELECT m.*, at.place FROM (
					SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::bytea[], $7::jsonb[], $8::text[], $9::bigint[], $10::text[], $11::uuid[], $12::bigint[])
						AS m (id, to_state, chosen, attempt, output, failure, note, cost, from_state, slice_id, fence) LIMIT $13) m
				`+atStep+`) m
			WHERE s.ctid = m.place AND `+stepUnmoved+` RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $13)`,
		tenant, c.ids, c.to, c.chosen, c.attempts, c.outputs, c.failures, c.notes, c.costs, c.from, c.slices, c.fences, len(c.ids))
}

// catchOutput is the digest of what a handled failure gave at once.
func catchOutput(c *commitment, entry catchStep, values *valueRows) Digest {
	if entry.output != nil {
		return values.add(c.run, entry.output)
	}
	return entry.kept
}
