package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	yaml "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"tollgate/app/expr"
)

// maxYAML bounds a document written as YAML, in bytes; as JSON it may be larger.
const maxYAML = 512 << 10

// yamlAsJSON reads YAML that says no more than JSON can.
func yamlAsJSON(text string) ([]byte, *lineIndex, []TextProblem) {
	switch {
	case len(text) > maxYAML:
		return nil, nil, textProblem(0, "As YAML a pipeline takes at most %d bytes. Write it as JSON.", maxYAML)
	case tooNested(text):
		return nil, nil, textProblem(0, "Brackets are nested too deeply.")
	}
	file, err := yaml.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, nil, yamlProblem(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, nil, textProblem(1, "Write one document: entries such as “name: …”.")
	}
	r := yamlReader{index: newLineIndex()}
	v := r.value(file.Docs[0].Body, "", 0)
	if r.problems != nil {
		return nil, nil, r.problems
	}
	data, err := expr.EncodeJSON(v)
	if err != nil {
		return nil, nil, textProblem(0, "This cannot be read: %s.", err.Error())
	}
	return data, r.index, nil
}

// tooNested counts brackets before the parser, which would follow them all.
func tooNested(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > 200 {
			return true
		}
	}
	return false
}

var yamlPlace = regexp.MustCompile(`^\[(\d+):\d+\] ([^\n]*)`)

// yamlProblem takes the line and the first sentence out of the parser's error.
func yamlProblem(err error) []TextProblem {
	found := yamlPlace.FindStringSubmatch(err.Error())
	if found == nil {
		return textProblem(0, "This cannot be read as YAML. Check the indentation and the colons.")
	}
	line, _ := strconv.Atoi(found[1])
	return textProblem(line, "This cannot be read as YAML: %s.", shown(found[2]))
}

type yamlReader struct {
	index    *lineIndex
	problems []TextProblem
}

func (r *yamlReader) fail(n ast.Node, says string) any {
	if r.problems == nil {
		r.problems = textProblem(lineOf(n), "%s", says)
	}
	return nil
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

var plainJSONNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// value turns a node into a value, numbers in the digits in which they are written.
func (r *yamlReader) value(n ast.Node, place string, depth int) any {
	if depth > 200 {
		return r.fail(n, "The text is nested too deeply here.")
	}
	text := ""
	if s, ok := n.(*ast.StringNode); ok {
		text = s.Value
	}
	r.index.note(place, lineOf(n), text)
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.record(n.Values, place, depth)
	case *ast.MappingValueNode:
		return r.record([]*ast.MappingValueNode{n}, place, depth)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for i, inner := range n.Values {
			out = append(out, r.value(inner, place+"["+strconv.Itoa(i)+"]", depth+1))
		}
		return out
	case *ast.StringNode:
		return writtenText(n)
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.NullNode:
		return nil
	case *ast.IntegerNode, *ast.FloatNode:
		if digits := n.GetToken().Value; plainJSONNumber.MatchString(digits) {
			return json.Number(digits)
		}
		return r.fail(n, "Write this number in plain digits, or in quotes if it is a text.")
	}
	return r.fail(n, "Anchors, aliases, tags and other marks of YAML are not taken here. Write the value itself.")
}

// writtenText is what a text says. A number beyond the parser's own is a number still.
func writtenText(n *ast.StringNode) any {
	if n.Token.Type == token.StringType && plainJSONNumber.MatchString(n.Value) {
		return json.Number(n.Value)
	}
	return n.Value
}

func (r *yamlReader) record(entries []*ast.MappingValueNode, place string, depth int) any {
	out := map[string]any{}
	for _, entry := range entries {
		name := entry.Key.GetToken().Value
		if s, ok := entry.Key.(*ast.StringNode); ok {
			name = s.Value
		} else if _, merge := entry.Key.(*ast.MergeKeyNode); merge {
			return r.fail(entry, "Merging with << is not taken here. Write the entries themselves.")
		}
		if _, twice := out[name]; twice {
			return r.fail(entry.Key, "“"+shown(name)+"” stands twice in this record. Remove one.")
		}
		r.index.note(under(place, name), lineOf(entry.Key), "")
		out[name] = r.value(entry.Value, under(place, name), depth+1)
	}
	return out
}

// YAML is the document as YAML that people read, which ReadText reads back. One that holds
// what YAML cannot say exactly, such as a zero byte, is given as JSON, which it is, too.
func (d Document) YAML() string {
	var out bytes.Buffer
	w := yamlWriter{out: &out, decoder: json.NewDecoder(bytes.NewReader(d.JSON()))}
	w.decoder.UseNumber()
	if err := w.value(0, false); err != nil {
		return d.Indented()
	}
	if back, problems := ReadText(out.String()); problems != nil || !bytes.Equal(back.JSON(), d.JSON()) {
		return d.Indented()
	}
	return out.String()
}

type yamlWriter struct {
	out     *bytes.Buffer
	decoder *json.Decoder
}

var errNoName = errors.New("a record without names")

// value writes the next value behind its name, or behind the dash of a list.
func (w *yamlWriter) value(depth int, listed bool) error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.record(depth, listed)
		}
		return w.list(depth)
	case string:
		w.text(t, depth)
	case json.Number:
		w.out.WriteString(" " + t.String() + "\n")
	case bool:
		w.out.WriteString(" " + strconv.FormatBool(t) + "\n")
	default:
		w.out.WriteString(" null\n")
	}
	return nil
}

func (w *yamlWriter) record(depth int, listed bool) error {
	first := true
	for w.decoder.More() {
		key, err := w.decoder.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errNoName
		}
		switch {
		case first && listed:
			w.out.WriteByte(' ') // behind the dash
		case first && depth > 0:
			w.out.WriteByte('\n')
			fallthrough
		default:
			w.out.WriteString(strings.Repeat("  ", depth))
		}
		first = false
		w.out.WriteString(yamlScalar(name) + ":")
		if err := w.value(depth+1, false); err != nil {
			return err
		}
	}
	if first {
		w.out.WriteString(" {}\n")
	}
	_, err := w.decoder.Token()
	return err
}

func (w *yamlWriter) list(depth int) error {
	if !w.decoder.More() {
		w.out.WriteString(" []\n")
	} else {
		w.out.WriteByte('\n')
	}
	for w.decoder.More() {
		w.out.WriteString(strings.Repeat("  ", depth) + "-")
		if err := w.value(depth+1, true); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
}

// text writes several lines as a block where that says exactly the same.
func (w *yamlWriter) text(s string, depth int) {
	if !blockText(s) {
		w.out.WriteString(" " + yamlScalar(s) + "\n")
		return
	}
	w.out.WriteString(" |-\n")
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			w.out.WriteString(strings.Repeat("  ", depth) + line)
		}
		w.out.WriteByte('\n')
	}
}

func blockText(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n") || strings.HasPrefix(s, "\n") || expr.CheckText(s) != nil {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) != line || strings.ContainsFunc(line, breaksLine) {
			return false
		}
	}
	return true
}

var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// yamlScalar writes a text bare where no reader could take it for something else.
func yamlScalar(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
	default:
		if plainYAML.MatchString(s) {
			return s
		}
	}
	return string(appendText(nil, s))
}
