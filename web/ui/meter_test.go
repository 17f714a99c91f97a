package ui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeterWords(t *testing.T) {
	t.Parallel()
	cases := []struct {
		meter Meter
		want  string
	}{
		{Meter{Spent: 412_380_000, Reserved: 18_200_000, Cap: 500_000_000}, "$412.38 of $500.00 spent · $18.20 reserved"},
		{Meter{Spent: 0, Cap: 50_000_000}, "$0.00 of $50.00 spent"},
		{Meter{Spent: 1, Reserved: 1}, "<$0.01 spent · <$0.01 reserved · no cap is set"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, c.meter.Words().String())
	}
	require.Equal(t, "June: $1.00 of $2.00 spent · forecast $3.00", Meter{What: "June", Spent: 1e6, Cap: 2e6, Forecast: 3e6}.label())
}

func TestMeterShape(t *testing.T) {
	t.Parallel()
	under := Meter{Spent: 50, Reserved: 10, Forecast: 90, Cap: 100}.shape()
	require.InDelta(t, 100/1.06, under.post, 0.01, "a little air behind the cap")
	require.InDelta(t, under.post/2, under.spent, 0.01)
	require.InDelta(t, under.post*0.3, under.forecast, 0.01, "forecast is what is still to come")
	require.Zero(t, under.late)

	past := Meter{Spent: 100, Forecast: 200, Cap: 100}.shape()
	require.InDelta(t, 50, past.post, 0.01)
	require.InDelta(t, 50, past.late, 0.01)
	require.Zero(t, past.forecast, "all of it is past the cap")

	require.True(t, Meter{Spent: 90, Reserved: 10, Cap: 100}.over())
	require.False(t, Meter{Spent: 90, Cap: 100}.over())
	require.False(t, Meter{Spent: 90}.over(), "without a cap nothing is over")
}

func FuzzMeter(f *testing.F) {
	f.Add(int64(412), int64(18), int64(438), int64(500))
	f.Add(int64(1<<61), int64(1<<61), int64(0), int64(1))
	f.Add(int64(0), int64(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, spent, reserved, forecast, limit int64) {
		const most = 1 << 61 // money in the ledger is far below
		m := Meter{Spent: abs(spent) % most, Reserved: abs(reserved) % most, Forecast: abs(forecast), Cap: abs(limit)}
		s := m.shape()
		for _, v := range []float64{s.rail, s.spent, s.spent + s.reserved, s.spent + s.reserved + s.forecast, s.post, s.post + s.late, s.half, s.most} {
			if v < 0 || v > 100.01 {
				t.Fatalf("%+v does not fit: %+v", m, s)
			}
		}
	})
}

func abs(n int64) int64 {
	if n < 0 {
		n = -(n + 1)
	}
	return n
}

func TestProgressStaysInItsBar(t *testing.T) {
	t.Parallel()
	got := Progress{Pieces: []Piece{{Done, 80}, {Failed, -5}, {Running, 50}, {Queued, 10}}}.place()
	require.Equal(t, []placed{{Done, 0, 80}, {Running, 80, 20}}, got)
}

func TestStripHasAtMostFiftyCells(t *testing.T) {
	t.Parallel()
	cells := Strip{Cells: make([]Status, 10_000)}.cells()
	require.Len(t, cells, mostCells)
	require.LessOrEqual(t, cells[49].From+cells[49].Share, 100.0)
	require.Empty(t, Strip{}.cells())
}
