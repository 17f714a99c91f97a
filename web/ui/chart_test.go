package ui

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNiceStepsAreRoundAndFew(t *testing.T) {
	t.Parallel()
	for amount, want := range map[int64]int64{0: 10_000, 12_540_000: 5_000_000, 30_000: 10_000, 31_000: 20_000, 1_000_000: 500_000, 900_000_000_000: 500_000_000_000} {
		require.Equal(t, want, niceStep(amount), amount)
	}
}

func TestOneBarFarAboveTheOthersIsCut(t *testing.T) {
	t.Parallel()
	p := Chart{Bars: []Bar{{Amount: 5e6}, {Amount: 9e6}, {Amount: 221e6, Expected: 26e6}}}.lay()
	require.Equal(t, 2, p.cut)
	require.Equal(t, int64(10e6), p.top)
	even := Chart{Bars: []Bar{{Amount: 5e6}, {Amount: 9e6}, {Amount: 26e6}}}.lay()
	require.Equal(t, -1, even.cut, "under three times the next one")
	alone := Chart{Bars: []Bar{{}, {Amount: 5e6}}}.lay()
	require.Equal(t, -1, alone.cut, "there is nothing beside it to see")
}

func FuzzChartStaysInItsPlot(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3))
	f.Add(int64(0), int64(0), int64(0))
	f.Add(int64(1_000_000_000_000_000), int64(1), int64(0))
	f.Fuzz(func(t *testing.T, a, b, expected int64) {
		const most = 1_000_000_000_000_000 // a billion dollars
		c := Chart{Bars: []Bar{{Amount: abs(a) % most}, {Amount: abs(b) % most, Expected: abs(expected) % most}}}
		p := c.lay()
		if len(p.lines()) > 8 {
			t.Fatalf("%d lines", len(p.lines()))
		}
		for _, bar := range p.Bars {
			if y := p.y(bar.Amount + bar.Expected); y < 0 || y > chartGround {
				t.Fatalf("%+v stands at %v", bar, y)
			}
		}
		require.NoError(t, c.Render(t.Context(), &bytes.Buffer{}))
	})
}
