package engine

import (
	"context"
	"time"
)

// Pauses of the pump. After a pass it lets others in while more becomes ready; where
// slices wait and there is no room for them, looks become rarer, since whoever makes
// room nudges.
const (
	pumpPause   = 2 * time.Millisecond
	longestLook = 8 * PumpEvery
)

// pace says when the pump looks again.
type pace struct {
	every, now time.Duration // 0: never by itself
	last       time.Time     // when the pump was last busy
	timer      *time.Timer
}

func newPace(every time.Duration) *pace {
	p := &pace{every: every, now: every, timer: time.NewTimer(every)}
	if every == 0 {
		p.timer.Stop()
	}
	return p
}

func (p *pace) stop() { p.timer.Stop() }

// wait returns when it is time to look, and whether somebody nudged; or not on, when
// ctx has ended.
func (p *pace) wait(ctx context.Context, nudges <-chan struct{}) (nudged, on bool) {
	if pause := pumpPause - time.Since(p.last); pause > 0 {
		select {
		case <-ctx.Done():
			return false, false
		case <-time.After(pause):
		}
	}
	select {
	case <-ctx.Done():
		return false, false
	case <-nudges:
		return true, true
	case <-p.timer.C:
		return false, true
	}
}

// next notes how the look went.
func (p *pace) next(busy, waiting bool) {
	if busy {
		p.last = time.Now()
	}
	if p.every == 0 {
		return
	}
	p.now = p.every
	if waiting && !busy {
		p.now = min(2*p.now, longestLook)
	}
	p.timer.Reset(p.now)
}
