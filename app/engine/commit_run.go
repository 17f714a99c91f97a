package engine

import (
	"time"

	"tollgate/app/expr"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// runGuards are runs that must be in the state that their changes were decided under.
type runGuards struct {
	ids    []RunID
	states []string
}

// add takes each run once, where its commitments come one after the other.
func (r *runGuards) add(run RunID, state RunState) {
	if last := len(r.ids) - 1; last >= 0 && r.ids[last] == run && r.states[last] == string(state) {
		return
	}
	r.ids, r.states = append(r.ids, run), append(r.states, string(state))
}

// queue locks the runs.
func (r *runGuards) queue(b *tenants.Batch, tenant tenants.ID, lock string) {
	if len(r.ids) == 0 {
		return
	}
	b.Queue(`
		SELECT require_rows((SELECT count(*) FROM (
			SELECT * FROM unnest($2::uuid[], $3::text[]) AS m (id, state) LIMIT $4) m
			CROSS JOIN LATERAL (
				SELECT 1 FROM runs r WHERE r.tenant_id = $1 AND r.id = m.id AND r.`+stateByKey+` = m.state `+lock+`) met), $4)`,
		tenant, r.ids, r.states, len(r.ids))
}

// runEnds are runs that get their final state, in columns.
type runEnds struct {
	ids               []RunID
	from, states      []string
	results, failures [][]byte
}

func (r *runEnds) add(run RunID, from RunState, end endRun, result Digest) {
	r.ids, r.from, r.states = append(r.ids, run), append(r.from, string(from)), append(r.states, string(end.state))
	r.results, r.failures = append(r.results, result.bytes()), append(r.failures, end.failure.json())
}

func (r *runEnds) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(r.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE runs r SET state = m.state, result_digest = m.result, failure = m.failure, ended_at = now(), changed = pg_current_xact_id()
			FROM (
				SELECT m.*, at.place FROM (
					SELECT * FROM unnest($2::uuid[], $3::text[], $4::bytea[], $5::jsonb[], $6::text[]) AS m (id, state, result, failure, from_state) LIMIT $7) m
				`+atRun+`) m
			WHERE r.ctid = m.place AND r.`+stateByKey+` = m.from_state RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $7)`,
		tenant, r.ids, r.states, r.results, r.failures, r.from, len(r.ids))
}

// sliceGuards are slices that must still be driven under the fence they are known by.
type sliceGuards struct {
	ids    []SliceID
	fences []int64
}

func (g *sliceGuards) add(id SliceID, fence int64) {
	g.ids, g.fences = append(g.ids, id), append(g.fences, fence)
}

func (g *sliceGuards) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(g.ids) == 0 {
		return
	}
	b.Queue(`
		SELECT require_rows((SELECT count(*) FROM (
			SELECT * FROM unnest($2::uuid[], $3::bigint[]) AS m (id, fence) LIMIT $4) m
			CROSS JOIN LATERAL (
				SELECT 1 FROM slices s WHERE s.tenant_id = $1 AND s.id = m.id AND s.fence = m.fence AND s.`+stateByKey+` = 'running' FOR SHARE) met), $4)`,
		tenant, g.ids, g.fences, len(g.ids))
}

// queueLeave ends the slices.
func (g *sliceGuards) queueLeave(b *tenants.Batch, tenant tenants.ID) {
	if len(g.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			DELETE FROM slices s
			USING (SELECT m.*, at.place FROM (SELECT * FROM unnest($2::uuid[], $3::bigint[]) AS m (id, fence) LIMIT $4) m `+atSlice+`) m
			WHERE s.ctid = m.place AND s.fence = m.fence RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $4)`, tenant, g.ids, g.fences, len(g.ids))
}

// attemptRows are tries that ended, in columns.
type attemptRows struct {
	steps        []StepRunID
	numbers      []int
	outcomes     []string
	began, ended []time.Time
	failures     [][]byte
	notes        []string
	models       []string
	places       []int
	reasks       []int
	followed     []string
	sent, came   [][]byte
}

func (r *attemptRows) add(entry addAttempt) {
	a := entry.attempt
	r.steps, r.numbers = append(r.steps, entry.step), append(r.numbers, a.Number)
	r.outcomes, r.notes = append(r.outcomes, string(a.Outcome)), append(r.notes, expr.Plain(a.Note))
	r.began, r.ended = append(r.began, a.BeganAt), append(r.ended, a.EndedAt)
	r.failures = append(r.failures, a.Failure.json())
	r.models, r.places, r.reasks = append(r.models, a.Model), append(r.places, a.Place), append(r.reasks, a.Reask)
	r.followed = append(r.followed, expr.Plain(a.Followed))
	r.sent, r.came = append(r.sent, a.Sent.bytes()), append(r.came, a.Received.bytes())
}

func (r *attemptRows) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(r.steps) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO attempts (tenant_id, step_run_id, number, outcome, began_at, ended_at, failure, note,
			model, place, reask, followed, sent_digest, received_digest)
		SELECT $1, n.* FROM unnest($2::uuid[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::jsonb[], $8::text[],
			$9::text[], $10::int[], $11::int[], $12::text[], $13::bytea[], $14::bytea[]) AS n`,
		tenant, r.steps, r.numbers, r.outcomes, r.began, r.ended, r.failures, r.notes,
		r.models, r.places, r.reasks, r.followed, r.sent, r.came)
}

// waitRows are new waits, in columns.
type waitRows struct {
	ids     []WaitID
	runs    []RunID
	steps   []StepRunID
	kinds   []string
	dues    []*time.Time
	reasons []string
	events  []string // names of events, and the keys that they must have
	keys    []string
	idle    []bool // whose call was not made
	stops   []stop
}

// stop is a run that a cap has stopped.
type stop struct {
	run ledger.RunID
	cap ledger.CapReached
}

func (r *waitRows) add(run RunID, w Wait) {
	r.ids, r.runs, r.steps = append(r.ids, tenants.NewID[Wait]()), append(r.runs, run), append(r.steps, w.StepRun)
	r.kinds, r.dues = append(r.kinds, string(w.Kind)), append(r.dues, w.Due)
	r.reasons = append(r.reasons, expr.Preview([]byte(w.Reason), maxMessage))
	r.events, r.keys = append(r.events, w.EventName), append(r.keys, w.EventKey)
	r.idle = append(r.idle, w.Uncalled)
	if w.Cap != nil {
		r.stops = append(r.stops, stop{ledger.RunID(run), *w.Cap})
	}
}

func (r *waitRows) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(r.ids) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, due_at, reason, event_name, event_key, uncalled)
		SELECT $1, n.* FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::boolean[]) AS n`,
		tenant, r.ids, r.runs, r.steps, r.kinds, r.dues, r.reasons, r.events, r.keys, r.idle)
	for _, one := range r.stops {
		ledger.QueueStopped(b, one.cap, one.run)
	}
}

// settle takes up how a call's money ends.
func (s *sheet) settle(entry settle) {
	switch {
	case entry.settlement != nil:
		s.booking.Settled = append(s.booking.Settled, *entry.settlement)
	case entry.abandoned != nil:
		s.lost = append(s.lost, *entry.abandoned)
	default:
		s.booking.Released = append(s.booking.Released, entry.release)
	}
}

func (s settle) queue(b *tenants.Batch) {
	switch {
	case s.settlement != nil:
		ledger.QueueSettle(b, *s.settlement)
	case s.abandoned != nil:
		ledger.QueueAbandon(b, ledger.StepRunID(s.abandoned.step), s.abandoned.attempt)
	default:
		ledger.QueueRelease(b, s.release)
	}
}

// queueCost notes at a step run what its calls have cost by the ledger's lines. Calls
// whose answer we have know their cost; of those that were lost only the ledger does.
func queueCost(b *tenants.Batch, tenant tenants.ID, step StepRunID) {
	b.Queue(`
		UPDATE step_runs SET changed = pg_current_xact_id(), cost_micros =
			(SELECT coalesce(sum(cost_micros::bigint), 0) FROM charges WHERE tenant_id = $1 AND step_run_id = $2 AND kind <> 'test') +
			(SELECT coalesce(sum(cost_micros), 0) FROM corrections WHERE tenant_id = $1 AND step_run_id = $2 AND kind <> 'test')
		WHERE tenant_id = $1 AND id = $2`, tenant, step)
}
