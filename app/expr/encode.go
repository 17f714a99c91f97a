package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// MaxEncoded is the most bytes that EncodeJSON writes. A formula can name the
// same large value many times over, so encoding has to stop by itself.
const MaxEncoded = 64 << 20

// EncodeJSON writes a value as JSON that is the same for the same value: names
// sorted by their bytes, numbers in their own digits, no spaces. Decoding it
// again gives an equal value. Besides decoded values it takes Go integers and
// finite floats. Errors name the place.
func EncodeJSON(v any) ([]byte, error) { return EncodeJSONLimit(v, MaxEncoded) }

// EncodeJSONLimit is EncodeJSON with a bound on the bytes written.
func EncodeJSONLimit(v any, max int) ([]byte, error) {
	e := encoder{max: max}
	if err := e.value(v, 0); err != nil {
		return nil, err
	}
	return e.out, nil
}

type encoder struct {
	out []byte
	max int
}

// The size is looked at before every value, not at the end: a formula can make a small
// tree of shared parts that would be larger than memory once written out.
func (e *encoder) value(v any, depth int) error {
	if len(e.out) > e.max {
		return fmt.Errorf("the value takes more than %d bytes as JSON", e.max)
	}
	switch v := v.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case string:
		return e.text(v)
	case json.Number:
		return e.digits(v)
	case int:
		e.out = strconv.AppendInt(e.out, int64(v), 10)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case uint64:
		e.out = strconv.AppendUint(e.out, v, 10)
	case float64:
		return e.float(v)
	case []any:
		return e.list(v, depth)
	case map[string]any:
		return e.record(v, depth)
	default:
		return fmt.Errorf("a %T cannot be written as JSON", v)
	}
	return nil
}

// Numbers are written in the digits they came in; only their grammar is looked at,
// since Go code can put anything into a json.Number.
func (e *encoder) digits(n json.Number) error {
	if len(n) == 0 || numberLength([]byte(n)) != len(n) {
		return fmt.Errorf("%q is not a number as JSON writes it", clip(Plain(string(n)), 40))
	}
	e.out = append(e.out, n...)
	return nil
}

// Floats come from Go code alone. The shortest digits that give the float back are
// written; what JSON has no digits for is refused, never made null in silence.
func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("JSON has no number for %v", f)
	}
	e.out = strconv.AppendFloat(e.out, f, 'g', -1, 64)
	return nil
}

func (e *encoder) list(list []any, depth int) error {
	if depth >= MaxDepth {
		return fmt.Errorf("lists and records are nested deeper than %d levels", MaxDepth)
	}
	e.out = append(e.out, '[')
	for i, v := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v, depth+1); err != nil {
			return within("["+strconv.Itoa(i)+"]", depth, err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// Names are sorted by bytes, which is what makes digests of equal values equal.
func (e *encoder) record(m map[string]any, depth int) error {
	if depth >= MaxDepth {
		return fmt.Errorf("lists and records are nested deeper than %d levels", MaxDepth)
	}
	e.out = append(e.out, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.text(name); err != nil {
			return err
		}
		e.out = append(e.out, ':')
		if err := e.value(m[name], depth+1); err != nil {
			return within(clip(Plain(name), 60), depth, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// within adds the place to an error, but for the outer levels only: a sentence
// with hundreds of steps in it helps nobody.
func within(part string, depth int, err error) error {
	if depth >= maxPathParts {
		return err
	}
	return fmt.Errorf("in %s: %w", part, err)
}

const hexDigits = "0123456789abcdef"

// Only what JSON demands is escaped, so that text stays readable where it is stored.
// A page that embeds JSON has to escape for its own surroundings.
func (e *encoder) text(s string) error {
	e.out = append(e.out, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			e.out = appendASCII(e.out, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			half, ok := halfAt(s[i:])
			if !ok {
				return fmt.Errorf("a text is not valid UTF-8 at byte %d", i)
			}
			e.out = append(e.out, '\\', 'u', 'd', hexDigits[half>>8&15], hexDigits[half>>4&15], hexDigits[half&15])
			i += 3
			continue
		}
		e.out = append(e.out, s[i:i+size]...)
		i += size
	}
	e.out = append(e.out, '"')
	return nil
}

func appendASCII(out []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(out, '\\', c)
	case c >= 0x20:
		return append(out, c)
	case c == '\n':
		return append(out, '\\', 'n')
	case c == '\r':
		return append(out, '\\', 'r')
	case c == '\t':
		return append(out, '\\', 't')
	}
	return append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
