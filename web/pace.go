package web

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// pace limits how often one network may ask for something, in this process. Limits that
// must hold over all processes, such as those on login codes, are in the database.
type pace struct {
	every time.Duration // the long run: one request each
	burst int           // how many may come at once

	mu   sync.Mutex
	next map[string]time.Time // when a network's bucket will be full again
}

// maxPaced bounds what the map holds; beyond it the full buckets are thrown out.
const maxPaced = 100_000

func newPace(every time.Duration, burst int) *pace {
	return &pace{every: every, burst: burst, next: map[string]time.Time{}}
}

// wait takes one request of a network, or returns how long it must wait for the next.
func (p *pace) wait(network string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.next) >= maxPaced {
		for key, full := range p.next {
			if !full.After(now) {
				delete(p.next, key)
			}
		}
	}
	full, wait := spend(p.next[network], now, p.every, p.burst)
	if wait == 0 {
		p.next[network] = full
	}
	return wait
}

// spend is the rule, a leaky bucket kept as one time: full is when the bucket would be
// full again if nothing came, and each request moves it on by every.
func spend(full, now time.Time, every time.Duration, burst int) (time.Time, time.Duration) {
	if full.Before(now) {
		full = now
	}
	next := full.Add(every)
	if wait := next.Sub(now) - every*time.Duration(burst); wait > 0 {
		return full, wait
	}
	return next, 0
}

// checkPace holds back whoever tries links or sends forms faster than people do.
func (v *visit) checkPace() error {
	if v.route.Path == "" || v.reads() && !v.route.bearer() {
		return nil
	}
	if wait := v.s.paces.wait(networkOf(v.clientAddr()), v.s.clock()); wait > 0 {
		return &tooOften{wait: wait}
	}
	return nil
}

// tooOften is errTooOften with the time until the next try.
type tooOften struct{ wait time.Duration }

func (t *tooOften) Error() string        { return errTooOften.Error() }
func (t *tooOften) Is(target error) bool { return target == errTooOften }

// clientAddr is the address of the browser: what the proxy says if there is one, else
// the other end of the connection.
func (v *visit) clientAddr() string {
	if header := v.s.ClientIP; header != "" {
		if said := v.Request().Header.Get(header); said != "" {
			return said
		}
	}
	return v.Request().RemoteAddr
}

// networkOf is an IPv4 address, or the /64 of an IPv6 address, since one household has
// that many.
func networkOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}
