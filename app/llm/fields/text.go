package fields

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Clean makes text storable: Postgres takes neither NUL nor broken UTF-8. Each
// is replaced by U+FFFD; the second result tells whether any was.
func Clean(text string) (string, bool) {
	if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		return text, false
	}
	clean := strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(clean, "\x00", "\uFFFD"), true
}

// Cut shortens text to at most limit bytes without splitting a character.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// quote renders text as a JSON string without escaping HTML.
func quote(text string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return []byte(`""`) // a string always encodes
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
