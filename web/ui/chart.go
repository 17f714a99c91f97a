package ui

import (
	"context"
	"io"
	"strconv"
)

// Chart draws amounts of money over time as bars: one for each day, in micro-dollars. A
// bar that is far above the others is cut short, and says so. The same figures belong
// in a table beside it: the picture is spoken as one sentence.
type Chart struct {
	Says   string // what a reader should see in it, as a sentence
	Bars   []Bar
	Ticks  []int  // of which bars the time is written below
	Recent string // words at the bar Now, if there is something to say about it
	Now    int    // the bar of today
}

// Bar is one amount. Expected is what may still come on top of it.
type Bar struct {
	When     string // "1 Nov"
	Amount   int64
	Expected int64
}

// Render writes the chart, or nothing without bars.
func (c Chart) Render(ctx context.Context, w io.Writer) error { return chart(c).Render(ctx, w) }

// The plot, in pixels from its top: bars stand on ground and reach up to sky.
const (
	chartSky    = 34.0
	chartGround = 190.0
	chartWords  = 210.0
)

// cutFrom is how many times the next largest bar one must be to be cut short.
const cutFrom = 3

// plot is a chart that is laid out.
type plot struct {
	Chart
	top  int64 // the amount at the height of the highest line
	step int64 // between two lines
	cut  int   // the bar that is cut short, -1 for none
}

func (c Chart) lay() plot {
	p := plot{Chart: c, cut: -1}
	largest, next := int64(0), int64(0)
	for i, bar := range c.Bars {
		switch whole := bar.Amount + bar.Expected; {
		case whole > largest:
			next, largest, p.cut = largest, whole, i
		case whole > next:
			next = whole
		}
	}
	if next == 0 || largest/cutFrom < next {
		p.cut = -1
		next = largest
	}
	p.step = niceStep(next)
	p.top = p.step
	for p.top < next {
		p.top += p.step
	}
	return p
}

// niceStep is a round amount of which about three reach the given one.
func niceStep(amount int64) int64 {
	step := int64(10_000)
	for {
		for _, times := range []int64{1, 2, 5} {
			if step*times*3 >= amount {
				return step * times
			}
		}
		step *= 10
	}
}

// lines are the amounts at which a line is drawn, from the ground up.
func (p plot) lines() []int64 {
	var out []int64
	for at := int64(0); at <= p.top; at += p.step {
		out = append(out, at)
	}
	return out
}

// y is the height at which an amount stands. What is cut reaches above the top line.
func (p plot) y(amount int64) float64 {
	if amount > p.top {
		return chartSky - 12
	}
	return chartGround - (chartGround-chartSky)*float64(amount)/float64(max(p.top, 1))
}

// width is what each bar has of the whole, in percent, with the gap behind it.
func (p plot) width() float64 { return 100 / float64(max(len(p.Bars), 1)) }

func (p plot) x(i int) float64 { return p.width()*float64(i) + p.width()*.15 }

func (p plot) middle(i int) float64 { return p.width() * (float64(i) + .5) }

// beside is where words about a bar begin or end: behind bars of the first half, before
// those of the second.
func (p plot) beside(i int) (at float64, anchor string) {
	if p.middle(i) < 50 {
		return p.x(i), "start"
	}
	return p.x(i) + p.width()*.7, "end"
}

// px writes a height as an attribute.
func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// brief writes the amount at a line: "$5", "$0.50".
func brief(micros int64) string {
	if micros%1_000_000 == 0 {
		return "$" + Count(micros/1_000_000)
	}
	return Dollars(micros)
}

// says is what is told of a bar.
func (b Bar) says() string {
	words := b.When + ": " + Dollars(b.Amount)
	if b.Expected > 0 {
		words += ", about " + Dollars(b.Expected) + " more expected"
	}
	return words
}

// Share is a small bar of how much of a whole something is, with its figure.
type Share struct{ Part, Whole int64 }

// Render writes the share.
func (s Share) Render(ctx context.Context, w io.Writer) error { return share(s).Render(ctx, w) }

func (s Share) percent() float64 {
	if s.Whole <= 0 {
		return 0
	}
	return min(100, max(0, float64(s.Part)*100/float64(s.Whole)))
}
