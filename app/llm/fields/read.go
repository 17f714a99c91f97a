package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxAnswerDepth bounds lists and objects within each other. Our own walker
	// recurses, and a stack that overflows ends the whole process.
	maxAnswerDepth = 100
	// maxObjects bounds how many objects are looked at in one answer.
	maxObjects = 64
)

// Read finds the object that was asked for in an answer and fits it to the
// schema. Around the object there may be fences, prose, thoughts and further
// brackets; it is found by parsing, never by cutting text at marks, since any mark
// may also stand inside a value. Two different objects that both fit are an error:
// guessing is not ours.
func Read(text string, schema *Schema) (json.RawMessage, []string, error) {
	objects, repairs, err := findObjects(withoutThoughts(text))
	if err != nil {
		return nil, nil, err
	}
	var found *fitter
	var misfit error
	for _, object := range objects {
		fit := &fitter{}
		err := fit.value(schema, object, "")
		switch {
		case err != nil && misfit == nil:
			misfit = err
		case err != nil:
		case found == nil:
			found = fit
		case !bytes.Equal(found.buf.Bytes(), fit.buf.Bytes()):
			return nil, nil, errors.New("it holds two different results, and it is not clear which one counts")
		}
	}
	if found == nil {
		return nil, nil, misfit
	}
	return found.buf.Bytes(), append(repairs, found.repairs...), nil
}

// withoutThoughts drops a leading block of thoughts, which some servers leave in
// the text and which may hold drafts of the object.
func withoutThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !ok {
		return text
	}
	if _, after, closed := strings.Cut(rest, "</think>"); closed {
		return after
	}
	return text
}

// findObjects parses the outermost objects of a text in order; at least one, or an
// error that says what is wrong. Empty ones count only when there is no other.
func findObjects(text string) ([]map[string]any, []string, error) {
	var repairs []string
	if inner, ok := quoted(text); ok {
		text, repairs = inner, append(repairs, "the answer was wrapped in quotation marks")
	}
	var objects []map[string]any
	empty := false
	at := nextObject(text, 0)
	for looked := 0; at >= 0 && looked < maxObjects; looked++ {
		object, length, err := parseObject(text[at:])
		if err != nil {
			mended, how := mend(text[at:])
			if len(how) == 0 {
				return nil, nil, err
			}
			if object, length, err = parseObject(mended); err != nil {
				return nil, nil, err
			}
			text, at, repairs = mended, 0, append(repairs, how...)
		}
		if len(object) == 0 {
			empty = true
		} else {
			objects = append(objects, object)
		}
		at = nextObject(text, at+length)
	}
	if len(objects) == 0 && empty {
		objects = append(objects, map[string]any{})
	}
	if len(objects) == 0 {
		return nil, nil, errors.New("it holds no JSON object with the fields that were asked for")
	}
	return objects, repairs, nil
}

// quoted undoes an answer that is a JSON string holding the object.
func quoted(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	var inner string
	if json.Unmarshal([]byte(text), &inner) != nil {
		return "", false
	}
	return inner, true
}

// nextObject finds the next place at or after from where an object begins: a brace
// followed by a key and a colon, or by its closing brace. Braces of prose, as in
// "{name}", are passed over. It looks at each byte a bounded number of times: a
// key's text is looked through only up to its closing mark.
func nextObject(text string, from int) int {
	for from < len(text) {
		at := strings.IndexByte(text[from:], '{')
		if at < 0 {
			return -1
		}
		from += at
		if beginsObject(text[from:]) {
			return from
		}
		from++
	}
	return -1
}

func beginsObject(text string) bool {
	rest := strings.TrimLeft(text[1:], " \t\r\n")
	if strings.HasPrefix(rest, "}") {
		return true
	}
	if !strings.HasPrefix(rest, `"`) {
		return false
	}
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return strings.HasPrefix(strings.TrimLeft(rest[i+1:], " \t\r\n"), ":")
		}
	}
	return false
}

// parseObject reads one object at the start of text and tells its length. Once an
// object has begun it must also end: what lies inside a broken one is never taken
// for the whole.
func parseObject(text string) (map[string]any, int, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	value, err := readValue(dec, 0)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, errors.New("its JSON ends in the middle")
	case err != nil:
		return nil, 0, fmt.Errorf("its JSON is broken: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, 0, errors.New("its JSON is not an object")
	}
	return object, int(dec.InputOffset()), nil
}

// readValue reads one value with bounded depth. A key that stands twice is an
// error: which of the two is meant cannot be known.
func readValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth >= maxAnswerDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxAnswerDepth)
	}
	if open == '[' {
		return readList(dec, depth)
	}
	return readObject(dec, depth)
}

func readList(dec *json.Decoder, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		item, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := dec.Token() // the closing bracket
	return list, err
}

func readObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, errors.New("a key is not a text")
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("the key %q stands twice", Cut(key, 60))
		}
		if object[key], err = readValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token() // the closing brace
	return object, err
}
