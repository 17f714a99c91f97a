package engine

import (
	"sync/atomic"
	"time"

	"tollgate/tenants"
)

// waiters are who was left without a slot in the last pass of this process's pump, as
// numbers that are counted down by the running slices that give way to them.
type waiters struct {
	wanting map[tenants.ID]*atomic.Int64 // for a slot of the installation
	held    map[tenants.ID]*atomic.Int64 // for their own tenant's quota
	inside  map[StepRunID]*atomic.Int64  // for their window
}

func newWaiters(left allotment) *waiters {
	return &waiters{
		wanting: counted(left.wanting, func(a ask) tenants.ID { return a.Tenant }),
		held:    counted(left.held, func(a ask) tenants.ID { return a.Tenant }),
		inside:  counted(left.inside, func(a ask) StepRunID { return a.Window }),
	}
}

func counted[Key comparable](asks []ask, key func(ask) Key) map[Key]*atomic.Int64 {
	counts := map[Key]*atomic.Int64{}
	for _, a := range asks {
		if counts[key(a)] == nil {
			counts[key(a)] = &atomic.Int64{}
		}
		counts[key(a)].Add(1)
	}
	return counts
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

// How long a slice may keep its slot while others of its own tenant wait. For another
// tenant, and for what was woken in its own window, it gives way behind the next step.
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
	for tenant, count := range w.wanting {
		if tenant != s.tenant && take(count) {
			return true
		}
	}
	if s.steps < maxSteps && s.time < maxTime {
		return false
	}
	return take(w.held[s.tenant]) || take(w.wanting[s.tenant])
}

func take(count *atomic.Int64) bool {
	return count != nil && count.Add(-1) >= 0
}
