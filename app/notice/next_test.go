package notice

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsToldAndWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for name, c := range map[string]struct {
		notice Notice
		still  int
		tell   telling
		ended  bool
	}{
		"begins":                  {Notice{Kind: Failed, Runs: 3, LastAt: now}, 3, tellBegun, false},
		"goes on":                 {Notice{Kind: Failed, Runs: 900, Told: 3, LastAt: now, ToldAt: ago(time.Hour)}, 900, "", false},
		"goes on for a day":       {Notice{Kind: Failed, Runs: 900, Told: 3, LastAt: now, ToldAt: ago(daily)}, 900, tellLasting, false},
		"no other for a day":      {Notice{Kind: Capped, Runs: 3, Told: 3, LastAt: *ago(daily), ToldAt: ago(daily)}, 3, "", false},
		"failed and then quiet":   {Notice{Kind: Failed, Runs: 900, Told: 3, LastAt: *ago(quiet), ToldAt: ago(quiet)}, 900, tellOver, true},
		"told all, then quiet":    {Notice{Kind: Failed, Runs: 3, Told: 3, LastAt: *ago(quiet), ToldAt: ago(quiet)}, 3, "", true},
		"cap raised":              {Notice{Kind: Capped, Runs: 40, Told: 1, LastAt: *ago(calm), ToldAt: ago(time.Hour)}, 0, tellOver, true},
		"cap raised a moment ago": {Notice{Kind: Capped, Runs: 40, Told: 1, LastAt: now, ToldAt: ago(time.Hour)}, 0, "", false},
	} {
		got := next(c.notice, c.still, now)
		require.Equal(t, c.tell, got.tell, name)
		require.Equal(t, c.ended, got.ended, name)
	}
}

// However runs fail over a week, people are told at most once a day and cause, and told in
// the end of every run.
func TestNoFlood(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		end := now.Add(7 * daily)
		n := Notice{Kind: Failed}
		var told, runs, toldOf int
		for now.Before(end.Add(2 * quiet)) {
			now = now.Add(time.Duration(random.Int64N(int64(30 * time.Minute))))
			if now.Before(end) && random.IntN(3) > 0 {
				came := 1 + random.IntN(100)
				n.Runs, runs, n.LastAt = n.Runs+came, runs+came, now
			}
			if n.Runs == 0 {
				continue
			}
			became := next(n, n.Runs, now)
			if became.tell != "" {
				at := now
				told, toldOf = told+1, toldOf+n.Runs-n.Told
				n.Told, n.ToldAt = n.Runs, &at
			}
			if became.ended {
				n = Notice{Kind: Failed}
			}
		}
		require.LessOrEqual(t, told, 16, "seed %d", seed)
		require.Equal(t, runs, toldOf, "seed %d", seed)
	}
}
