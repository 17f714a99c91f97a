package web

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"tollgate/web/ui"
)

// How much of a value stands on one line.
const (
	shortParts = 3
	mostParts  = 12 // that are looked at
	shortPart  = 40
	shortLine  = 90
)

// shortValue tells a JSON value, of which there may be only the beginning, on one line:
// of a record its first few values, of a list how long it is.
func shortValue(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return ""
	}
	switch value[0] {
	case '{':
		return firstOf(strings.Join(tellingParts(value), " · "), shortLine)
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return "A list"
		}
		return ui.Plural(int64(len(list)), "entry", "entries")
	}
	return firstOf(shortPartOf(value), shortLine)
}

// tellingParts are the parts of a record that people know it by: two texts first, such as
// a number and a name, then figures. The rows of a table have their columns in the order
// of the alphabet, which says nothing.
func tellingParts(record []byte) []string {
	var names, rest []string
	eachPart(record, func(_ string, part json.RawMessage) bool {
		words := shortPartOf(part)
		switch {
		case words == "":
		case part[0] == '"' && len(names) < 2 && strings.ContainsFunc(words, unicode.IsLetter):
			names = append(names, words)
		default:
			rest = append(rest, words)
		}
		return len(names)+len(rest) < mostParts
	})
	parts := append(names, rest...)
	return parts[:min(len(parts), shortParts)]
}

// shortPartOf tells a part that is a text, a number, yes or no, or money; other parts
// need more room than a line has.
func shortPartOf(part json.RawMessage) string {
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(part))
	decoder.UseNumber()
	if decoder.Decode(&decoded) != nil {
		return ""
	}
	switch value := decoded.(type) {
	case string:
		return isolated(firstOf(strings.Join(strings.Fields(value), " "), shortPart))
	case json.Number:
		return value.String()
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case map[string]any:
		amount, isAmount := value["amount"].(json.Number)
		currency, isCurrency := value["currency"].(string)
		if isAmount && isCurrency {
			return ui.Money(amount.String(), currency)
		}
	}
	return ""
}

// isolated keeps text that runs from right to left from turning its neighbours around.
func isolated(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}) {
		return "\u2068" + text + "\u2069"
	}
	return text
}

// eachPart goes through the parts of a record in their order until fn has enough, or
// until the piece of it that is at hand ends.
func eachPart(record []byte, fn func(name string, part json.RawMessage) bool) {
	decoder := json.NewDecoder(bytes.NewReader(record))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return
		}
		var part json.RawMessage
		if decoder.Decode(&part) != nil {
			return
		}
		if text, ok := name.(string); !ok || !fn(text, part) {
			return
		}
	}
}

// partOfRecord is one part of a record, of which there may be only the beginning.
func partOfRecord(record []byte, name string) json.RawMessage {
	var found json.RawMessage
	eachPart(record, func(each string, part json.RawMessage) bool {
		if each == name {
			found = part
		}
		return found == nil
	})
	return found
}

// compact is JSON without white space, for comparing; "" for what is none.
func compact(value []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return ""
	}
	return out.String()
}
