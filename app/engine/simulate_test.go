package engine

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
)

// simulation is a run without a database: it applies what decide asks for to rows in
// memory, and checks at each change what must hold.
type simulation struct {
	t       testing.TB
	program *pipeline.Program
	run     Run
	steps   []StepRun
	outputs map[StepRunID][]byte
	holds   map[ledger.HoldID]bool // still open
	waits   map[StepRunID]WaitKind // open
	ended   *endRun
	scope   scope
	now     time.Time
	ids     uint64
	next    *call
	lines   []string // what happened, for goldens
}

func simulate(t testing.TB, document string, input string) *simulation {
	t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	program, err := pipeline.Compile(parsed)
	require.NoError(t, err)
	s := &simulation{
		t: t, program: program, run: Run{ID: RunID{1}, Name: "a run", PipelineName: parsed.Name, State: RunRunning},
		outputs: map[StepRunID][]byte{}, holds: map[ledger.HoldID]bool{}, waits: map[StepRunID]WaitKind{}, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}
	s.scope, err = newScope(s.run, []byte(input))
	require.NoError(t, err)
	return s
}

// decide asks for a decision at a step run and applies it.
func (s *simulation) decide(at *StepRun, out outcome, barred bars) {
	s.t.Helper()
	require.Nil(s.t, s.ended, "decided after the run's end")
	m := moment{
		program: s.program, run: s.run, step: at, groups: s.groups(at), slice: SliceID{9}, fence: 1, outcome: out,
		bars: barred, inputBound: func(AIInput) int64 { return 100 }, now: s.now, newID: s.newID,
	}
	for {
		m.scope = s.scope.clone()
		result := decide(m)
		if len(result.missing) == 0 {
			s.next = nil
			s.apply(result)
			return
		}
		for _, id := range result.missing {
			require.False(s.t, s.scope.known[id], "asked twice for %q", id)
			require.NoError(s.t, s.scope.put(id, s.output(id)))
		}
	}
}

func (s *simulation) newID() StepRunID {
	s.ids++
	var id StepRunID
	binary.BigEndian.PutUint64(id[8:], s.ids)
	return id
}

func (s *simulation) groups(at *StepRun) []StepRun {
	var groups []StepRun
	for at != nil && !at.Parent.IsZero() {
		at = s.byID(at.Parent)
		groups = append(groups, *at)
	}
	return groups
}

func (s *simulation) byID(id StepRunID) *StepRun {
	for i := range s.steps {
		if s.steps[i].ID == id {
			return &s.steps[i]
		}
	}
	s.t.Fatalf("no step run %s", id)
	return nil
}

func (s *simulation) output(stepID string) []byte {
	for _, row := range s.steps {
		if row.StepID == stepID && row.State == StepDone {
			return s.outputs[row.ID]
		}
	}
	return nil
}

// apply does to the rows what the committer does to the database, and refuses what its
// guards would refuse.
func (s *simulation) apply(d decision) {
	s.t.Helper()
	for _, entry := range d.changes {
		s.lines = append(s.lines, s.describe(entry))
		switch c := entry.(type) {
		case insertStep:
			s.insert(c.row)
			s.outputs[c.row.ID] = c.output
		case moveStep:
			s.move(c)
			s.outputs[c.id] = c.output
		case openWait:
			require.NotContains(s.t, s.waits, c.wait.StepRun, "a second open wait")
			s.waits[c.wait.StepRun] = c.wait.Kind
		case hold:
			require.NotContains(s.t, s.holds, c.hold.ID, "a hold twice")
			s.holds[c.hold.ID] = true
		case settle:
			s.settle(c)
		case endRun:
			s.end(c)
		}
	}
	s.next = d.next
	if d.next != nil {
		require.Nil(s.t, s.ended, "a call after the run's end")
		require.Equal(s.t, StepRunning, s.byID(d.next.row.ID).State)
	}
}

func (s *simulation) insert(row StepRun) {
	s.t.Helper()
	for _, other := range s.steps {
		require.False(s.t, other.Parent == row.Parent && other.StepID == row.StepID && other.Turn == row.Turn, "step %q began twice", row.StepID)
	}
	require.Equal(s.t, row.State.Open(), row.EndedAt == nil)
	if !row.Parent.IsZero() {
		s.byID(row.Parent)
	}
	s.steps = append(s.steps, row)
}

func (s *simulation) move(c moveStep) {
	s.t.Helper()
	row := s.byID(c.id)
	require.True(s.t, row.State.Open(), "a final state changed")
	require.Equal(s.t, c.from, row.State)
	row.State, row.Attempt, row.CostMicros = c.to, c.attempt, row.CostMicros+c.cost
	if !c.to.Open() {
		row.EndedAt, row.Failure = &s.now, c.failure
	}
	delete(s.waits, c.id)
}

func (s *simulation) settle(c settle) {
	s.t.Helper()
	switch {
	case c.settlement != nil:
		require.True(s.t, s.holds[c.settlement.Hold], "settled without a hold")
		delete(s.holds, c.settlement.Hold)
	case c.abandoned != nil:
		for attempt := range c.abandoned.attempt + 1 {
			delete(s.holds, holdID(c.abandoned.step, attempt))
		}
	default:
		require.True(s.t, s.holds[c.release], "released without a hold")
		delete(s.holds, c.release)
	}
}

func (s *simulation) end(c endRun) {
	s.t.Helper()
	require.Nil(s.t, s.ended, "ended twice")
	s.ended = &c
}

// settled checks what must hold once the run is over: nothing open, nothing held.
func (s *simulation) settled() {
	s.t.Helper()
	for _, row := range s.steps {
		require.False(s.t, row.State.Open(), "step %q is open after the run's end", row.StepID)
	}
	require.Empty(s.t, s.holds, "money is held after the run's end")
	require.Empty(s.t, s.waits, "a wait is open after the run's end")
	require.True(s.t, s.ended.state.Final())
	require.Equal(s.t, s.ended.state == RunFailed, s.ended.failure != nil)
}

func (s *simulation) describe(entry change) string {
	switch c := entry.(type) {
	case insertStep:
		return fmt.Sprintf("  begin %s as %s%s", c.row.StepID, c.row.State, chosen(c.row))
	case moveStep:
		return fmt.Sprintf("  move %s from %s to %s, try %d", s.byID(c.id).StepID, c.from, c.to, c.attempt)
	case addAttempt:
		return fmt.Sprintf("  record try %d of %s as %s", c.attempt.Number, s.byID(c.step).StepID, c.attempt.Outcome)
	case openWait:
		line := fmt.Sprintf("  wait with %s for %s", s.stepOf(c.wait.StepRun), c.wait.Kind)
		if c.wait.Due != nil {
			line += " until " + c.wait.Due.Format("15:04:05")
		}
		return line
	case openReview:
		return fmt.Sprintf("  ask %q", c.draft.question)
	case hold:
		return fmt.Sprintf("  hold %v", c.hold.Amount)
	case settle:
		if c.settlement != nil {
			return fmt.Sprintf("  settle, unknown: %v", c.settlement.Unknown)
		}
		return fmt.Sprintf("  end money, abandoned: %v", c.abandoned != nil)
	case endRun:
		if c.failure != nil {
			return fmt.Sprintf("  end the run as %s at %q: %s", c.state, c.failure.StepID, c.failure.Class)
		}
		return fmt.Sprintf("  end the run as %s with %s", c.state, c.result)
	}
	return fmt.Sprintf("  %T", entry)
}

func (s *simulation) stepOf(id StepRunID) string { return s.byID(id).StepID }

func chosen(row StepRun) string {
	if row.Chosen == "" {
		return ""
	}
	return ", case " + string(row.Chosen)
}
