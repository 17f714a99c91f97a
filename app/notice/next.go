package notice

import "time"

// When a notice is told again, and when it is over.
const (
	daily     = 24 * time.Hour
	quiet     = 6 * time.Hour    // without another run that failed
	calm      = 10 * time.Minute // behind the last run, once none is in the trouble any more
	lookAgain = 10 * time.Minute
)

// telling is what is told of a notice.
type telling string

// The ways to tell. Nothing is the zero value.
const (
	tellBegun   telling = "begun"
	tellLasting telling = "lasting" // it goes on, and more runs came into it
	tellOver    telling = "over"    // a digest of more runs than were told
)

// step is what becomes of a notice at a look.
type step struct {
	tell  telling
	ended bool
	look  time.Time // next
}

// next decides what becomes of a notice of whose runs so many are still in the trouble. What
// failed is over when no other run has failed for a while: it stays failed until somebody
// does something, and nobody need be told of that again.
func next(n Notice, still int, now time.Time) step {
	if n.ToldAt == nil {
		return step{tell: tellBegun, look: now.Add(lookAgain)}
	}
	over := still == 0 && now.Sub(n.LastAt) >= calm
	if n.Kind == Failed {
		over = now.Sub(n.LastAt) >= quiet
	}
	grown := n.Runs > n.Told
	switch {
	case over && grown:
		return step{tell: tellOver, ended: true, look: now}
	case over:
		return step{ended: true, look: now}
	case grown && now.Sub(*n.ToldAt) >= daily:
		return step{tell: tellLasting, look: now.Add(lookAgain)}
	}
	return step{look: now.Add(lookAgain)}
}
