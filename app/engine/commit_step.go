package engine

import (
	"tollgate/app/expr"
	"tollgate/tenants"
)

// stateByKey asks for the state of a row that is named by its key. Asked plainly for an
// open state, the planner may go through all open step runs of the tenant, and the dead
// entries of those that were, to find the one.
const stateByKey = `state || ''`

// stepMoves are changes of existing step runs, in columns.
type stepMoves struct {
	ids               []StepRunID
	from, to          []string
	slices            []SliceID
	fences            []int64
	attempts          []int
	outputs, failures [][]byte
	notes             []string
	costs             []int64
	chains            [][]byte
}

func (s *stepMoves) add(m moveStep, output Digest) {
	s.ids = append(s.ids, m.id)
	s.from, s.to = append(s.from, string(m.from)), append(s.to, string(m.to))
	s.slices, s.fences = append(s.slices, m.slice), append(s.fences, m.fence)
	s.attempts = append(s.attempts, m.attempt)
	s.outputs, s.failures = append(s.outputs, output.bytes()), append(s.failures, m.failure.json())
	s.notes, s.costs = append(s.notes, expr.Plain(m.note)), append(s.costs, m.cost)
	s.chains = append(s.chains, m.chain.json())
}

// queue moves each row that still is where it was decided on: in its old state, and in
// the hands of the same slice under the same fence.
func (s *stepMoves) queue(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	if len(s.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE step_runs s SET
				state = m.to_state, attempt = m.attempt, output_digest = coalesce(m.output, s.output_digest), failure = m.failure,
				note = CASE WHEN m.note = '' THEN s.note ELSE m.note END, cost_micros = s.cost_micros + m.cost, chain = coalesce(m.chain, s.chain),
				begun_at = CASE WHEN m.to_state = 'running' THEN now() ELSE s.begun_at END,
				ended_at = CASE WHEN m.to_state IN ('running', 'waiting') THEN NULL ELSE now() END,
				slice_id = CASE WHEN m.to_state = 'running' THEN s.slice_id END,
				worker_id = CASE WHEN m.to_state = 'running' THEN $2 ELSE s.worker_id END,
				changed = pg_current_xact_id()
			FROM (
				SELECT m.*, at.place FROM (
					SELECT * FROM unnest($3::uuid[], $4::text[], $5::int[], $6::bytea[], $7::jsonb[], $8::text[], $9::bigint[], $10::text[], $11::uuid[], $12::bigint[], $14::jsonb[])
						AS m (id, to_state, attempt, output, failure, note, cost, from_state, slice_id, fence, chain) LIMIT $13) m
				`+atStep+`) m
			WHERE s.ctid = m.place AND `+stepUnmoved+` RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $13)`,
		tenant, worker, s.ids, s.to, s.attempts, s.outputs, s.failures, s.notes, s.costs, s.from, s.slices, s.fences, len(s.ids), s.chains)
}

// Where the rows m are.
const (
	atStep  = `CROSS JOIN LATERAL (SELECT t.ctid AS place FROM step_runs t WHERE t.tenant_id = $1 AND t.id = m.id OFFSET 0) at`
	atRun   = `CROSS JOIN LATERAL (SELECT t.ctid AS place FROM runs t WHERE t.tenant_id = $1 AND t.id = m.id OFFSET 0) at`
	atSlice = `CROSS JOIN LATERAL (SELECT t.ctid AS place FROM slices t WHERE t.tenant_id = $1 AND t.id = m.id OFFSET 0) at`
)

// stepUnmoved is the guard of a step run s that m moves.
const stepUnmoved = `s.` + stateByKey + ` = m.from_state AND s.slice_id IS NOT DISTINCT FROM m.slice_id AND s.fence = m.fence`

// stepInserts are new step runs, in columns.
type stepInserts struct {
	ids                       []StepRunID
	runs                      []RunID
	parents                   []StepRunID
	steps, kinds, lists       []string
	turns                     []int
	states                    []string
	attempts                  []int
	fences                    []int64
	slices                    []SliceID
	chosen                    []string
	inputs, outputs, failures [][]byte
	notes, scores             []string
	costs                     []int64
	atOnce                    []*int // of lists only
	reused                    []StepRunID
	chains                    [][]byte
}

func (s *stepInserts) add(run RunID, row StepRun) {
	if row.State != StepRunning {
		row.Slice = SliceID{} // only a slice that works on a step is held by it
	}
	s.ids, s.runs, s.parents = append(s.ids, row.ID), append(s.runs, run), append(s.parents, row.Parent)
	s.steps, s.kinds = append(s.steps, row.StepID), append(s.kinds, string(row.Kind))
	s.lists, s.turns = append(s.lists, string(row.List)), append(s.turns, row.Turn)
	s.states, s.attempts = append(s.states, string(row.State)), append(s.attempts, row.Attempt)
	s.fences, s.slices = append(s.fences, row.Fence), append(s.slices, row.Slice)
	s.chosen, s.notes = append(s.chosen, string(row.Chosen)), append(s.notes, expr.Plain(row.Note))
	s.inputs, s.outputs = append(s.inputs, row.Input.bytes()), append(s.outputs, row.Output.bytes())
	s.failures = append(s.failures, row.Failure.json())
	s.scores, s.costs, s.atOnce = append(s.scores, row.Score), append(s.costs, row.CostMicros), append(s.atOnce, positive(row.AtOnce))
	s.reused = append(s.reused, row.ReusedFrom)
	var chain *Chain
	if row.Chain != (Chain{}) {
		chain = &row.Chain
	}
	s.chains = append(s.chains, chain.json())
}

func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

func (s *stepInserts) queue(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	if len(s.ids) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO step_runs (tenant_id, worker_id, id, run_id, parent_id, step_id, kind, list, turn, state, attempt, fence, slice_id,
			chosen, input_digest, output_digest, failure, note, score, cost_micros, at_once, reused_from, chain, created_at, begun_at, ended_at)
		SELECT $1, $2, n.*, now(), now(), CASE WHEN n.state IN ('running', 'waiting') THEN NULL ELSE now() END
		FROM unnest($3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::int[], $10::text[], $11::int[], $12::bigint[],
			$13::uuid[], $14::text[], $15::bytea[], $16::bytea[], $17::jsonb[], $18::text[], $19::text[], $20::bigint[], $21::int[], $22::uuid[], $23::jsonb[])
			AS n (id, run_id, parent_id, step_id, kind, list, turn, state, attempt, fence, slice_id, chosen, input, output, failure, note, score, cost, at_once, reused, chain)`,
		tenant, worker, s.ids, s.runs, s.parents, s.steps, s.kinds, s.lists, s.turns, s.states, s.attempts, s.fences,
		s.slices, s.chosen, s.inputs, s.outputs, s.failures, s.notes, s.scores, s.costs, s.atOnce, s.reused, s.chains)
}
