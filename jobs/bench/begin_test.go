package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// settling is how long the system is left alone before each start, so that it is idle,
// and in no step with anything that looks every few milliseconds.
const settling = 23 * time.Millisecond

// begin is how long it takes from a start's commit to the begin of the first step, on a
// system that does nothing else.
func begin(t *testing.T, raw *chain, ours *house, s size) []*row {
	t.Helper()
	id := ours.publish(t, line(pipeline.KindEmail, 1))
	var last []float64
	// The work may begin before the answer to the commit is here.
	base := &row{name: "START raw River job, from the insert's commit to its work", unit: "ms", mayBeNone: true, take: func() float64 {
		return median(begins(t, s.begins, func() time.Duration {
			return raw.clock.toFirst(t, func(ctx context.Context, name string) error {
				_, err := raw.client.Insert(ctx, chainStep{Run: name, Of: 1}, nil)
				return err
			})
		}))
	}}
	return []*row{base,
		{name: "START Tollgate, from a start's commit to the first step's begin, p50", unit: "ms", base: base, bar: "≤ 4 ms", take: func() float64 {
			last = begins(t, s.begins, func() time.Duration {
				return ours.clock.toFirst(t, func(ctx context.Context, name string) error { return ours.start(ctx, id, name) })
			})
			return median(last)
		}},
		{name: "START the same, p95", unit: "ms", take: func() float64 { return last[len(last)*95/100] }},
	}
}

// begins takes so many times, in milliseconds, sorted.
func begins(t *testing.T, times int, take func() time.Duration) []float64 {
	t.Helper()
	var all []float64
	for range times {
		time.Sleep(settling)
		all = append(all, take().Seconds()*1000)
	}
	slices.Sort(all)
	return all
}

// toFirst starts one run and tells how long after the start's commit its step began.
func (c *clock) toFirst(t *testing.T, start func(ctx context.Context, name string) error) time.Duration {
	t.Helper()
	c.reset(1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, start(ctx, time.Now().Format(time.RFC3339Nano)))
	committed := time.Now()
	require.NoError(t, c.await(ctx, work{runs: 1, steps: 1, open: func(context.Context) (int, error) { return 0, nil }}))
	return c.steps[0].Sub(committed)
}
