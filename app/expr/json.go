package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how deep lists and records may be nested in a value.
const MaxDepth = 500

// BadJSON is the error of a JSON text that cannot be taken. Offset is the byte
// at which reading stopped; Path is the place inside the value, such as
// "items[3].name", empty at the top.
type BadJSON struct {
	Offset int
	Path   string
	Reason string
}

// Error names the reason and the place.
func (e *BadJSON) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s (at byte %d)", e.Reason, e.Offset)
	}
	return fmt.Sprintf("%s (at %s, byte %d)", e.Reason, e.Path, e.Offset)
}

// DecodeJSON reads one JSON text exactly: numbers keep their digits and lone
// halves of character pairs survive. The caller bounds the length of data. The
// error is a *BadJSON.
func DecodeJSON(data []byte) (any, error) {
	d := decoder{data: data}
	d.space()
	v, err := d.value(0)
	if err != nil {
		return nil, d.at(err)
	}
	d.space()
	if d.pos < len(data) {
		return nil, d.at(errors.New("there is more text after the end of the JSON"))
	}
	return v, nil
}

// DecodeJSONLimit is DecodeJSON for a text from outside of at most max bytes.
func DecodeJSONLimit(data []byte, max int) (any, error) {
	if len(data) > max {
		return nil, &BadJSON{Reason: fmt.Sprintf("the JSON has %d bytes; at most %d are taken", len(data), max)}
	}
	return DecodeJSON(data)
}

type decoder struct {
	data []byte
	pos  int
	path []string // innermost last
}

// maxPathParts bounds the place named in an error, which hostile input controls.
const maxPathParts = 12

// The place is cut to a few parts: hostile input chooses its names and depth.
func (d *decoder) at(err error) *BadJSON {
	path := ""
	for i, part := range d.path {
		if i == maxPathParts {
			path += "…"
			break
		}
		path += part
	}
	if len(path) > 0 && path[0] == '.' {
		path = path[1:]
	}
	return &BadJSON{Offset: d.pos, Path: Plain(path), Reason: err.Error()}
}

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek is the next byte, or 0 at the end; NUL itself is valid nowhere in JSON.
func (d *decoder) peek() byte {
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

// Recursion is bounded here and nowhere else: every list and record passes through.
func (d *decoder) value(depth int) (any, error) {
	switch c := d.peek(); {
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			return nil, fmt.Errorf("lists and records are nested deeper than %d levels", MaxDepth)
		}
		if c == '{' {
			return d.record(depth + 1)
		}
		return d.list(depth + 1)
	case c == '"':
		return d.text()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	default:
		return d.word()
	}
}

func (d *decoder) word() (any, error) {
	rest := d.data[d.pos:]
	for word, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			d.pos += len(word)
			return v, nil
		}
	}
	return nil, d.unexpected()
}

// Broken UTF-8 is told apart from a wrong character, as the fix is another one.
func (d *decoder) unexpected() error {
	if d.pos >= len(d.data) {
		return errors.New("the JSON ends too early")
	}
	r, size := utf8.DecodeRune(d.data[d.pos:])
	if r == utf8.RuneError && size == 1 {
		return errors.New("the text is not valid UTF-8")
	}
	return fmt.Errorf("unexpected %q in the JSON", r)
}

func (d *decoder) list(depth int) (any, error) {
	d.pos++
	out := []any{}
	d.space()
	if d.peek() == ']' {
		d.pos++
		return out, nil
	}
	for {
		d.path = append(d.path, "["+strconv.Itoa(len(out))+"]")
		d.space()
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		out = append(out, v)
		if done, err := d.next(']'); done || err != nil {
			return out, err
		}
	}
}

// next reads what follows an entry: a comma, or end, which finishes the list.
func (d *decoder) next(end byte) (bool, error) {
	d.space()
	switch d.peek() {
	case ',':
		d.pos++
		return false, nil
	case end:
		d.pos++
		return true, nil
	}
	return false, d.unexpected()
}

func (d *decoder) record(depth int) (any, error) {
	d.pos++
	out := map[string]any{}
	d.space()
	if d.peek() == '}' {
		d.pos++
		return out, nil
	}
	for {
		d.space()
		if err := d.entry(out, depth); err != nil {
			return nil, err
		}
		if done, err := d.next('}'); done || err != nil {
			return out, err
		}
	}
}

// A name that comes twice is refused rather than the last one taken: two readers of
// the same bytes must never see two different values.
func (d *decoder) entry(out map[string]any, depth int) error {
	if d.peek() != '"' {
		return d.unexpected()
	}
	name, err := d.text()
	if err != nil {
		return err
	}
	if _, twice := out[name]; twice {
		return fmt.Errorf("the name %q appears twice in one record", clip(Plain(name), 60))
	}
	d.space()
	if d.peek() != ':' {
		return d.unexpected()
	}
	d.pos++
	d.space()
	d.path = append(d.path, "."+clip(name, 60))
	v, err := d.value(depth)
	if err != nil {
		return err
	}
	d.path = d.path[:len(d.path)-1]
	out[name] = v
	return nil
}

// number takes the digits as they stand. Any length is kept; only a formula that
// computes with a number bounds it.
func (d *decoder) number() (any, error) {
	n := numberLength(d.data[d.pos:])
	if n == 0 {
		d.pos++
		return nil, errors.New("this is not a number as JSON writes it")
	}
	out := json.Number(d.data[d.pos : d.pos+n])
	d.pos += n
	return out, nil
}

// numberLength is the length of the JSON number that s begins with; 0 where it
// begins with none. A leading zero ends a number, as the grammar says.
func numberLength(s []byte) int {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := digits(s[i:])
	if whole == 0 {
		return 0
	}
	if s[i] == '0' {
		whole = 1
	}
	i += whole
	if i < len(s) && s[i] == '.' {
		n := digits(s[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		n := digits(s[j:])
		if n == 0 {
			return 0
		}
		i = j + n
	}
	return i
}

func digits(s []byte) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
