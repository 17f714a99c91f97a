package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// readLimits reads the headers by which providers tell of their limits: those of
// OpenAI and of servers that speak its format, and Anthropic's. Where input and output
// have limits of their own, the one with less left counts.
func readLimits(header http.Header, now time.Time) Limits {
	var l Limits
	l.Requests = count(header, "X-Ratelimit-Limit-Requests", "Anthropic-Ratelimit-Requests-Limit")
	l.RequestsLeft = count(header, "X-Ratelimit-Remaining-Requests", "Anthropic-Ratelimit-Requests-Remaining")
	l.Tokens = count(header, "X-Ratelimit-Limit-Tokens", "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Limit")
	l.TokensLeft = count(header, "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Remaining")
	for _, name := range []string{
		"X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens",
		"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Reset",
	} {
		l.Reset = max(l.Reset, resetIn(header.Get(name), now))
	}
	return l
}

// count is the first of the headers that holds a count; nil when none does.
func count(header http.Header, names ...string) *int64 {
	for _, name := range names {
		n, err := strconv.ParseInt(strings.TrimSpace(header.Get(name)), 10, 64)
		if err == nil && n >= 0 && n <= maxCount {
			return &n
		}
	}
	return nil
}

// maxReset bounds a reset: limits per day are told in the same headers.
const maxReset = 24 * time.Hour

// resetIn reads the time until a limit is full again: a duration such as 6m0s or 120ms,
// a number of seconds, or an instant.
func resetIn(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if d, err := time.ParseDuration(text); err == nil {
		return min(max(d, 0), maxReset)
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxReset) //nolint:gosec // 31 bits
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return min(max(at.Sub(now), 0), maxReset)
	}
	return 0
}
