package engine

import (
	"sync/atomic"
	"time"

	"tollgate/tenants"
)

// waiters are who was left without a slot, or without a worker, in the last pass of this
// process's pump, as numbers that are counted down by the running slices that give way to
// them.
type waiters struct {
	running map[tenants.ID]int           // slices that each tenant's run in
	wanting map[tenants.ID]*atomic.Int64 // for a slot of the installation, or a worker
	held    map[tenants.ID]*atomic.Int64 // for their own tenant's quota
	inside  map[StepRunID]*atomic.Int64  // for their window
}

func newWaiters(left allotment, held taken) *waiters {
	w := &waiters{
		running: held.running,
		wanting: counted(left.wanting, func(a ask) tenants.ID { return a.Tenant }),
		held:    counted(left.held, func(a ask) tenants.ID { return a.Tenant }),
		inside:  counted(left.inside, func(a ask) StepRunID { return a.Window }),
	}
	for tenant, n := range held.waiting() {
		count(w.wanting, tenant, n)
	}
	return w
}

func counted[Key comparable](asks []ask, key func(ask) Key) map[Key]*atomic.Int64 {
	counts := map[Key]*atomic.Int64{}
	for _, a := range asks {
		count(counts, key(a), 1)
	}
	return counts
}

func count[Key comparable](counts map[Key]*atomic.Int64, key Key, n int) {
	if counts[key] == nil {
		counts[key] = &atomic.Int64{}
	}
	counts[key].Add(int64(n))
}

// any tells whether anybody waits.
func (w *waiters) any() bool { return len(w.wanting)+len(w.held)+len(w.inside) > 0 }

// share is what a running slice has had of its slot.
type share struct {
	tenant tenants.ID
	window StepRunID
	steps  int
	time   time.Duration
}

// How long a slice may keep its slot while others wait who have as many slots as its own
// tenant. For a tenant that has fewer, and for what was woken in its own window, it gives
// way behind the next step.
const (
	maxSteps = 50
	maxTime  = time.Second
)

// giveWay tells a running slice whether to give its slot back because somebody waits for
// it. Each who waits is told of once, so that one who waits does not stop a hundred.
func (w *waiters) giveWay(s share) bool {
	if take(w.inside[s.window]) {
		return true
	}
	had := s.steps >= maxSteps || s.time >= maxTime
	for tenant, count := range w.wanting {
		if tenant != s.tenant && (had || w.evens(s.tenant, tenant)) && take(count) {
			return true
		}
	}
	return had && (take(w.held[s.tenant]) || take(w.wanting[s.tenant]))
}

// evens tells that a slot from one tenant to the other makes them more alike. Without
// that, a tenant with one slice would give way at every step to one that always waits.
func (w *waiters) evens(from, to tenants.ID) bool {
	return w.running[to]+1 < w.running[from]
}

func take(count *atomic.Int64) bool {
	return count != nil && count.Add(-1) >= 0
}
