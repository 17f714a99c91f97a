package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"tollgate/app/expr"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// commitment is the list of changes of one decision, about to be written.
type commitment struct {
	tenant  tenants.ID
	run     RunID
	state   RunState // of the run, as it was decided under
	slice   SliceID
	fence   int64
	worker  WorkerID
	changes []change
}

// queue turns the changes into guarded statements, in the order of locks: events that are
// waited for, the run, its step runs, waits, money. Any guard that fails makes the whole
// batch void.
func (c *commitment) queue(b *tenants.Batch) {
	awaited := c.eventWaits()
	awaited.queueLocks(b)
	c.queueRun(b)
	if !c.movesOwnStep() {
		c.queueSliceGuard(b)
	}
	ordered := slices.Clone(c.changes)
	slices.SortStableFunc(ordered, func(x, y change) int { return cmp.Compare(rank(x), rank(y)) })
	for _, entry := range ordered {
		c.queueChange(b, entry)
	}
	awaited.queueTakes(b, c.tenant)
}

// eventWaits are the waits for events that the commit opens.
func (c *commitment) eventWaits() *eventWaits {
	awaited := &eventWaits{}
	for _, entry := range c.changes {
		if open, ok := entry.(openWait); ok {
			awaited.add(c.tenant, c.run, open.wait)
		}
	}
	return awaited
}

func rank(c change) int {
	switch c.(type) {
	case moveStep:
		return 1
	case insertStep:
		return 2
	case addAttempt:
		return 3
	case openWait:
		return 4
	case settle:
		return 5
	case hold:
		return 6
	}
	return 0
}

// queueRun locks the run: shared while it stays as it is, so that a change of its state waits for
// us or stops us; exclusively to end it.
func (c *commitment) queueRun(b *tenants.Batch) {
	for _, entry := range c.changes {
		if end, ok := entry.(endRun); ok {
			var result Digest
			if end.result != nil {
				result = queueValue(b, c.tenant, c.run, mediaJSON, end.result)
			}
			b.Guarded(`
				UPDATE runs SET state = $3, result_digest = $4, failure = $5, ended_at = now(), changed = pg_current_xact_id()
				WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = $6 RETURNING 1`,
				c.tenant, c.run, end.state, result.bytes(), end.failure.json(), string(c.state))
			return
		}
	}
	b.Queue(`
		SELECT require_one((SELECT count(*) FROM (
			SELECT 1 FROM runs WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = $3 FOR SHARE) run))`,
		c.tenant, c.run, string(c.state))
}

// movesOwnStep tells whether a step run of the slice guards the commit by its fence.
func (c *commitment) movesOwnStep() bool {
	return slices.ContainsFunc(c.changes, func(entry change) bool {
		move, ok := entry.(moveStep)
		return ok && !move.slice.IsZero()
	})
}

// queueSliceGuard guards a commit that moves no step run of the slice, such as the
// first of a run.
func (c *commitment) queueSliceGuard(b *tenants.Batch) {
	b.Queue(`
		SELECT require_one((SELECT count(*) FROM (
			SELECT 1 FROM slices WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND `+stateByKey+` = 'running' FOR SHARE) slice))`,
		c.tenant, c.slice, c.fence)
}

func (c *commitment) queueChange(b *tenants.Batch, entry change) {
	switch entry := entry.(type) {
	case moveStep:
		c.queueMove(b, entry)
	case insertStep:
		c.queueInsert(b, entry)
	case addAttempt:
		a := entry.attempt
		b.Queue(`
			INSERT INTO attempts (tenant_id, step_run_id, number, outcome, began_at, ended_at, failure, note)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			c.tenant, entry.step, a.Number, a.Outcome, a.BeganAt, a.EndedAt, a.Failure.json(), expr.Plain(a.Note))
	case openWait:
		w := entry.wait
		b.Queue(`
			INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, due_at, reason, event_name, event_key)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			c.tenant, tenants.NewID[Wait](), c.run, w.StepRun, w.Kind, w.Due, expr.Preview([]byte(w.Reason), maxMessage),
			w.EventName, w.EventKey)
	case settle:
		entry.queue(b)
		if entry.abandoned != nil {
			queueCost(b, c.tenant, entry.abandoned.step)
		}
	case hold:
		ledger.QueueHold(b, entry.hold)
	}
}

// stateByKey asks for the state of a row that is named by its key. Asked plainly for an
// open state, the planner may go through all open step runs of the tenant, and the dead
// entries of those that were, to find the one.
const stateByKey = `state || ''`

func (c *commitment) queueMove(b *tenants.Batch, m moveStep) {
	var output Digest
	if m.output != nil {
		output = queueValue(b, c.tenant, c.run, mediaJSON, m.output)
	}
	b.Guarded(`
		UPDATE step_runs SET
			state = $6, attempt = $7, output_digest = coalesce($8, output_digest), failure = $9,
			note = CASE WHEN $10 = '' THEN note ELSE $10 END, cost_micros = cost_micros + $11,
			begun_at = CASE WHEN $6 = 'running' THEN now() ELSE begun_at END,
			ended_at = CASE WHEN $6 IN ('running', 'waiting') THEN NULL ELSE now() END,
			slice_id = CASE WHEN $6 = 'running' THEN slice_id END,
			worker_id = CASE WHEN $6 = 'running' THEN $12 ELSE worker_id END,
			changed = pg_current_xact_id()
		WHERE tenant_id = $1 AND id = $2 AND `+stateByKey+` = $3 AND slice_id IS NOT DISTINCT FROM $4 AND fence = $5 RETURNING 1`,
		c.tenant, m.id, m.from, m.slice, m.fence, string(m.to), m.attempt, output.bytes(), m.failure.json(), expr.Plain(m.note), m.cost, c.worker)
}

func (c *commitment) queueInsert(b *tenants.Batch, s insertStep) {
	row := s.row
	if s.input != nil {
		row.Input = queueValue(b, c.tenant, c.run, mediaJSON, s.input)
	}
	if s.output != nil {
		row.Output = queueValue(b, c.tenant, c.run, mediaJSON, s.output)
	}
	if row.State == StepWaiting {
		row.Slice = SliceID{} // a waiting step holds no slice
	}
	b.Queue(`
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, attempt, fence, slice_id,
			worker_id, chosen, input_digest, output_digest, failure, note, created_at, begun_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, now(), now(),
			CASE WHEN $9 IN ('running', 'waiting') THEN NULL ELSE now() END)`,
		c.tenant, row.ID, c.run, row.Parent, row.StepID, row.Kind, row.List, row.Turn, string(row.State), row.Attempt, row.Fence, row.Slice,
		c.worker, row.Chosen, row.Input.bytes(), row.Output.bytes(), row.Failure.json(), expr.Plain(row.Note))
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
			(SELECT coalesce(sum(cost_micros::bigint), 0) FROM charges WHERE tenant_id = $1 AND step_run_id = $2)
		WHERE tenant_id = $1 AND id = $2`, tenant, step)
}

// Most that is kept of a failure's words, in bytes.
const (
	maxMessage = 4 << 10
	maxDetail  = 16 << 10
)

// json is the failure for Postgres; none is null. The words may come from the other
// side: Postgres takes no NUL and no broken characters, and a row takes no novel.
func (f *Failure) json() []byte {
	if f == nil {
		return nil
	}
	plain := Failure{
		Class: expr.Plain(f.Class), StepID: f.StepID,
		Message: expr.Preview([]byte(f.Message), maxMessage), Detail: expr.Preview([]byte(f.Detail), maxDetail),
	}
	encoded, err := json.Marshal(plain)
	if err != nil { // strings only: it cannot fail
		return []byte(`{"class":"internal"}`)
	}
	return encoded
}

// send commits the changes in one round trip; the slice goes on.
func (e *Engine) send(ctx context.Context, c *commitment) error {
	batch := &tenants.Batch{}
	c.queue(batch)
	return e.DB.Send(ctx, c.tenant, batch)
}
