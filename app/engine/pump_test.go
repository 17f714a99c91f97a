package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// crowdCounter counts how many calls are under way at once, for each tenant.
type crowdCounter struct {
	mu        sync.Mutex
	now, most map[tenants.ID]int
	made      map[tenants.ID]int
}

func newCrowdCounter() *crowdCounter {
	return &crowdCounter{now: map[tenants.ID]int{}, most: map[tenants.ID]int{}, made: map[tenants.ID]int{}}
}

func (c *crowdCounter) enter(tenant tenants.ID) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[tenant]++
	c.now[tenant]++
	c.most[tenant] = max(c.most[tenant], c.now[tenant])
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now[tenant]--
	}
}

func (c *crowdCounter) mostOf(tenant tenants.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[tenant]
}

func (c *crowdCounter) madeBy(tenant tenants.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[tenant]
}

// taking is a mail caller that takes its time and is counted.
func (c *crowdCounter) taking(long time.Duration) map[pipeline.Kind]engine.Caller {
	return mailCaller(func(ctx context.Context, call engine.Call) engine.Reply {
		defer c.enter(call.Tenant)()
		select {
		case <-time.After(long):
		case <-ctx.Done():
		}
		return engine.Reply{Output: []byte(`{}`)}
	})
}

// as is the house for another tenant.
func (h *house) as(tenant tenants.ID, owner tenants.UserID) *house {
	other := *h
	other.tenant, other.owner = tenant, owner
	return &other
}

func (h *house) quotas(q tenants.Quotas) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error { return tenants.SetQuotas(ctx, tx, q) })
}

// chain is a document of so many mails, one after the other.
func chain(steps int) string {
	list := ""
	for n := range steps {
		if n > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"id": "s%d", "name": "Send %d", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}`, n, n)
	}
	return `{"semantics": 1, "name": "Chain", "input": [{"name": "n", "type": "number"}], "steps": [` + list + `]}`
}

// However many processes pump, no tenant ever has more slots than its quota, and each
// uses all of it.
func TestQuotaOfParallelSlicesIsExact(t *testing.T) {
	t.Parallel()
	counter := newCrowdCounter()
	h := build(t, counter.taking(3*time.Millisecond))
	other := h.as(h.db.Tenant(t))
	h.quotas(tenants.Quotas{ParallelSlices: 3, OpenRuns: 1000})
	other.quotas(tenants.Quotas{ParallelSlices: 5, OpenRuns: 1000})
	var runs []engine.RunID
	for _, one := range []*house{h, other} {
		id := one.publish(chain(4))
		for range 40 {
			runs = append(runs, one.start(id, `{"n": 1}`))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	passes := atomic.Int64{}
	for range 4 { // stand for processes that pump at once
		over.Go(func() {
			for ctx.Err() == nil {
				if _, err := h.engine.PumpOnce(ctx); err == nil {
					passes.Add(1)
				}
			}
		})
	}
	h.work()
	h.work()
	most := map[tenants.ID]int{}
	require.Eventually(t, func() bool {
		for _, tenant := range []tenants.ID{h.tenant, other.tenant} {
			most[tenant] = max(most[tenant], h.count(`SELECT count(*) FROM slices WHERE tenant_id = $1 AND state IN ('dispatched', 'running')`, tenant))
		}
		return h.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`) == 0
	}, time.Minute, 5*time.Millisecond)
	stop()
	over.Wait()
	t.Logf("%d passes for %d runs", passes.Load(), len(runs))
	require.Equal(t, map[tenants.ID]int{h.tenant: 3, other.tenant: 5}, most)
	require.LessOrEqual(t, counter.mostOf(h.tenant), 3)
	require.LessOrEqual(t, counter.mostOf(other.tenant), 5)
	require.Zero(t, h.count(`SELECT count(*) FROM runs WHERE state <> 'completed'`))
}

// Promise 8: one noisy tenant never starves another (S77). A tenant with thousands of
// steps uses every slot there is; when another starts a single run, that begins within a
// second all the same. What counts here is how many of the noisy tenant's steps come
// before, so that a busy machine does not decide: a second is a thousand of them. It holds
// whether more of the noisy tenant's runs wait, or just as many run as there are slots.
func TestPromise8OneNoisyTenantNeverStarvesAnother(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]int{"more runs than slots": 50, "a run in each slot": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const slots, long = 20, 20 * time.Millisecond
			counter := newCrowdCounter()
			h := build(t, counter.taking(long))
			quiet := h.as(h.db.Tenant(t))
			h.quotas(tenants.Quotas{ParallelSlices: 1000, OpenRuns: 1000})
			noisy := h.publish(chain(250))
			h.work()
			for range runs {
				h.start(noisy, `{"n": 1}`)
			}
			require.Eventually(t, func() bool {
				return h.count(`SELECT count(*) FROM slices WHERE state = 'running'`) == slots
			}, 20*time.Second, time.Millisecond, "the tenant does not get the capacity that nobody else wants")
			run := quiet.start(quiet.publish(oneMail), `{"n": 1}`)
			before := counter.madeBy(h.tenant)
			require.Eventually(t, func() bool { return counter.madeBy(quiet.tenant) > 0 }, 20*time.Second, time.Millisecond)
			late := counter.madeBy(h.tenant) - before
			t.Logf("%d steps of the noisy tenant came before", late)
			require.Less(t, late, int(slots*time.Second/long)/2)
			require.Equal(t, engine.RunCompleted, quiet.awaitEnd(run).Run.State)
			require.Positive(t, h.count(`SELECT count(*) FROM runs WHERE tenant_id = $1 AND ended_at IS NULL`, h.tenant), "the noisy tenant was done before")
		})
	}
}

// A process that only serves pages gives slots when it is nudged, so that what is started
// there need not wait for a worker's next look.
func TestNudgeReachesThePumpOfAnyProcess(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	idle := h.engine.NewWorker("idle")
	idle.Slots = 1
	require.NoError(t, idle.Beat(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); h.engine.Pump(ctx, 0) }()
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	require.Eventually(t, func() bool { return h.dispatched(run) }, 5*time.Second, time.Millisecond)
	stop()
	<-over
}

// The quiet of an installation without workers: nothing is dispatched that nobody could
// drive.
func TestNoSlotWithoutAWorker(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(oneMail)
	for range 3 {
		h.start(id, `{"n": 1}`)
	}
	given, err := h.engine.PumpOnce(t.Context())
	require.NoError(t, err)
	require.Zero(t, given)
	idle := h.engine.NewWorker("idle")
	idle.Slots = 1
	require.NoError(t, idle.Beat(t.Context()))
	given, err = h.engine.PumpOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, given, "one slot and one in reserve")
	idle.Drain()
	require.NoError(t, idle.Beat(t.Context()))
	given, err = h.engine.PumpOnce(t.Context())
	require.NoError(t, err)
	require.Zero(t, given, "a worker that stops takes no more")
}

// A list's window is exact: also where items wait for people, leave the window, and come
// back all at once, never more than "at once" of them are worked on.
func TestWindowOfAListIsExact(t *testing.T) {
	t.Parallel()
	const items, atOnce = 9, 2
	counter := newCrowdCounter()
	h := build(t, counter.taking(10*time.Millisecond))
	h.work()
	mail := func(id string) string {
		return `{"id": "` + id + `", "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "{{ item }}", "body": "Hello."}}`
	}
	run := h.start(h.publish(fmt.Sprintf(`{"semantics": 2, "name": "Window", "input": [{"name": "n", "type": "list", "of": {"type": "number"}}], "steps": [
		{"id": "all", "name": "All", "kind": "each", "with": {"items": "input.n", "at_once": %d, "steps": [%s,
			{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]}}, %s]}}]}`,
		atOnce, mail("before"), mail("after"))), `{"n": [1,2,3,4,5,6,7,8,9]}`)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM waits WHERE state = 'open' AND kind = 'review'`) == items
	}, 30*time.Second, 5*time.Millisecond, "items that wait for people do not leave the window")
	h.answerAll()
	most := 0
	require.Eventually(t, func() bool {
		most = max(most, h.count(`SELECT count(*) FROM slices WHERE window_id IS NOT NULL AND state IN ('dispatched', 'running')`))
		return h.progress(run).Run.State.Final()
	}, 30*time.Second, 2*time.Millisecond)
	require.Equal(t, engine.RunCompleted, h.progress(run).Run.State)
	require.LessOrEqual(t, most, atOnce)
	require.LessOrEqual(t, counter.mostOf(h.tenant), atOnce)
	require.Equal(t, 2*items, counter.madeBy(h.tenant))
}
