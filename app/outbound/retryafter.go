package outbound

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds RetryAfter. Whether to wait that long is the engine's
// choice; the bound keeps a date in the year 9999 from overflowing anything.
const MaxRetryAfter = 30 * 24 * time.Hour

// atOnce stands for "no need to wait", since zero means "nothing was said".
const atOnce = time.Millisecond

// RetryAfter reads how long the other side asks us to wait: milliseconds in the header
// some of them send, else the standard header as seconds or as a date. Zero means
// that nothing usable was said.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if wait := waitNumber(header.Get("Retry-After-Ms"), time.Millisecond); wait > 0 {
		return wait
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	if wait := waitNumber(text, time.Second); wait > 0 {
		return wait
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return clampWait(date.Sub(now))
}

// waitNumber reads a count of units; 0 when it is none or negative. Fractions are
// seen in the wild although the standard has none.
func waitNumber(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n != n || n < 0 {
		return 0
	}
	if n >= float64(MaxRetryAfter/unit) {
		return MaxRetryAfter
	}
	return clampWait(time.Duration(n * float64(unit)))
}

func clampWait(wait time.Duration) time.Duration {
	return min(max(wait, atOnce), MaxRetryAfter)
}
