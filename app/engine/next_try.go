package engine

import (
	"time"

	"tollgate/app/pipeline"
)

// Tries and pauses between them where the step says nothing.
const (
	defaultTries = 5
	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

// patience is how long the pauses of a class are that needs others.
type patience struct{ first, longest time.Duration }

// patiences are those of documents that follow rules number 3 or later. A side that is too
// busy gets room to recover, a mail server the minutes for which many turn strangers away,
// and an answer that came out wrong is asked for anew at once: nobody has to recover.
var patiences = map[string]patience{
	"rate_limited": {5 * time.Second, 2 * time.Minute},
	"overloaded":   {5 * time.Second, 2 * time.Minute},
	"mail_trouble": {30 * time.Second, LongestAsked},
	"malformed":    {time.Second, 5 * time.Second},
	"empty":        {time.Second, 5 * time.Second},
}

func pauses(semantics int, class string) (first, longest time.Duration) {
	if p, ok := patiences[class]; ok && semantics >= 3 {
		return p.first, p.longest
	}
	return firstPause, longestPause
}

// LongestAsked is how long another side may ask us to wait; beyond that a step fails.
const LongestAsked = 10 * time.Minute

// nextTry says whether a failed try is followed by another, and after which pause. The
// pauses double; the other side's wish counts where it is longer, within a bound.
func nextTry(semantics int, node *pipeline.Node, attempt int, out outcome) (time.Duration, bool) {
	tries := defaultTries
	first, longest := pauses(semantics, out.failure.Class)
	retryable := out.retryable
	if retry := node.Step.Retry; retry != nil {
		tries = retry.Attempts
		if retry.First != nil {
			first = time.Duration(*retry.First)
		}
		if retry.Longest != nil {
			longest = time.Duration(*retry.Longest)
		} else if semantics >= 3 {
			longest = max(longest, first)
		}
		retryable = retryable && listed(retry.On, out.failure.Class)
	}
	if call := node.HTTP(); call != nil && call.Sends && out.unsure {
		retryable = true // the step says to repeat it, or to look it up, which comes with the next try
		if call.LookUp != nil {
			tries = max(tries, 2)
		}
	}
	if !retryable || attempt >= tries || out.retryAfter > LongestAsked {
		return 0, false
	}
	pause := first
	for n := 1; n < attempt && pause < longest; n++ {
		pause *= 2
	}
	return max(min(pause, longest), out.retryAfter), true
}

func listed(classes []string, class string) bool {
	for _, c := range classes {
		if c == class {
			return true
		}
	}
	return len(classes) == 0
}
