package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// simulation is a run without a database: it applies what decide asks for to rows in
// memory, and checks at each change what must hold.
type simulation struct {
	t       testing.TB
	program *pipeline.Program
	run     Run
	input   []byte
	steps   []*StepRun
	byID    map[StepRunID]*StepRun
	outputs map[StepRunID][]byte
	items   map[StepRunID][]byte
	inputs  map[StepRunID][]byte       // of calls
	tries   map[StepRunID]map[int]bool // numbers of the tries on record
	values  map[Digest][]byte
	holds   map[ledger.HoldID]StepRunID // still open
	waits   map[StepRunID]Wait          // open
	joined  map[StepRunID]int           // groups, by how often they were joined
	slices  []*simSlice                 // in the order of their birth
	current *simSlice
	ended   *endRun
	now     time.Time
	ids     uint64
	next    *call    // of the current slice
	lines   []string // what happened, for goldens
	block   func() int
}

// simSlice is one slice: it makes a call, or stands at a row.
type simSlice struct {
	id        SliceID
	at        *StepRun // zero at the run's beginning
	window    StepRunID
	block     []StepRun
	next      *call
	outcome   outcome
	callInput []byte
	looked    bool // it has looked around at the group where it stands
}

func simulate(t testing.TB, document string, input string) *simulation {
	t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	program, err := pipeline.Compile(parsed)
	require.NoError(t, err)
	first := &simSlice{id: SliceID{9}, outcome: outcome{kind: entered}}
	return &simulation{
		t: t, program: program, input: []byte(input), slices: []*simSlice{first}, current: first,
		run:  Run{ID: RunID{1}, Name: "a run", PipelineName: parsed.Name, State: RunRunning, CreatedAt: time.Date(2026, 11, 30, 11, 0, 0, 0, time.UTC)},
		byID: map[StepRunID]*StepRun{}, outputs: map[StepRunID][]byte{}, items: map[StepRunID][]byte{}, inputs: map[StepRunID][]byte{}, tries: map[StepRunID]map[int]bool{}, values: map[Digest][]byte{},
		holds: map[ledger.HoldID]StepRunID{}, waits: map[StepRunID]Wait{}, joined: map[StepRunID]int{},
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), block: func() int { return 1 },
	}
}

// decide asks for a decision at a step run of the current slice and applies it. It
// reports false where a guard has refused the commit.
func (s *simulation) decide(at *StepRun, out outcome, barred bars) bool {
	s.t.Helper()
	require.Nil(s.t, s.ended, "decided after the run's end")
	slice := s.current
	base, err := newScope(s.run, s.input)
	require.NoError(s.t, err)
	base.callInput = slice.callInput
	var position *StepRun
	if at != nil {
		row := *at
		position = &row
	}
	m := moment{
		program: s.program, run: s.run, step: position, groups: s.groups(at), slice: slice.id, window: slice.window, fence: 1,
		block: slices.Clone(slice.block), outcome: out, bars: barred, inputBound: func(AIInput) int64 { return 100 }, now: s.now, newID: s.newID,
		callbacks: func(frame StepRunID, step string) (string, string) {
			return "http://tollgate.example/" + step, callbackMark + step + fmt.Sprint(frame[15])
		},
	}
	for asked := 0; ; asked++ {
		require.Less(s.t, asked, 50, "asks for ever")
		m.scope = base.clone()
		result := decide(m)
		if len(result.missing) == 0 {
			return s.apply(result)
		}
		for _, w := range result.missing {
			s.supply(&base, w)
		}
	}
}

// supply loads one thing that a decision asks for.
func (s *simulation) supply(to *scope, w want) {
	s.t.Helper()
	switch w.kind {
	case wantRow:
		require.NotContains(s.t, to.found, w.place, "asked twice")
		to.found[w.place] = s.look(w.place)
	case wantValue:
		to.values[w.digest] = s.decoded(s.values[w.digest])
	case wantItem:
		to.items[w.row] = s.decoded(s.items[w.row])
	case wantSpent:
		to.spent[w.row] = s.spent(w.row)
	case wantTurns:
		to.turns[w.row] = s.turns(w.row)
	case wantLast:
		to.last[w.row] = len(s.turns(w.row)) - 1
	case wantZone:
		to.zone = time.UTC
	case wantPrices:
		to.prices = ledger.Shipped()
	case wantAbove:
		to.above = []RunID{}
	case wantKeys:
		to.keys = map[string]tenants.ProviderKeyID{}
	}
}

func (s *simulation) decoded(content []byte) any {
	s.t.Helper()
	value, err := expr.DecodeJSON(content)
	require.NoError(s.t, err)
	return value
}

func (s *simulation) look(p place) *found {
	for _, row := range s.steps {
		if row.Parent == p.frame && row.StepID == p.step && row.Turn == p.turn {
			return &found{id: row.ID, state: row.State, chosen: row.Chosen, output: value{digest: row.Output}}
		}
	}
	return &found{}
}

func (s *simulation) spent(inside StepRunID) int64 {
	var sum int64
	for _, row := range s.steps {
		if row.Parent == inside {
			if !slices.Contains(groups, string(row.Kind)) {
				sum += row.CostMicros
			}
			sum += s.spent(row.ID)
		}
	}
	return sum
}

func (s *simulation) turns(of StepRunID) []turn {
	var all []turn
	for _, row := range s.steps {
		if row.Parent == of {
			all = append(all, turn{row.Turn, row.List, row.State, row.Score, s.outputs[row.ID], row.Failure})
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return a.index - b.index })
	return all
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
		at = s.byID[at.Parent]
		groups = append(groups, *at)
	}
	return groups
}

func (s *simulation) slice(id SliceID) *simSlice {
	for _, one := range s.slices {
		if one.id == id {
			return one
		}
	}
	return nil
}

func (s *simulation) end(id SliceID) {
	s.slices = slices.DeleteFunc(s.slices, func(one *simSlice) bool { return one.id == id })
	for _, row := range s.steps {
		if row.State == StepQueued && row.Slice == id {
			row.Slice = SliceID{}
		}
	}
}

// settled checks what must hold once the run is over: nothing open, nothing held.
func (s *simulation) settled() {
	s.t.Helper()
	for _, row := range s.steps {
		require.False(s.t, row.State.Open(), "step %q is open after the run's end", row.StepID)
	}
	require.Empty(s.t, s.holds, "money is held after the run's end")
	require.Empty(s.t, s.waits, "a wait is open after the run's end")
	require.Empty(s.t, s.slices, "a slice is left after the run's end")
	require.True(s.t, s.ended.state.Final())
	require.Equal(s.t, s.ended.state == RunFailed, s.ended.failure != nil)
}
