package engine

import (
	"cmp"
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
	leaves  bool // the slice ends with it

	semantics int   // of the slices that are born
	priority  int16 // of them
}

// queue turns the changes into guarded statements. Any guard that fails makes the whole
// batch void.
func (c *commitment) queue(b *tenants.Batch) { queueAll(b, []*commitment{c}) }

// queueAll turns the changes of commitments of one tenant into guarded statements, one
// for each table and kind of change however many commitments there are. They come in
// the order of locks, events that are waited for, the run, its step runs, waits, money,
// the slice, and within each by id. Any guard that fails makes the whole batch void.
func queueAll(b *tenants.Batch, commitments []*commitment) {
	ordered := slices.SortedStableFunc(slices.Values(commitments), func(x, y *commitment) int {
		return cmp.Or(compareIDs(x.run, y.run), compareIDs(x.slice, y.slice))
	})
	s := &sheet{tenant: ordered[0].tenant, worker: ordered[0].worker}
	for _, c := range ordered {
		s.add(c)
	}
	s.queue(b)
}

// compareIDs orders by age, as ids do.
func compareIDs[Of any](x, y tenants.IDOf[Of]) int { return slices.Compare(x[:], y[:]) }

// movesOwnStep tells whether a step run of the slice guards the commit by its fence.
func (c *commitment) movesOwnStep() bool {
	return slices.ContainsFunc(c.changes, func(entry change) bool {
		move, ok := entry.(moveStep)
		return ok && !move.slice.IsZero()
	})
}

// end is the change that ends the run, if there is one.
func (c *commitment) end() (endRun, bool) {
	for _, entry := range c.changes {
		if end, ok := entry.(endRun); ok {
			return end, true
		}
	}
	return endRun{}, false
}

// sheet collects the changes of one transaction, each kind in columns, which a statement
// unnests.
//
// Rows that exist are found by their keys, in a subquery that the planner cannot turn
// around, and changed where they are: it plans a statement once for each connection, maybe
// while a table is so young that going through all of it looks as cheap. The guards are
// asked of the row that is changed; one that was changed meanwhile by somebody else fails
// them, and is looked at again. Two commitments that change the same row are not written
// together.
type sheet struct {
	tenant   tenants.ID
	worker   WorkerID
	runs     runGuards
	locked   runGuards // against all other branches
	ends     runEnds
	search   searchRows
	guards   sliceGuards
	leaving  sliceGuards
	moves    stepMoves
	inserts  stepInserts
	renewed  renewedSteps
	values   valueRows
	attempts attemptRows
	waits    waitRows
	awaited  eventWaits
	flow     flowRows
	lost     []abandoned // calls whose money only the ledger knows
	booking  ledger.Booking
}

// add takes up what one commitment changes. It locks the run: shared while it stays as it
// is, so that a change of its state waits for us or stops us; exclusively to end it, or
// other branches of it. A commitment that moves no step run of its slice, such as the first of a run, is
// guarded by the slice.
func (s *sheet) add(c *commitment) {
	if end, ok := c.end(); ok {
		s.ends.add(c.run, c.state, end, s.values.add(c.run, end.result))
		s.search.add(c.run, end.found)
	} else if c.cancels() {
		s.locked.add(c.run, c.state)
	} else {
		s.runs.add(c.run, c.state)
	}
	if !c.movesOwnStep() {
		s.guards.add(c.slice, c.fence)
	}
	for _, entry := range c.changes {
		s.addChange(c, entry)
	}
	if c.leaves {
		s.leaving.add(c.slice, c.fence)
	}
}

func (s *sheet) addChange(c *commitment, entry change) {
	switch entry := entry.(type) {
	case moveStep:
		output := entry.kept
		if entry.output != nil {
			output = s.values.add(c.run, entry.output)
		}
		for _, file := range entry.files {
			s.values.addAs(c.run, file.MediaType, file.Bytes)
		}
		s.moves.add(entry, output)
	case insertStep:
		row := entry.row
		row.Input = s.values.add(c.run, entry.input)
		if entry.output != nil {
			row.Output = s.values.add(c.run, entry.output)
		}
		if entry.renews {
			s.renewed.add(c, row)
			return
		}
		s.inserts.add(c.run, row)
	case addAttempt:
		entry.attempt.Sent, entry.attempt.Received = s.values.add(c.run, entry.sent), s.values.add(c.run, entry.received)
		s.attempts.add(entry)
	case openWait:
		s.waits.add(c.run, entry.wait)
		s.awaited.add(s.tenant, c.run, entry.wait)
	case settle:
		s.settle(entry)
	case hold:
		s.booking.Held = append(s.booking.Held, entry.hold)
	default:
		s.flow.add(c, entry, &s.values)
	}
}

// queue adds one statement for each kind of change that there is.
func (s *sheet) queue(b *tenants.Batch) {
	s.awaited.queueLocks(b)
	s.runs.queue(b, s.tenant, `FOR SHARE`)
	s.locked.queue(b, s.tenant, `FOR NO KEY UPDATE`)
	s.ends.queue(b, s.tenant)
	s.search.queue(b, s.tenant)
	s.guards.queue(b, s.tenant)
	s.values.queue(b, s.tenant)
	s.flow.queueRows(b, s.tenant, s.worker)
	s.moves.queue(b, s.tenant, s.worker)
	s.renewed.queue(b, s.tenant, s.worker)
	s.inserts.queue(b, s.tenant, s.worker)
	s.flow.queueItems(b, s.tenant)
	s.attempts.queue(b, s.tenant)
	s.waits.queue(b, s.tenant)
	for _, call := range s.lost {
		ledger.QueueAbandon(b, ledger.StepRunID(call.step), call.attempt)
		queueCost(b, s.tenant, call.step)
	}
	s.booking.Queue(b)
	s.awaited.queueTakes(b, s.tenant)
	s.flow.queueSlices(b, s.tenant)
	s.leaving.queueLeave(b, s.tenant)
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
		Class: expr.Plain(f.Class), StepID: f.StepID, Raised: f.Raised,
		Message: expr.Preview([]byte(f.Message), maxMessage), Detail: expr.Preview([]byte(f.Detail), maxDetail),
	}
	encoded, err := json.Marshal(plain)
	if err != nil { // strings only: it cannot fail
		return []byte(`{"class":"internal"}`)
	}
	return encoded
}
