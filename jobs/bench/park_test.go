package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
	nothingLeft := func() { h.until(ctx, t, `SELECT NOT EXISTS (SELECT 1 FROM slices) AND $1 >= 0`, 0) }
	for _, key := range keys[:singly] {
		p.one = append(p.one, h.clock.wakeOne(ctx, t, func() error { return h.send(ctx, key) }))
		nothingLeft()
	}
	p.all, p.used = h.clock.wakeAll(ctx, t, keys[singly:], h.send, func() {
		h.until(ctx, t, `SELECT count(*) = $1 FROM runs WHERE ended_at IS NULL`, 0)
	})
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
			input := fmt.Appendf(nil, `{"key": %q}`, keys[n])
			_, err := h.engine.StartNow(starting, h.tenant, engine.StartRequest{Pipeline: id, Input: input, By: h.owner, Key: keys[n]})
			return err
		})
	}
	require.NoError(t, group.Wait())
	h.until(ctx, t, `SELECT count(*) = $1 FROM waits WHERE state = 'open'`, runs)
	return keys
}

// rest waits until nothing is left to do, and does at once what the server would do in
// the minutes after so much work, so that a look shows what waiting takes and nothing else.
func (h *house) rest(ctx context.Context, t *testing.T) {
	t.Helper()
	h.until(ctx, t, `SELECT NOT EXISTS (SELECT 1 FROM slices) AND $1 >= 0`, 0)
	for _, tidying := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		_, err := h.db.Super(t).Exec(ctx, tidying)
		require.NoError(t, err)
	}
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

// wakeOne is the time from a signal to the call of the step behind the wait, in
// milliseconds.
func (c *clock) wakeOne(ctx context.Context, t *testing.T, signal func() error) float64 {
	t.Helper()
	made, began := c.made(), time.Now()
	require.NoError(t, signal())
	for c.made() == made {
		require.NoError(t, ctx.Err())
		time.Sleep(100 * time.Microsecond)
	}
	return c.last().Sub(began).Seconds() * 1000
}

// wakeAll gives all signals and waits for the last run's end. It tells how many seconds
// that took, and how much processor time for each, in milliseconds.
func (c *clock) wakeAll(ctx context.Context, t *testing.T, keys []string, signal func(context.Context, string) error, end func()) (seconds, used float64) {
	t.Helper()
	began, before := time.Now(), c.meter.used()
	group, signalling := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for _, key := range keys {
		group.Go(func() error { return signal(signalling, key) })
	}
	require.NoError(t, group.Wait())
	end()
	return time.Since(began).Seconds(), (c.meter.used() - before).Seconds() * 1000 / float64(max(len(keys), 1))
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

// park keeps as many rows as runs would wait, wakes some one after the other and all
// others at once: a signal deletes the row and inserts the job that goes on.
func (c *chain) park(t *testing.T, runs, singly int) parking {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.clock.reset(runs)
	_, err := c.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS parked (key text PRIMARY KEY)`)
	require.NoError(t, err)
	_, err = c.pool.Exec(ctx, `INSERT INTO parked SELECT n::text FROM generate_series(1, $1) n`, runs)
	require.NoError(t, err)
	keys := make([]string, runs)
	for n := range keys {
		keys[n] = fmt.Sprint(n + 1)
	}
	c.ended.Store(0)
	var p parking
	for _, key := range keys[:singly] {
		p.one = append(p.one, c.clock.wakeOne(ctx, t, func() error { return c.signal(ctx, key) }))
	}
	p.all, p.used = c.clock.wakeAll(ctx, t, keys[singly:], c.signal, func() {
		for int(c.ended.Load()) < runs && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	})
	return p
}

func (c *chain) signal(ctx context.Context, key string) error {
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM parked WHERE key = $1`, key); err != nil {
			return err
		}
		_, err := c.client.InsertTx(ctx, tx, chainStep{Run: key, Of: 1}, nil)
		return err
	})
}

// parkedRows are the figures of W4; the first of raw River's and of ours takes them all.
func parkedRows(t *testing.T, raw *chain, ours *house, s size) []*row {
	t.Helper()
	id := ours.publish(t, parkedDocument())
	raw.park(t, max(s.parked/20, 1), 0)
	ours.park(t, id, max(s.parked/20, 1), 0, time.Millisecond)
	singly := min(s.singly, s.parked)
	var base, last parking
	rawOne := &row{name: "W4 raw River, waking one, median", unit: "ms", take: func() float64 { base = raw.park(t, s.parked, singly); return median(base.one) }}
	rawAll := &row{name: fmt.Sprintf("W4 raw River, waking all, %d senders", senders), unit: "s", take: func() float64 { return base.all }}
	empty := &row{name: fmt.Sprintf("W4 Tollgate idle, before %d runs are parked", s.parked), unit: "% of a core", mayBeNone: true,
		take: func() float64 { last = ours.park(t, id, s.parked, singly, s.look); return last.empty }}
	return []*row{rawOne, rawAll, empty,
		{name: "W4 idle with them", unit: "% of a core", mayBeNone: true, base: empty, bar: "+ 1 at most", take: func() float64 { return last.idle }},
		{name: "W4 memory that they take", unit: "MB", mayBeNone: true, bar: "< 10", take: func() float64 { return last.memory }},
		{name: "W4 waking one, median", unit: "ms", base: rawOne, bar: "≤ 5", take: func() float64 { return median(last.one) }},
		{name: "W4 waking one, 95 %", unit: "ms", bar: "≤ 25", take: func() float64 { return percentile(last.one, 95) }},
		{name: fmt.Sprintf("W4 waking all, %d senders", senders), unit: "s", base: rawAll, bar: "≤ 6", take: func() float64 { return last.all }},
		{name: "W4 waking all, processor", unit: "ms/run", mayBeNone: true, take: func() float64 { return last.used }},
	}
}

// percentile is the figure that so many in a hundred do not pass.
func percentile(figures []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[(len(sorted)*percent+99)/100-1]
}
