package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Plain gives s as it can be shown anywhere: NUL, lone halves of character pairs
// and other bytes that are not text become U+FFFD.
func Plain(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if _, half := halfAt(s[i:]); half {
			size = 3
		}
		if r == 0 {
			r = utf8.RuneError
		}
		out.WriteRune(r)
		i += size
	}
	return out.String()
}

// CheckText refuses what a text column of the database does not take, with a
// sentence that says which character it is.
func CheckText(s string) error {
	for i, r := range s {
		if r == 0 {
			return fmt.Errorf("character %d is NUL, which text must not hold", 1+utf8.RuneCountInString(s[:i]))
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
			return fmt.Errorf("character %d is half a character or broken UTF-8", 1+utf8.RuneCountInString(s[:i]))
		}
	}
	return nil
}

// Preview is the beginning of data as text, at most limit bytes, cut between
// whole characters, with an ellipsis where something was left out.
func Preview(data []byte, limit int) string {
	cut := min(max(limit, 0), len(data))
	whole := cut == len(data)
	// Step back over the bytes of a character that the cut would split.
	for back := 0; !whole && cut > 0 && back < utf8.UTFMax-1 && !utf8.RuneStart(data[cut]); back++ {
		cut--
	}
	out := Plain(string(data[:cut]))
	if whole {
		return out
	}
	return out + "…"
}

// clip is the beginning of s, at most limit bytes, with an ellipsis where cut.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return Preview([]byte(s), limit)
}
