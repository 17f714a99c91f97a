package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// senders is how many callers send events side by side.
const senders = 8

// parking is what one go of W4 came to.
type parking struct {
	memory      float64 // MB that this process grew by
	empty, idle float64 // % of a core that nothing to do takes, before and with the parked runs
	one         []float64
	all         float64 // s
	used        float64 // ms of processor time for each of those
}

// parkedDocument waits for an event of the run's own key, and then calls outside once.
func parkedDocument() pipeline.Document {
	return pipeline.Document{
		Semantics: pipeline.Semantics, Name: "Parked", Input: []pipeline.Field{{Name: "key", Label: "Key", Type: pipeline.TypeText, Required: true}},
		Steps: []pipeline.Step{
			{ID: "paid", Name: "Wait for the money", Kind: pipeline.KindEvent, With: &pipeline.Event{Name: "paid", Key: "{{ input.key }}"}},
			{ID: "send", Name: "Say thanks", Kind: pipeline.KindEmail, With: &pipeline.Email{To: []string{"someone@example.com"}, Subject: "Thanks", Body: "{{ steps.paid.data.sum }}"}},
		},
	}
}

// park lets runs wait for events of their own, looks at what that costs, and wakes them:
// some one after the other, all others at once.
func (h *house) park(t *testing.T, id pipeline.ID, runs, singly int, look time.Duration) parking {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h.clock.reset(runs)
	h.rest(ctx, t)
	var p parking
	p.empty = h.clock.meter.load(look)
	before := memory()
	keys := h.parkRuns(ctx, t, id, runs)
	h.rest(ctx, t)
	p.memory, p.idle = memory()-before, h.clock.meter.load(look)
	for _, key := range keys[:singly] {
		p.one = append(p.one, h.wakeOne(ctx, t, key))
	}
	began, used := time.Now(), h.clock.meter.used()
	h.wakeAll(ctx, t, keys[singly:])
	p.all = time.Since(began).Seconds()
	p.used = (h.clock.meter.used() - used).Seconds() * 1000 / float64(max(runs-singly, 1))
	return p
}

// parkRuns starts the runs, and returns their keys once all of them wait.
func (h *house) parkRuns(ctx context.Context, t *testing.T, id pipeline.ID, runs int) []string {
	t.Helper()
	keys := make([]string, runs)
	group, starting := errgroup.WithContext(ctx)
	group.SetLimit(starters)
	for n := range keys {
		keys[n] = fmt.Sprintf("order-%d-%d", h.clock.times, n)
		group.Go(func() error {
			return h.db.InTx(starting, h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				input := fmt.Appendf(nil, `{"key": %q}`, keys[n])
				_, err := h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: input, By: h.owner, Key: keys[n]})
				return err
			})
		})
	}
	require.NoError(t, group.Wait())
	h.until(ctx, t, `SELECT count(*) = $1 FROM waits WHERE state = 'open'`, runs)
	return keys
}

// rest waits until nothing is left to do, and lets what was garbage go.
func (h *house) rest(ctx context.Context, t *testing.T) {
	t.Helper()
	h.until(ctx, t, `SELECT NOT EXISTS (SELECT 1 FROM slices) AND $1 >= 0`, 0)
	for range 2 {
		runtime.GC()
	}
}

// until polls a condition of the database.
func (h *house) until(ctx context.Context, t *testing.T, condition string, n int) {
	t.Helper()
	for {
		holds := false
		require.NoError(t, h.db.InTx(ctx, h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			return tx.QueryRow(ctx, condition, n).Scan(&holds)
		}))
		if holds {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h *house) send(ctx context.Context, key string) error {
	return h.db.InTx(ctx, h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.SendEvent(ctx, tx, engine.Event{Name: "paid", Key: key, Data: []byte(`{"sum": 420.00}`), Sender: "Shop"})
		return err
	})
}

// wakeOne is the time from sending an event to the outside call of the step behind the
// wait, in milliseconds.
func (h *house) wakeOne(ctx context.Context, t *testing.T, key string) float64 {
	t.Helper()
	made, began := h.clock.made(), time.Now()
	require.NoError(t, h.send(ctx, key))
	for h.clock.made() == made {
		require.NoError(t, ctx.Err())
		time.Sleep(100 * time.Microsecond)
	}
	took := h.clock.last().Sub(began)
	h.until(ctx, t, `SELECT NOT EXISTS (SELECT 1 FROM slices) AND $1 >= 0`, 0)
	return took.Seconds() * 1000
}

// wakeAll sends all events and waits for the last run's end.
func (h *house) wakeAll(ctx context.Context, t *testing.T, keys []string) {
	t.Helper()
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for _, key := range keys {
		group.Go(func() error { return h.send(sending, key) })
	}
	require.NoError(t, group.Wait())
	h.until(ctx, t, `SELECT count(*) = $1 FROM runs WHERE ended_at IS NULL`, 0)
}

// load is the processor time of this process and the server while nothing is asked of
// them, in % of a core.
func (m meter) load(look time.Duration) float64 {
	before := m.used()
	time.Sleep(look)
	return 100 * (m.used() - before).Seconds() / look.Seconds()
}

// memory is what this process holds on to, in MB.
func memory() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc+stats.StackInuse) / 1e6
}

func (c *clock) last() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps[len(c.steps)-1]
}

// parkedRows are the figures of W4; the first takes them all.
func parkedRows(t *testing.T, ours *house, s size) []*row {
	t.Helper()
	id := ours.publish(t, parkedDocument())
	ours.park(t, id, max(s.parked/20, 1), 0, 0)
	var last parking
	empty := &row{name: fmt.Sprintf("W4 idle, before %d runs are parked", s.parked), unit: "% of a core", mayBeNone: true,
		take: func() float64 { last = ours.park(t, id, s.parked, min(s.singly, s.parked), s.look); return last.empty }}
	return []*row{empty,
		{name: "W4 idle, with them", unit: "% of a core", mayBeNone: true, base: empty, bar: "+ 1 at most", take: func() float64 { return last.idle }},
		{name: "W4 memory that they take", unit: "MB", mayBeNone: true, bar: "< 10", take: func() float64 { return last.memory }},
		{name: "W4 waking one, median", unit: "ms", bar: "≤ 5", take: func() float64 { return median(last.one) }},
		{name: "W4 waking one, 95 %", unit: "ms", bar: "≤ 25", take: func() float64 { return percentile(last.one, 95) }},
		{name: fmt.Sprintf("W4 waking all, %d senders", senders), unit: "s", bar: "≤ 6", take: func() float64 { return last.all }},
		{name: "W4 waking all, processor", unit: "ms/run", take: func() float64 { return last.used }},
	}
}

// percentile is the figure that so many in a hundred do not pass.
func percentile(figures []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[(len(sorted)*percent+99)/100-1]
}
