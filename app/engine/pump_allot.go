package engine

import (
	"cmp"
	"slices"
)

// allotment is what a pass of the pump gives, and who is left waiting.
type allotment struct {
	chosen  []ask
	crowded []ask // not set aside before: their window is full
	wanting []ask // they wait for a slot of the installation
	held    []ask // they wait for their own tenant's quota
	inside  []ask // they wait for their window, set aside before or now
}

// allot gives the free slots away: to each tenant one in turn, from the one that was
// not served for longest, within each tenant's quota and each list's window. The asks
// come in the order of tenants, and each tenant's in its own order.
func allot(asks []ask) allotment {
	var given allotment
	if len(asks) == 0 {
		return given
	}
	var queues [][]ask
	for _, own := range byTenant(asks) {
		queues = append(queues, given.eligible(own))
	}
	free := asks[0].Free
	for turn := 0; ; turn++ {
		any := false
		for _, queue := range queues {
			if turn >= len(queue) {
				continue
			}
			any = true
			if free > 0 {
				queue[turn].Flight += turn
				given.chosen, free = append(given.chosen, queue[turn]), free-1
			} else {
				given.wanting = append(given.wanting, queue[turn])
			}
		}
		if !any {
			return given
		}
	}
}

// byTenant cuts the asks where the tenant changes.
func byTenant(asks []ask) [][]ask {
	var parts [][]ask
	for len(asks) > 0 {
		n := slices.IndexFunc(asks, func(a ask) bool { return a.Tenant != asks[0].Tenant })
		if n < 0 {
			n = len(asks)
		}
		parts, asks = append(parts, asks[:n]), asks[n:]
	}
	return parts
}

// eligible keeps of one tenant's asks those that its windows and its quota allow.
func (given *allotment) eligible(own []ask) []ask {
	fits := windowsAllow(own)
	var queue []ask
	for _, a := range own {
		switch {
		case !fits[a.Slice]:
			given.inside = append(given.inside, a)
			if !a.Crowded {
				given.crowded = append(given.crowded, a)
			}
		case len(queue) >= a.Room:
			given.held = append(given.held, a)
		default:
			queue = append(queue, a)
		}
	}
	return queue
}

// windowsAllow tells which asks their windows have room for. What was woken goes first:
// it has begun before, and the other slices of its window take on new items.
func windowsAllow(own []ask) map[SliceID]bool {
	fits, left := map[SliceID]bool{}, map[StepRunID]int{}
	ordered := slices.Clone(own)
	slices.SortStableFunc(ordered, func(x, y ask) int { return cmp.Compare(rankInWindow(x), rankInWindow(y)) })
	for _, a := range ordered {
		if a.Window.IsZero() {
			fits[a.Slice] = true
			continue
		}
		if _, known := left[a.Window]; !known {
			left[a.Window] = a.WindowRoom
		}
		fits[a.Slice] = left[a.Window] > 0
		left[a.Window]--
	}
	return fits
}

func rankInWindow(a ask) int {
	if a.Woken {
		return 0
	}
	return 1
}

// queues are the River queues that the chosen slices' jobs are in.
func (given allotment) queues() []string {
	var queues []string
	for _, a := range given.chosen {
		if queue := Queue(a.Semantics); !slices.Contains(queues, queue) {
			queues = append(queues, queue)
		}
	}
	return queues
}
