package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A beat stops what was taken away, and only that: what was claimed after the question
// was asked cannot be in its answer, what is not claimed yet neither, and a slice that
// came back under a higher fence is another one.
func TestBeatStopsOnlyWhatWasTakenAway(t *testing.T) {
	t.Parallel()
	asked := time.Now()
	w := (&Engine{}).NewWorker("a worker")
	type expectation struct {
		ctx     context.Context
		stopped bool
	}
	expected := map[driven]expectation{}
	enter := func(name driven, claimed time.Time, stopped bool) {
		ctx, leave := w.enter(t.Context(), name)
		t.Cleanup(leave)
		w.active[name].claimed = claimed
		expected[name] = expectation{ctx, stopped}
	}
	before, after := asked.Add(-time.Second), asked.Add(time.Millisecond)
	ours := driven{SliceID{1}, 1}
	enter(ours, before, false)
	enter(driven{SliceID{2}, 1}, before, true)
	enter(driven{SliceID{3}, 1}, after, false)
	enter(driven{SliceID{4}, 1}, time.Time{}, false)
	enter(driven{SliceID{5}, 1}, before, true)
	back := driven{SliceID{5}, 2}
	enter(back, before, false)
	w.stopLost([]driven{ours, back}, asked)
	for name, want := range expected {
		require.Equal(t, want.stopped, want.ctx.Err() != nil, "%+v", name)
	}
}

// When the first of two drives of a slice ends, the second still counts as driven.
func TestLeavingOneDriveLeavesTheOther(t *testing.T) {
	t.Parallel()
	w := (&Engine{}).NewWorker("a worker")
	_, leaveFirst := w.enter(t.Context(), driven{SliceID{1}, 1})
	_, leaveSecond := w.enter(t.Context(), driven{SliceID{1}, 2})
	leaveFirst()
	require.Empty(t, w.withoutDriven([]Stuck{{Kind: StuckUndriven, Slice: SliceID{1}, Fence: 2}}))
	leaveSecond()
	require.Len(t, w.withoutDriven([]Stuck{{Kind: StuckUndriven, Slice: SliceID{1}, Fence: 2}}), 1)
}
