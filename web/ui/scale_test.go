package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var runStart = time.Date(2026, 11, 27, 13, 50, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return runStart.Add(d) }

// run builds a timeline of one step per stretch.
func run(ended bool, length time.Duration, stretches ...Stretch) Timeline {
	t := Timeline{Start: runStart, Now: after(length), Ended: ended}
	for _, s := range stretches {
		t.Steps = append(t.Steps, TimelineStep{Badge: Badge{Status: s.As}, Bars: []Stretch{s}})
	}
	return t
}

func stretch(from, to time.Duration, as Status) Stretch {
	return Stretch{From: after(from), To: after(to), As: as}
}

func TestWhichWaitsAreFolded(t *testing.T) {
	t.Parallel()
	minute, hour := time.Minute, time.Hour
	cases := []struct {
		name  string
		run   Timeline
		folds []time.Duration // lengths, in the order of the axis
	}{
		{"work only", run(true, hour, stretch(0, hour, Running)), nil},
		{"a wait of half the run", run(true, 2*hour, stretch(0, hour, Done), stretch(hour, 2*hour, Person)), nil},
		{"one long wait", run(true, 70*hour, stretch(0, minute, Done), stretch(minute, 69*hour, Person), stretch(69*hour, 70*hour, Done)), []time.Duration{69*hour - minute}},
		{"a long wait that goes on", run(false, 70*hour, stretch(0, minute, Done), Stretch{From: after(minute), As: Person}), []time.Duration{70*hour - minute}},
		{"work beside the wait keeps the scale", run(true, 70*hour, stretch(0, 70*hour, Running), stretch(0, 70*hour, Person)), nil},
		{"a wait in the shadow of a longer one", run(true, 100*hour, stretch(0, minute, Done), stretch(minute, 95*hour, Person), stretch(95*hour, 95*hour+minute, Done), stretch(95*hour+minute, 100*hour-minute, Waiting), stretch(100*hour-minute, 100*hour, Done)), []time.Duration{95*hour - minute, 5*hour - 2*minute}},
		{"held by the cap is waiting", run(false, 70*hour, stretch(0, minute, Done), Stretch{From: after(minute), As: Cap}), []time.Duration{70*hour - minute}},
		{"stuck is not", run(false, 70*hour, stretch(0, minute, Done), Stretch{From: after(minute), As: Stuck}), nil},
		{"nothing but waiting", run(false, hour, Stretch{From: runStart, As: Waiting}), []time.Duration{hour}},
		{"no steps", run(false, hour), []time.Duration{hour}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []time.Duration
			for _, f := range newScale(c.run).folds {
				got = append(got, f.length())
			}
			require.Equal(t, c.folds, got)
			c.run.TrueScale = true
			require.Empty(t, newScale(c.run).folds, "true scale folds nothing")
		})
	}
}

func TestGroupBarIsNoWork(t *testing.T) {
	t.Parallel()
	tl := run(false, 70*time.Hour, stretch(0, time.Minute, Done), Stretch{From: after(time.Minute), As: Person})
	tl.Steps = append(tl.Steps, TimelineStep{Group: true, Bars: []Stretch{{From: runStart, As: Running}}})
	require.Len(t, newScale(tl).folds, 1)
}

func TestEndsOfTheAxis(t *testing.T) {
	t.Parallel()
	open := newScale(run(false, time.Hour, stretch(0, time.Minute, Done)))
	require.InDelta(t, 0, open.at(runStart.Add(-time.Hour)), 0)
	require.InDelta(t, 87, open.at(after(time.Hour)), 0, "room is kept for what is to come")
	require.InDelta(t, 87, open.at(after(99*time.Hour)), 0)
	done := newScale(run(true, time.Hour, stretch(0, time.Hour, Done)))
	require.InDelta(t, 100, done.at(after(time.Hour)), 0)
	require.InDelta(t, 50, done.at(after(30*time.Minute)), 0.001)
	begun := newScale(run(false, 0))
	require.InDelta(t, 0, begun.at(runStart), 0)
}

func TestTextEquivalents(t *testing.T) {
	t.Parallel()
	tl := run(true, 2*time.Hour, stretch(0, time.Hour, Done))
	s := newScale(tl)
	step := tl.Steps[0]
	require.Equal(t, "Done, 13:50 to 14:50", s.label(step))
	step.Attempts = []time.Time{after(time.Minute), after(2 * time.Minute)}
	require.Equal(t, "Done, 13:50 to 14:50, 3 attempts", s.label(step))
	open := run(false, 3*24*time.Hour, Stretch{From: after(time.Hour), As: Person})
	require.Equal(t, "Waiting for a person, since Fri 14:50", newScale(open).label(open.Steps[0]))
	require.Equal(t, "Queued", s.label(TimelineStep{Badge: Badge{Status: Queued}}))
}

func TestQueuedStepsStandBehindNow(t *testing.T) {
	t.Parallel()
	queued := TimelineStep{Badge: Badge{Status: Queued}}
	open := newScale(run(false, time.Hour, stretch(0, time.Minute, Done))).bars(queued)
	require.Len(t, open, 1)
	require.Greater(t, open[0].From, 87.0)
	require.LessOrEqual(t, open[0].From+open[0].Width, 100.0)
	require.Empty(t, newScale(run(true, time.Hour)).bars(queued))
}

// FuzzScale: whatever the times, the axis never runs backwards and nothing
// leaves it.
func FuzzScale(f *testing.F) {
	f.Add(int64(3600), int64(1), int64(60), int64(60), int64(3000), true)
	f.Add(int64(250000), int64(0), int64(1), int64(1), int64(249000), false)
	f.Add(int64(-5), int64(9), int64(-9), int64(1<<40), int64(0), false)
	f.Fuzz(func(t *testing.T, length, a, b, c, d int64, ended bool) {
		second := func(n int64) time.Duration { return time.Duration(n%(4*365*24*3600)) * time.Second }
		tl := run(ended, second(length), stretch(second(a), second(b), Running), stretch(second(b), second(c), Person), stretch(second(c), second(d), Failed))
		s := newScale(tl)
		last := -1.0
		for i := range 200 {
			at := s.at(runStart.Add(s.end.Sub(s.start) * time.Duration(i) / 199))
			if at < last-1e-6 || at < 0 || at > 100.001 {
				t.Fatalf("at %d/199 the axis stands at %v after %v: %+v", i, at, last, s)
			}
			last = at
		}
		for _, step := range tl.Steps {
			for _, bar := range s.bars(step) {
				if bar.From < 0 || bar.From > 98.5 || bar.Width < 0 || bar.Width > 100.001 {
					t.Fatalf("bar out of the picture: %+v", bar)
				}
			}
		}
		for _, l := range s.labels() {
			if l.X < 0 || l.X > 101 {
				t.Fatalf("label out of the picture: %+v", l)
			}
		}
	})
}
