package bench

import (
	"fmt"
	"slices"
	"strings"
)

// row is one line of the table: a figure, taken once in each repetition.
type row struct {
	name string
	unit string
	base *row   // what it is compared with, in the same repetition; nil: with nothing
	bar  string // what it should reach
	take func() float64
	got  []float64

	mayBeNone bool // the figure may be zero, or less
}

// text is the row for people: the median of all repetitions, their range, and the
// median of what it is as a multiple of its base.
func (r *row) text() string {
	times := ""
	if r.base != nil {
		times = fmt.Sprintf("%.2f ×", median(r.times()))
	}
	return fmt.Sprintf("| %s | %s | %s..%s | %s | %s | %s |", r.name, figure(median(r.got)),
		figure(slices.Min(r.got)), figure(slices.Max(r.got)), r.unit, times, r.bar)
}

func (r *row) times() []float64 {
	times := make([]float64, len(r.got))
	for n := range r.got {
		times[n] = r.got[n] / r.base.got[n]
	}
	return times
}

func figure(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.3f", f)
}

// table prints rows as Markdown.
func table(rows []*row) string {
	lines := []string{"| | median | range | | against its base | bar |", "|---|---|---|---|---|---|"}
	for _, r := range rows {
		lines = append(lines, r.text())
	}
	return strings.Join(lines, "\n") + "\n"
}
