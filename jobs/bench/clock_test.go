package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// clock notes when steps were made. Worker and driver share one process, so all times
// are of one clock.
type clock struct {
	mu    sync.Mutex
	steps []time.Time
	times int // how often it has timed something
	meter meter
}

// step notes that a step runs now. It takes no time of its own, so that the time
// between two notes of a lone run is that from a step's end to the next one's begin.
func (c *clock) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, time.Now())
}

// took is one timed go.
type took struct {
	whole time.Duration
	used  time.Duration // processor time of this process and the server
	steps []time.Time
}

// starters is how many callers start runs side by side, patience the longest that
// anything may take.
const (
	starters = 16
	patience = 10 * time.Minute
)

// work is what is timed: runs of so many steps, how one is started under a name of its
// own, and how many are still open once all steps have been made.
type work struct {
	runs, steps int
	start       func(ctx context.Context, name string) error
	open        func(context.Context) (int, error)
}

// time starts the runs and waits until all have ended.
func (c *clock) time(t *testing.T, w work) took {
	t.Helper()
	c.reset(w.runs * w.steps)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began, used := time.Now(), c.meter.used()
	group, starting := errgroup.WithContext(ctx)
	group.SetLimit(starters)
	for n := range w.runs {
		group.Go(func() error { return w.start(starting, fmt.Sprintf("%d-%d", c.times, n)) })
	}
	require.NoError(t, group.Wait())
	require.NoError(t, c.await(ctx, w))
	return took{whole: time.Since(began), used: c.meter.used() - used, steps: c.steps}
}

// await polls until all steps were made and no run is open.
func (c *clock) await(ctx context.Context, w work) error {
	for {
		if c.made() == w.runs*w.steps {
			if open, err := w.open(ctx); err != nil || open == 0 {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d steps were made: %w", c.made(), w.runs*w.steps, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *clock) reset(steps int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = make([]time.Time, 0, steps)
	c.times++
}

func (c *clock) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps)
}

// rate is steps a second.
func (k took) rate() float64 { return float64(len(k.steps)) / k.whole.Seconds() }

// cost is processor time for each step, in milliseconds.
func (k took) cost() float64 { return k.used.Seconds() * 1000 / float64(len(k.steps)) }

// gap is the median time between two steps, in milliseconds.
func (k took) gap() float64 {
	gaps := make([]float64, 0, len(k.steps))
	for n := 1; n < len(k.steps); n++ {
		gaps = append(gaps, k.steps[n].Sub(k.steps[n-1]).Seconds()*1000)
	}
	return median(gaps)
}

// held is the pace of the last tenth as a part of the first tenth's.
func (k took) held() float64 {
	tenth := len(k.steps) / 10
	last := len(k.steps) - 1
	return k.steps[tenth].Sub(k.steps[0]).Seconds() / k.steps[last].Sub(k.steps[last-tenth]).Seconds()
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	if len(sorted) == 0 {
		return 0
	}
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
