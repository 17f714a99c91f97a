package ui

import (
	"context"
	"io"
	"strconv"
)

// Meter shows spending against a cap, all in micro-dollars. The bar carries
// marks at 50 and 80 percent and a post at the cap; what is reserved is a
// small hatch with an edge, a forecast a hatch without, and what would pass
// the cap is hatched in the cap's colour.
type Meter struct {
	Spent, Reserved int64
	Forecast        int64 // expected total at the end of the period; 0 if unknown
	Cap             int64 // 0 means that no cap is set
	Little          bool  // for a table cell: no marks, no words
	What            string
	// What the meter is about, for the voice: "AI spend, November".
}

// Render writes the bar. The words beside it are [Meter.Words].
func (m Meter) Render(ctx context.Context, w io.Writer) error { return meter(m).Render(ctx, w) }

// Words says what the bar shows: "$412.38 of $500.00 spent · $18.20 reserved".
func (m Meter) Words() Sentence {
	s := Sentence{Strong(Dollars(m.Spent))}
	if m.Cap > 0 {
		s = append(s, Plain(" of "), Strong(Dollars(m.Cap)))
	}
	s = append(s, Plain(" spent"))
	if m.Reserved > 0 {
		s = append(s, Plain(" · "+Dollars(m.Reserved)+" reserved"))
	}
	if m.Cap == 0 {
		s = append(s, Plain(" · no cap is set"))
	}
	return s
}

// label is the text equivalent of the picture.
func (m Meter) label() string {
	label := m.Words().String()
	if m.What != "" {
		label = m.What + ": " + label
	}
	if m.Forecast > 0 {
		label += " · forecast " + Dollars(m.Forecast)
	}
	return label
}

// over tells whether the cap is reached.
func (m Meter) over() bool { return m.Cap > 0 && m.Spent+m.Reserved >= m.Cap }

// shape is the meter in percent of its width.
type shape struct {
	rail, spent, reserved, forecast, late, half, most, post float64
}

// shape lays the bar out. The full width is the largest of the cap with a
// little air, and what is or will be spent, so that nothing is ever cut off.
func (m Meter) shape() shape {
	total := m.Spent + m.Reserved
	whole := float64(max(m.Cap, total, m.Forecast, 1))
	if whole == float64(m.Cap) {
		whole *= 1.06
	}
	pct := func(v int64) float64 { return max(0, float64(v)*100/whole) }
	s := shape{
		rail: pct(m.Cap), spent: pct(m.Spent), reserved: pct(m.Reserved),
		half: pct(m.Cap / 2), most: pct(m.Cap / 5 * 4), post: pct(m.Cap),
	}
	if m.Cap == 0 {
		s.rail = 100
	}
	if m.Forecast > total {
		s.forecast = pct(min(m.Forecast, max(m.Cap, total)) - total)
		if m.Cap == 0 {
			s.forecast = pct(m.Forecast - total)
		}
	}
	if end := max(total, m.Forecast); m.Cap > 0 && end > m.Cap {
		s.late = pct(end - m.Cap)
	}
	return s
}

// anchor keeps a word at a place within the picture.
func anchor(at float64) string {
	switch {
	case at < 4:
		return "start"
	case at > 96:
		return "end"
	default:
		return "middle"
	}
}

// pct writes a position as an attribute: "47.17%".
func pct(v float64) string {
	return strconv.FormatFloat(v, 'f', 2, 64) + "%"
}

// Progress is a thin bar of how far something is, in pieces from left to
// right. What is missing to the whole is empty.
type Progress struct {
	Label  string // text equivalent: "94 percent done"
	Pieces []Piece
}

// Piece is one part of a progress bar; Share is in percent of the whole.
type Piece struct {
	Status Status
	Share  float64
}

// Render writes the bar.
func (p Progress) Render(ctx context.Context, w io.Writer) error { return progress(p).Render(ctx, w) }

// placed is a piece with its place.
type placed struct {
	Status      Status
	From, Share float64
}

// place puts the pieces one behind the other and keeps them within the bar.
func (p Progress) place() []placed {
	var out []placed
	at := 0.0
	for _, piece := range p.Pieces {
		share := min(max(piece.Share, 0), 100-at)
		if share > 0 {
			out = append(out, placed{piece.Status, at, share})
		}
		at += share
	}
	return out
}

// pattern is the fill of a bar that is not solid, defined once in the layout.
func (s Status) pattern() string { return "url(#p-" + string(s) + ")" }
