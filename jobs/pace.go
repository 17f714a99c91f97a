package jobs

import (
	"sync"
	"time"

	"tollgate/app/llm"
)

// pace bounds how many calls this process makes at once with one key to one model. There is
// no bound until the provider refuses calls for their number or for want of room; then it
// is cut, and grows again by one with each round of calls that go well.
type pace struct {
	mu       sync.Mutex
	inFlight int
	most     int           // calls at once since the last cut
	bound    float64       // calls at once; 0: none
	cutAt    time.Time     // when the bound was last cut
	until    time.Time     // when the provider may be called again
	tail     time.Time     // when the last of those who were told to wait comes back
	usual    time.Duration // how long a call takes
}

// Bounds of a pace.
const (
	cutTo       = 0.7
	cutPause    = time.Second // calls that were under way together fail together: one cut
	freeBound   = 500         // beyond it there is no need of a bound
	leastUsual  = 100 * time.Millisecond
	longestTail = time.Minute
	rest        = 500 * time.Millisecond
)

// enter takes a place, or says how long to wait before asking again. Those who wait are told
// to come back one after the other.
func (p *pace) enter(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) || p.bound > 0 && float64(p.inFlight) >= max(p.bound, 1) {
		return p.turn(now)
	}
	p.inFlight++
	p.most = max(p.most, p.inFlight)
	return 0
}

// turn is how long until the next place comes free that nobody was promised.
func (p *pace) turn(now time.Time) time.Duration {
	each := max(p.usual, leastUsual)
	if p.bound > 1 {
		each = time.Duration(float64(each) / p.bound)
	}
	from := now
	for _, at := range []time.Time{p.until, p.tail} {
		if at.After(from) {
			from = at
		}
	}
	p.tail = from.Add(each)
	if latest := now.Add(longestTail); p.tail.After(latest) {
		p.tail = latest
	}
	return p.tail.Sub(now)
}

// end is what a call came to, as far as a pace cares.
type end struct {
	answered bool
	took     time.Duration // of a call that was answered
	refused  bool          // for the number of calls, or for want of room
	leave    time.Duration // how long the provider wants to be left alone
}

// left is a place that was given back without a call.
var left = end{}

// leave gives a place back.
func (p *pace) leave(now time.Time, e end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	switch {
	case e.refused:
		if until := now.Add(e.leave); until.After(p.until) {
			p.until = until
		}
		if now.Sub(p.cutAt) < cutPause {
			return
		}
		bore := float64(p.most)
		if p.bound > 0 {
			bore = min(bore, p.bound)
		}
		p.bound, p.cutAt, p.most = max(bore*cutTo, 1), now, p.inFlight
	case e.answered:
		p.usual += (e.took - p.usual) / 8
		p.grow()
	}
}

func (p *pace) grow() {
	if p.bound == 0 {
		return
	}
	p.bound += 1 / p.bound
	if p.bound > freeBound {
		p.bound = 0
	}
}

// endOf reads a call's end.
func endOf(failed bool, fault *llm.Error, took time.Duration) end {
	if !failed {
		return end{answered: true, took: took}
	}
	switch fault.Class {
	case llm.ClassRateLimited:
		return end{refused: true, leave: max(fault.RetryAfter, rest)}
	case llm.ClassOverloaded:
		return end{refused: true, leave: fault.RetryAfter}
	}
	return end{}
}

// paces are those of all keys and models that the process calls.
type paces struct {
	mu   sync.Mutex
	list map[string]*pace
}

func (p *paces) of(name string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.list[name]
	if found == nil {
		if p.list == nil {
			p.list = map[string]*pace{}
		}
		found = &pace{}
		p.list[name] = found
	}
	return found
}
