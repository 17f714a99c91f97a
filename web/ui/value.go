package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ShownAtMost is how many bytes of one value a page shows; the rest can be
// downloaded.
const ShownAtMost = 20 << 10

// Cut shortens text to at most n bytes without splitting a character, and
// tells whether anything was left out.
func Cut(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}

// Limits of a value shown as a table. Beyond them it is shown as text.
const (
	deepestTable = 3
	mostEntries  = 100
	mostColumns  = 6
	largestTable = 256 << 10
)

// shapeOf is how a part of a value is shown.
type shapeOf int

const (
	asText shapeOf = iota
	asNothing
	asPairs
	asTable
	asList
	asRaw
)

// node is a JSON value prepared for showing, its fields in their own order.
type node struct {
	Shape   shapeOf
	Text    string
	Number  bool
	Keys    []string // of pairs, or the columns of a table
	Items   []node   // values of pairs, elements of a list
	Rows    [][]node // of a table
	Omitted int      // entries left out
}

// errShape says that a value does not have the shape that was tried.
var errShape = errors.New("value has another shape")

// parse prepares a value. What is no JSON, too large or too deep is text.
func parse(data []byte) node {
	if len(data) > largestTable || !json.Valid(data) {
		return node{Shape: asRaw, Text: string(data)}
	}
	return prepare(data, 0)
}

func prepare(data []byte, depth int) node {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return node{Shape: asNothing, Text: "empty"}
	}
	if depth > deepestTable && (data[0] == '{' || data[0] == '[') {
		return node{Shape: asRaw, Text: string(data)}
	}
	switch data[0] {
	case '{':
		return pairsNode(data, depth)
	case '[':
		return listNode(data, depth)
	case '"':
		return textNode(data)
	case 't':
		return node{Text: "Yes"}
	case 'f':
		return node{Text: "No"}
	case 'n':
		return node{Shape: asNothing, Text: "empty"}
	default:
		// Numbers are shown digit for digit: 2^53+1 stays what it is.
		return node{Text: string(data), Number: true}
	}
}

// numeric tells whether a column of a table holds numbers only.
func (n node) numeric(column int) bool {
	for _, row := range n.Rows {
		if !row[column].Number {
			return false
		}
	}
	return len(n.Rows) > 0
}

// deeper tells whether JSON nests deeper than a limit. It looks at brackets
// outside of texts only, so it takes valid JSON.
func deeper(data []byte, limit int) bool {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func textNode(data []byte) node {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return node{Shape: asRaw, Text: string(data)}
	}
	if s == "" {
		return node{Shape: asNothing, Text: "empty text"}
	}
	return node{Text: s}
}

func pairsNode(data []byte, depth int) node {
	keys, values, omitted, err := entries(data)
	if err != nil {
		return node{Shape: asRaw, Text: string(data)}
	}
	if len(keys) == 0 {
		return node{Shape: asNothing, Text: "no fields"}
	}
	n := node{Shape: asPairs, Keys: keys, Omitted: omitted}
	for _, v := range values {
		n.Items = append(n.Items, prepare(v, depth+1))
	}
	return n
}

func listNode(data []byte, depth int) node {
	elements, omitted, err := elementsOf(data)
	if err != nil {
		return node{Shape: asRaw, Text: string(data)}
	}
	if len(elements) == 0 {
		return node{Shape: asNothing, Text: "empty list"}
	}
	if n, err := tableNode(elements, depth); err == nil {
		n.Omitted = omitted
		return n
	}
	n := node{Shape: asList, Omitted: omitted}
	for _, e := range elements {
		n.Items = append(n.Items, prepare(e, depth+1))
	}
	return n
}

// tableNode makes a table of records that have the same few fields.
func tableNode(elements []json.RawMessage, depth int) (node, error) {
	n := node{Shape: asTable}
	for i, e := range elements {
		if trimmed := bytes.TrimSpace(e); len(trimmed) == 0 || trimmed[0] != '{' {
			return node{}, errShape
		}
		keys, values, _, err := entries(e)
		if err != nil {
			return node{}, err
		}
		if i == 0 {
			n.Keys = keys
		}
		if len(keys) == 0 || len(keys) > mostColumns || strings.Join(keys, "\x00") != strings.Join(n.Keys, "\x00") {
			return node{}, errShape
		}
		row := make([]node, len(values))
		for j, v := range values {
			row[j] = prepare(v, depth+1)
		}
		n.Rows = append(n.Rows, row)
	}
	return n, nil
}

// entries reads the fields of an object in their order.
func entries(data []byte) (keys []string, values []json.RawMessage, omitted int, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, nil, 0, fmt.Errorf("open object: %w", err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, nil, 0, fmt.Errorf("read field name: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, 0, fmt.Errorf("read field value: %w", err)
		}
		if len(keys) == mostEntries {
			omitted++
			continue
		}
		name, _ := key.(string)
		keys, values = append(keys, name), append(values, value)
	}
	return keys, values, omitted, nil
}

// elementsOf reads the elements of an array.
func elementsOf(data []byte) (elements []json.RawMessage, omitted int, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, 0, fmt.Errorf("open list: %w", err)
	}
	for dec.More() {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, fmt.Errorf("read element: %w", err)
		}
		if len(elements) == mostEntries {
			omitted++
			continue
		}
		elements = append(elements, value)
	}
	return elements, omitted, nil
}
