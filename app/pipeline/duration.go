package pipeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time, written as people say it: "90s", "15m", "2h",
// "3d", "2w", or several parts as in "1d 12h". A day is always 24 hours.
type Duration time.Duration

// span is one unit of a Duration, the largest first.
type span struct {
	unit   string
	length time.Duration
}

var spans = []span{
	{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
}

// ParseDuration reads a Duration of at least one second and at most MaxRunDays.
func ParseDuration(s string) (Duration, error) {
	var total time.Duration
	rest := strings.TrimSpace(s)
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		if err != nil {
			return 0, badDuration(s)
		}
		length, tail, ok := cutUnit(rest[digits:])
		if !ok || n > int64(maxDuration/length) {
			return 0, badDuration(s)
		}
		total += time.Duration(n) * length
		rest = strings.TrimSpace(tail)
	}
	if total < time.Second || total > maxDuration {
		return 0, badDuration(s)
	}
	return Duration(total), nil
}

const maxDuration = MaxRunDays * 24 * time.Hour

// The input is cut before it is told, as anybody can have typed it.
func badDuration(s string) error {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Errorf("%q is not a time span between 1s and %dd; write one like 90s, 15m, 2h or 3d", s, MaxRunDays)
}

func cutUnit(s string) (time.Duration, string, bool) {
	for _, u := range spans {
		if tail, ok := strings.CutPrefix(s, u.unit); ok {
			return u.length, tail, true
		}
	}
	return 0, "", false
}

// String writes d in the form that ParseDuration reads.
func (d Duration) String() string {
	rest := time.Duration(d)
	var parts []string
	for _, u := range spans {
		if n := rest / u.length; n > 0 {
			parts = append(parts, strconv.FormatInt(int64(n), 10)+u.unit)
			rest -= n * u.length
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
