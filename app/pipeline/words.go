package pipeline

import (
	"strconv"
	"strings"
	"unicode"
)

// plural writes a count with the right form of its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// oneLine turns control characters and line breaks of any script into spaces, so
// that a name from outside cannot reshape the sentence it is told in.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if breaksLine(r) {
			return ' '
		}
		return r
	}, s)
}

// breaksLine reports characters that names must not hold: controls, line and
// paragraph breaks, and the marks that turn the direction of what follows.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069'
}

// letters writes n, from 0, as a, b, … z, aa, ab, …
func letters(n int) string {
	out := ""
	for n >= 0 {
		out = string(rune('a'+n%26)) + out
		n = n/26 - 1
	}
	return out
}

// quoted lists names in quotes, apart by commas, a few at most.
func quoted(names []string) string {
	const most = 12
	var out []string
	for i, n := range names {
		if i == most {
			out = append(out, "…")
			break
		}
		out = append(out, "“"+n+"”")
	}
	return strings.Join(out, ", ")
}
