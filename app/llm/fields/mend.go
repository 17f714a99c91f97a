package fields

import (
	"fmt"
	"strings"
)

// mend writes what models often get wrong in JSON as JSON wants it, and says what that
// was. Nothing else changes.
func mend(text string) (string, []string) {
	var repairs []string
	escaped := escapeControls(text)
	if escaped != text {
		repairs = append(repairs, "line breaks inside a text were not written as JSON wants them")
	}
	quoted := quoteNoNumbers(escaped)
	if quoted != escaped {
		repairs = append(repairs, "a figure such as NaN stood where JSON wants a number")
	}
	return quoted, repairs
}

// escapeControls writes raw control characters inside JSON strings as escapes, a
// frequent slip of models with long texts.
func escapeControls(text string) string {
	var out strings.Builder
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			out.WriteByte(c)
			i++
			c = text[i]
		case c == '"':
			inString = !inString
		case inString && c < 0x20:
			fmt.Fprintf(&out, `\u%04x`, c)
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// noNumbers are what programs write for results that are no numbers, longest first.
var noNumbers = []string{"-Infinity", "Infinity", "NaN"}

// isNoNumber tells whether a value is one of noNumbers, as quoteNoNumbers leaves it.
func isNoNumber(v any) bool {
	text, ok := v.(string)
	return ok && (text == "NaN" || text == "Infinity" || text == "-Infinity")
}

// quoteNoNumbers writes such words, where they stand outside JSON strings, as strings:
// the object can then be read, and the field be named that has no number.
func quoteNoNumbers(text string) string {
	var out strings.Builder
	inString := false
	for i := 0; i < len(text); {
		if word := noNumberAt(text[i:]); word != "" && !inString {
			out.WriteString(`"` + word + `"`)
			i += len(word)
			continue
		}
		if inString && text[i] == '\\' && i+1 < len(text) {
			out.WriteByte(text[i])
			i++
		} else if text[i] == '"' {
			inString = !inString
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

func noNumberAt(text string) string {
	if text[0] != '-' && text[0] != 'I' && text[0] != 'N' {
		return ""
	}
	for _, word := range noNumbers {
		if strings.HasPrefix(text, word) {
			return word
		}
	}
	return ""
}
