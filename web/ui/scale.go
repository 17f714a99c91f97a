package ui

import (
	"slices"
	"sort"
	"time"
)

// scale maps moments to percent of the width of a timeline's bar column.
type scale struct {
	start, end time.Time
	loc        *time.Location
	folds      []foldedWait
	now        float64 // where "now" or the end stands
	ended      bool
}

// foldedWait is a time taken out of the axis and drawn as a narrow band.
type foldedWait struct {
	from, to time.Time
	x, width float64
}

const (
	// roomToGo is kept right of the now line for steps that are to come.
	roomToGo = 13.0
	// worthFolding is the share of the still visible time a wait must exceed.
	worthFolding = 0.8
	mostFolds    = 4
)

// newScale lays out the axis: while one idle time fills more than four fifths
// of what is still to scale, it is folded, the longest first.
func newScale(t Timeline) scale {
	s := scale{start: t.Start, end: t.Now, loc: t.Loc, ended: t.Ended, now: 100}
	if s.loc == nil {
		s.loc = time.UTC
	}
	for _, step := range t.Steps {
		for _, st := range step.Bars {
			if st.To.After(s.end) {
				s.end = st.To
			}
		}
	}
	if s.end.Sub(s.start) < time.Second {
		s.end = s.start.Add(time.Second)
	}
	if !t.Ended {
		s.now = 100 - roomToGo
	}
	if !t.TrueScale {
		s.fold(idle(t, s.start, s.end))
	}
	return s
}

// fold chooses the waits to fold and gives each its place.
func (s *scale) fold(waits []foldedWait) {
	sort.SliceStable(waits, func(i, j int) bool { return waits[i].length() > waits[j].length() })
	visible := s.end.Sub(s.start)
	for _, w := range waits {
		if len(s.folds) == mostFolds || float64(w.length()) <= worthFolding*float64(visible) {
			break
		}
		visible -= w.length()
		s.folds = append(s.folds, w)
	}
	slices.SortFunc(s.folds, func(a, b foldedWait) int { return a.from.Compare(b.from) })
	// One fold is wide enough to be seen as a wait; several share the room.
	band := 18.0
	if len(s.folds) > 1 {
		band = 12
	}
	for i := range s.folds {
		s.folds[i].width = band
		s.folds[i].x = s.at(s.folds[i].from)
	}
}

func (f foldedWait) length() time.Duration { return f.to.Sub(f.from) }

// at gives the place of a moment. Moments outside the run are put at its ends.
func (s scale) at(t time.Time) float64 {
	if !t.After(s.start) {
		return 0
	}
	if !t.Before(s.end) {
		return s.now
	}
	visible, passed, bands, room := s.end.Sub(s.start), t.Sub(s.start), 0.0, s.now
	for _, f := range s.folds {
		visible -= f.length()
		room -= f.width
		switch {
		case !t.Before(f.to):
			passed -= f.length()
			bands += f.width
		case t.After(f.from):
			passed -= t.Sub(f.from)
			bands += f.width * float64(t.Sub(f.from)) / float64(f.length())
		}
	}
	if visible <= 0 {
		return bands
	}
	return bands + room*float64(passed)/float64(visible)
}

// idle finds the times in which no step works: the complement of all
// stretches of work.
func idle(t Timeline, start, end time.Time) []foldedWait {
	var busy []foldedWait
	for _, step := range t.Steps {
		for _, st := range step.Bars {
			if step.Group || !works(st.As) {
				continue
			}
			to := st.To
			if to.IsZero() {
				to = end
			}
			busy = append(busy, foldedWait{from: st.From, to: to})
		}
	}
	slices.SortFunc(busy, func(a, b foldedWait) int { return a.from.Compare(b.from) })
	var out []foldedWait
	free := start
	for _, b := range busy {
		if b.from.After(free) {
			out = append(out, foldedWait{from: free, to: b.from})
		}
		if b.to.After(free) {
			free = b.to
		}
	}
	if end.After(free) {
		out = append(out, foldedWait{from: free, to: end})
	}
	return out
}

// works tells whether a state is work rather than waiting.
func works(s Status) bool {
	switch s {
	case Running, Retrying, Stuck, Done, Failed:
		return true
	default:
		return false
	}
}

// tickLabel is one label of the axis.
type tickLabel struct {
	X      float64
	Anchor string // start, middle, end
	Text   string
	Strong bool
}

// labelRoom is the width a time label needs, in percent of the usual column.
const labelRoom = 27.0

// labels are the times under the axis: the start, where work went on after a
// fold, and now or the end, as far as they do not run into each other.
func (s scale) labels() []tickLabel {
	out := []tickLabel{{X: 0, Anchor: "start", Text: s.clock(s.start)}}
	last := tickLabel{X: s.now, Anchor: "middle", Text: "now", Strong: true}
	stop := s.now - 8
	if s.ended {
		last = tickLabel{X: 100, Anchor: "end", Text: s.clock(s.end)}
		stop = 100 - labelRoom
	}
	free := labelRoom
	for _, f := range s.folds {
		if x := f.x + f.width; x >= free && x+labelRoom <= stop+2 {
			out = append(out, tickLabel{X: x + 1, Anchor: "start", Text: s.clock(f.to)})
			free = x + labelRoom
		}
	}
	if len(s.folds) == 0 {
		middle := s.start.Add(s.end.Sub(s.start) / 2)
		// In a short run the middle may fall into the second of the start.
		if text := s.clock(middle); text != out[0].Text {
			out = append(out, tickLabel{X: s.at(middle), Anchor: "middle", Text: text})
		}
	}
	return append(out, last)
}

// foldLabel names the longest folded wait, above the axis.
func (s scale) foldLabel() tickLabel {
	var longest foldedWait
	for _, f := range s.folds {
		if f.length() > longest.length() {
			longest = f
		}
	}
	label := tickLabel{X: longest.x + longest.width/2, Anchor: "middle", Text: Duration(longest.length()) + " of waiting"}
	switch {
	case label.X < 25:
		label.X, label.Anchor = longest.x, "start"
	case label.X > 75:
		label.X, label.Anchor = longest.x+longest.width, "end"
	}
	return label
}

// clock writes a moment as finely as the span of the axis needs.
func (s scale) clock(t time.Time) string {
	if t.IsZero() {
		t = s.end
	}
	switch span := s.end.Sub(s.start); {
	case span < 10*time.Minute:
		return t.In(s.loc).Format("15:04:05")
	case daysBetween(s.start.In(s.loc), s.end.In(s.loc)) == 0:
		return t.In(s.loc).Format("15:04")
	case span < 6*24*time.Hour:
		return t.In(s.loc).Format("Mon 15:04")
	default:
		return t.In(s.loc).Format("2 Jan 15:04")
	}
}
