package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tollgate/app/expr"
)

// TextProblem is something to fix in a document that was written as text.
type TextProblem struct {
	Problem
	Line int // from 1; 0 where the text has no such place
}

// ReadText reads a document that people wrote, as JSON or as YAML, and tells the line of
// what does not fit. Numbers keep their digits; anchors and tags of YAML are refused.
func ReadText(text string) (Document, []TextProblem) {
	if len(text) > MaxDocument {
		return Document{}, textProblem(0, "The text takes %d bytes; at most %d are possible.", len(text), MaxDocument)
	}
	data, lines, problems := asJSON(text)
	if problems != nil {
		return Document{}, problems
	}
	d, err := Parse(data)
	if invalid, ok := errors.AsType[*Invalid](err); ok {
		return d, lines.of(invalid.Problems)
	}
	if twice := sameIDs(&d); twice != "" {
		return d, textProblem(0, "Two steps have the id “%s”. Give one of them another.", shown(twice))
	}
	return d, nil
}

// sameIDs is an id that two steps have; empty where each has its own. Pages find steps by
// their ids, so a draft cannot keep two.
func sameIDs(d *Document) string {
	seen := map[string]bool{}
	for _, n := range grow(d).all {
		if n.ID() == "" || seen[n.ID()] {
			return n.ID()
		}
		seen[n.ID()] = true
	}
	return ""
}

func textProblem(line int, format string, args ...any) []TextProblem {
	says := fmt.Sprintf(format, args...)
	return []TextProblem{{Problem{Severity: Blocks, Message: says, Says: says}, line}}
}

// asJSON makes JSON of either form, and an index of its lines.
func asJSON(text string) ([]byte, *lineIndex, []TextProblem) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return yamlAsJSON(text)
	}
	v, err := expr.DecodeJSON([]byte(text))
	if bad, ok := errors.AsType[*expr.BadJSON](err); ok {
		return nil, nil, textProblem(lineAt(text, bad.Offset), "This cannot be read as JSON: %s.", bad.Reason)
	}
	if err != nil {
		return nil, nil, textProblem(0, "This cannot be read as JSON.")
	}
	lines := newLineIndex()
	lines.json([]byte(text))
	data, err := expr.EncodeJSON(v)
	if err != nil {
		return nil, nil, textProblem(0, "This cannot be read as JSON: %s.", err.Error())
	}
	return data, lines, nil
}

func lineAt(text string, offset int) int {
	return 1 + strings.Count(text[:min(max(offset, 0), len(text))], "\n")
}

// lineIndex knows the line of each place of a document, such as "steps[0].with.prompt",
// and where each step stands.
type lineIndex struct {
	lines map[string]int
	steps map[string]string // by id
}

func newLineIndex() *lineIndex { return &lineIndex{map[string]int{}, map[string]string{}} }

// of finds the line of each problem: of its place, or of what is around it.
func (x *lineIndex) of(problems []Problem) []TextProblem {
	var out []TextProblem
	for _, p := range problems {
		out = append(out, TextProblem{p, x.line(p)})
	}
	slices.SortStableFunc(out, func(a, b TextProblem) int { return a.Line - b.Line })
	return out
}

func (x *lineIndex) line(p Problem) int {
	place := p.Field
	if step, ok := x.steps[p.Step]; ok && p.Step != "" {
		place = strings.TrimSuffix(step+"."+p.Field, ".")
	}
	for place != "" {
		if line, ok := x.lines[place]; ok {
			return line
		}
		place = place[:max(strings.LastIndexByte(place, '.'), strings.LastIndexByte(place, '['), 0)]
	}
	return 0
}

// note remembers a place, and the step whose id it is.
func (x *lineIndex) note(place string, line int, text string) {
	if _, known := x.lines[place]; !known {
		x.lines[place] = line
	}
	if step, isID := strings.CutSuffix(place, ".id"); isID && strings.HasSuffix(step, "]") {
		if _, known := x.steps[text]; !known {
			x.steps[text] = step
		}
	}
}

// TextLines finds the lines of problems in a text that ReadText takes.
func TextLines(text string, problems []Problem) []TextProblem {
	_, lines, bad := asJSON(text)
	if bad != nil {
		return bad
	}
	return lines.of(problems)
}

// Indented is the document as JSON that people read: one entry a line.
func (d Document) Indented() string {
	var out bytes.Buffer
	indent(&out, d.JSON())
	return out.String()
}
