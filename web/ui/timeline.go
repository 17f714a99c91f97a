package ui

import (
	"context"
	"io"
	"time"

	"github.com/a-h/templ"
)

// Timeline shows the steps of a run as a table with a bar per step. Long
// times in which nothing works are folded out of the axis, visibly, unless
// TrueScale is set.
type Timeline struct {
	ID      string
	Caption string
	Start   time.Time
	// Now is the moment shown at the "now" line, or the end of the run if
	// Ended is set.
	Now       time.Time
	Ended     bool
	TrueScale bool
	Loc       *time.Location
	Steps     []TimelineStep
}

// TimelineStep is one row. Ordinals follow the outline: "3", "3a".
type TimelineStep struct {
	ID       string // stable, for live swaps
	Number   string
	Name     string
	Href     string // opens the step's panel
	Depth    int    // 0 to 4
	Chosen   bool   // its panel is open
	Toggle   *Toggle
	Badge    Badge
	Group    bool // has steps of its own; its bar is a line around theirs
	Bars     []Stretch
	Attempts []time.Time // begin of each further attempt: a tick
	Time     string      // "40 min", or empty
	Cost     string      // "$4.58", or empty
	// Reason stands under the row, only where somebody could act or wonder.
	Reason Sentence
	Strip  *Strip
	Action templ.Component // a little button beside the reason
}

// Toggle opens or closes a group by loading the page again.
type Toggle struct {
	Href string
	Open bool
}

// Stretch is a time a step spent in one state. A zero To means: until now.
type Stretch struct {
	From, To time.Time
	As       Status
	// Over draws it thin: this is past and the step went on.
	Over bool
}

// Strip shows many items of a step in at most fifty cells, each the worst
// state within it. Words says the same: "9,412 done, 31 failed, 557 to go".
type Strip struct {
	Words string
	Cells []Status
}

// Render writes the cells.
func (s Strip) Render(ctx context.Context, w io.Writer) error { return strip(s).Render(ctx, w) }

// Render writes the timeline and the legend of what it shows.
func (t Timeline) Render(ctx context.Context, w io.Writer) error {
	return timeline(t, newScale(t)).Render(ctx, w)
}

// bar is a stretch laid out on the scale.
type bar struct {
	As          Status
	Over        bool
	From, Width float64
	Cuts        []float64 // where the axis is folded within it
}

// slimmest is the least width of a bar in percent; 4 px on the usual column.
const slimmest = 1.4

// width writes the width of a bar: in percent, or 4 px for the slimmest.
func (b bar) width() string {
	if b.Width < slimmest {
		return "4"
	}
	return pct(b.Width)
}

// y and height of a bar in its lane of 32 px. What is over is thin.
func (b bar) y() string {
	if b.thin() {
		return "13"
	}
	return "10"
}

func (b bar) height() string {
	if b.thin() {
		return "6"
	}
	return "12"
}

func (b bar) thin() bool { return b.Over || b.As == Done }

// bars lays out the stretches of a step; a queued step gets an outline behind
// the now line.
func (s scale) bars(step TimelineStep) []bar {
	var out []bar
	for _, st := range step.Bars {
		to := st.To
		if to.IsZero() {
			to = s.end
		}
		from, until := s.at(st.From), s.at(to)
		b := bar{As: st.As, Over: st.Over, From: min(from, 98.5), Width: max(0, until-from)}
		for _, f := range s.folds {
			if middle := f.x + f.width/2; from < middle && middle < until {
				b.Cuts = append(b.Cuts, middle)
			}
		}
		out = append(out, b)
	}
	if len(out) == 0 && step.Badge.Status == Queued && s.now < 99 {
		out = append(out, bar{As: Queued, From: s.now + 0.6, Width: 99.6 - s.now - 0.6})
	}
	return out
}

// label is the text equivalent of a step's bars.
func (s scale) label(step TimelineStep) string {
	label := step.Badge.words()
	if len(step.Bars) == 0 {
		return label
	}
	first, last := step.Bars[0], step.Bars[len(step.Bars)-1]
	switch {
	case last.To.IsZero():
		label += ", since " + s.clock(first.From)
	case s.clock(first.From) == s.clock(last.To):
		label += ", " + s.clock(first.From)
	default:
		label += ", " + s.clock(first.From) + " to " + s.clock(last.To)
	}
	if n := len(step.Attempts); n > 0 {
		label += ", " + Plural(int64(n)+1, "attempt", "attempts")
	}
	return label
}

// shown lists the states that occur, for the legend.
func (t Timeline) shown() []Status {
	occurs := map[Status]bool{}
	for _, step := range t.Steps {
		if len(step.Bars) == 0 && step.Badge.Status == Queued {
			occurs[Queued] = true
		}
		for _, st := range step.Bars {
			occurs[st.As] = true
		}
	}
	var out []Status
	for _, s := range Statuses {
		if occurs[s] {
			out = append(out, s)
		}
	}
	return out
}
