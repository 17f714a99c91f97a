package engine

import (
	"slices"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// apply does to the rows what the committer does to the database. Where a guard refuses
// it, nothing changes and it reports false.
func (s *simulation) apply(d decision) bool {
	s.t.Helper()
	if !s.guarded(d) {
		return false
	}
	slice := s.current
	for _, entry := range d.changes {
		if line := s.describe(entry); line != "" {
			s.lines = append(s.lines, line)
		}
		s.applyOne(entry)
	}
	slice.block, slice.window, slice.next, slice.looked, slice.callInput = d.items, d.counts, d.next, false, nil
	s.next = d.next
	switch {
	case s.ended != nil:
		require.Nil(s.t, d.next, "a call after the run's end")
		require.Nil(s.t, d.stand)
		s.slices = nil
	case d.next != nil:
		require.Equal(s.t, StepRunning, s.byID[d.next.row.ID].State)
		slice.at, slice.outcome, slice.callInput = s.byID[d.next.row.ID], outcome{}, d.next.input
	case d.stand != nil:
		slice.at, slice.outcome = s.byID[d.stand.row.ID], outcome{kind: arrived}
		if !slice.at.State.Open() {
			slice.outcome.kind = passed
		}
	default:
		s.end(slice.id)
	}
	return true
}

// guarded checks the guards of all changes: the old state, and that it belongs to us.
func (s *simulation) guarded(d decision) bool {
	if s.slice(s.current.id) == nil {
		return false
	}
	begun := map[StepRunID]bool{} // items that the decision itself begins
	noted := map[StepRunID]bool{}
	for _, entry := range d.changes {
		switch c := entry.(type) {
		case catchStep:
			if row := s.byID[c.id]; row.State != c.from || row.Slice != c.slice {
				return false
			}
		case moveStep:
			if row := s.byID[c.id]; !begun[c.id] && (row.State != c.from || row.Slice != c.slice) {
				return false
			}
		case beginItem:
			if row := s.byID[c.id]; row.State != StepQueued || row.Slice != s.current.id {
				return false
			}
			begun[c.id] = true
		case noteGroup:
			require.False(s.t, noted[c.id], "noted twice in one commit")
			noted[c.id] = true
			if s.byID[c.id].State != StepRunning {
				return false
			}
		}
	}
	return true
}

func (s *simulation) applyOne(entry change) {
	s.t.Helper()
	switch c := entry.(type) {
	case insertStep:
		s.insert(c.row, c.output)
		s.inputs[c.row.ID] = c.input
	case addAttempt:
		if s.tries[c.step] == nil {
			s.tries[c.step] = map[int]bool{}
		}
		require.False(s.t, s.tries[c.step][c.attempt.Number], "try %d is on record twice", c.attempt.Number)
		s.tries[c.step][c.attempt.Number] = true
	case insertItems:
		s.insertItems(c)
	case moveStep:
		s.move(c)
	case catchStep:
		s.catch(c)
	case beginItem:
		row := s.byID[c.id]
		row.State, row.Slice = StepRunning, SliceID{}
	case noteGroup:
		row := s.byID[c.id]
		row.Chosen, row.Score, row.CostMicros = c.chosen, c.score, c.cost
	case openWait:
		require.NotContains(s.t, s.waits, c.wait.StepRun, "a second open wait")
		s.waits[c.wait.StepRun] = c.wait
	case hold:
		require.NotContains(s.t, s.holds, c.hold.ID, "a hold twice")
		s.holds[c.hold.ID] = StepRunID(c.hold.StepRun)
	case settle:
		s.settle(c)
	case endRun:
		require.Nil(s.t, s.ended, "ended twice")
		s.ended = &c
	case fork:
		s.slices = append(s.slices, &simSlice{id: c.slice, at: s.byID[c.at], window: c.window, outcome: outcome{kind: arrived}})
	case releaseItems:
		for _, row := range s.steps {
			if row.State == StepQueued && row.Slice == s.current.id {
				row.Slice = SliceID{}
			}
		}
	case cancelBelow:
		s.cancel(c)
	}
}

func (s *simulation) insert(row StepRun, output []byte) {
	s.t.Helper()
	for _, other := range s.steps {
		require.False(s.t, other.Parent == row.Parent && other.StepID == row.StepID && other.Turn == row.Turn, "step %q began twice", row.StepID)
	}
	require.Equal(s.t, row.State.Open(), row.EndedAt == nil)
	if !row.Parent.IsZero() {
		require.Contains(s.t, s.byID, row.Parent)
	}
	if row.State == StepWaiting {
		row.Slice = SliceID{}
	}
	s.keep(&row, output)
	s.steps = append(s.steps, &row)
	s.byID[row.ID] = &row
}

// keep stores an output, or takes the one that is stored already.
func (s *simulation) keep(row *StepRun, output []byte) {
	if output != nil {
		row.Output = DigestOf(output)
		s.values[row.Output] = output
	}
	if !row.Output.IsZero() {
		require.Contains(s.t, s.values, row.Output, "an output that was never stored")
		s.outputs[row.ID] = s.values[row.Output]
	}
}

func (s *simulation) insertItems(c insertItems) {
	s.t.Helper()
	require.Len(s.t, c.ids, len(c.values))
	for i, id := range c.ids {
		s.insert(StepRun{ID: id, Parent: c.group.ID, StepID: c.group.StepID, Kind: KindItem, List: pipeline.ListSteps,
			Turn: i, State: StepQueued, Attempt: 1, Input: DigestOf(c.values[i])}, nil)
		s.items[id] = c.values[i]
	}
}

func (s *simulation) move(c moveStep) {
	s.t.Helper()
	row := s.byID[c.id]
	require.True(s.t, row.State.Open(), "a final state changed")
	row.State, row.Attempt, row.CostMicros = c.to, c.attempt, row.CostMicros+c.cost
	if c.chain != nil {
		row.Chain = *c.chain
	}
	if c.to == StepRunning {
		return
	}
	row.Slice = SliceID{}
	if c.to.Open() {
		return
	}
	row.EndedAt, row.Failure, row.Output = &s.now, c.failure, c.kept
	s.keep(row, c.output)
	if row.forks() && c.to == StepDone {
		s.joined[row.ID]++
		require.Equal(s.t, 1, s.joined[row.ID], "joined twice")
	}
}

// catch makes a row the frame of what is done about its failure.
func (s *simulation) catch(c catchStep) {
	s.t.Helper()
	row := s.byID[c.id]
	require.True(s.t, row.State.Open(), "a final state changed")
	require.False(s.t, row.Caught(), "handled twice")
	row.State, row.Chosen, row.Failure, row.CostMicros = c.to, c.chosen, c.failure, row.CostMicros+c.cost
	row.Slice, row.Fence = SliceID{}, 0
	if !c.to.Open() {
		row.EndedAt, row.Output = &s.now, c.kept
		s.keep(row, c.output)
	}
}

func (s *simulation) settle(c settle) {
	s.t.Helper()
	switch {
	case c.settlement != nil:
		require.Contains(s.t, s.holds, c.settlement.Hold, "settled without a hold")
		delete(s.holds, c.settlement.Hold)
	case c.abandoned != nil:
		s.abandon(c.abandoned.step)
	default:
		require.Contains(s.t, s.holds, c.release, "released without a hold")
		delete(s.holds, c.release)
	}
}

func (s *simulation) abandon(step StepRunID) {
	for id, of := range s.holds {
		if of == step {
			delete(s.holds, id)
		}
	}
}

// cancel ends what is open below groups, or all, and the slices that were on their way
// there, but for the current one.
func (s *simulation) cancel(c cancelBelow) {
	below := func(row *StepRun) bool {
		for ; row != nil; row = s.byID[row.Parent] {
			if row.Parent == c.keep && row.List.HandlesError() {
				return false
			}
			if c.all || slices.Contains(c.groups, row.Parent) {
				return true
			}
		}
		return false
	}
	for _, one := range slices.Clone(s.slices) {
		if one.id != s.current.id && (c.all || below(one.at) || one.at != nil && slices.Contains(c.groups, one.at.ID)) {
			s.end(one.id)
		}
	}
	for _, row := range s.steps {
		if row.State.Open() && below(row) {
			row.State, row.EndedAt, row.Slice = StepCancelled, &s.now, SliceID{}
			delete(s.waits, row.ID)
			s.abandon(row.ID)
		}
	}
}
