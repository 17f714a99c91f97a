package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one text with insertions.
const (
	maxTextSource = 400_000 // bytes of source
	maxInserts    = 500
)

// Text is a text with insertions, as in "Dear {{ input.name }}". To write two
// braces themselves, insert them: {{ "{{" }}. It never changes and may be used
// by any number of goroutines at once.
type Text struct {
	source string
	parts  []part
}

// part is a piece of literal text or, where formula is set, an insertion.
type part struct {
	literal      string
	formula      *Formula
	line, column int // where the insertion's formula begins
}

// ParseText reads a text with insertions. The error is a *Problem whose line and
// column count in the whole text.
func ParseText(src string) (*Text, error) {
	if len(src) > maxTextSource {
		return nil, &Problem{Line: 1, Column: 1, Message: fmt.Sprintf("The text is longer than %d bytes.", maxTextSource)}
	}
	if err := CheckText(src); err != nil {
		return nil, &Problem{Line: 1, Column: 1, Message: "The text cannot be used: " + err.Error() + "."}
	}
	t := &Text{source: src}
	for pos, inserts := 0, 0; pos < len(src); {
		open := strings.Index(src[pos:], "{{")
		if open < 0 {
			t.parts = append(t.parts, part{literal: src[pos:]})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{literal: src[pos : pos+open]})
		}
		if inserts++; inserts > maxInserts {
			return nil, placed(src, pos+open, &Problem{Message: fmt.Sprintf("The text has more than %d insertions.", maxInserts)})
		}
		end, err := t.insertion(pos + open + len("{{"))
		if err != nil {
			return nil, err
		}
		pos = end
	}
	return t, nil
}

// insertion compiles the formula that begins at start and returns where the text
// goes on.
func (t *Text) insertion(start int) (int, error) {
	length := closing(t.source[start:])
	if length < 0 {
		return 0, placed(t.source, start-len("{{"), &Problem{Message: "This “{{” has no “}}” after it. To write braces themselves, insert them: {{ \"{{\" }}."})
	}
	inner := t.source[start : start+length]
	at := start + len(inner) - len(strings.TrimLeft(inner, " \t\r\n"))
	formula, err := Compile(strings.TrimSpace(inner))
	if err != nil {
		return 0, placed(t.source, at, err)
	}
	line, column := position(t.source, at)
	t.parts = append(t.parts, part{formula: formula, line: line, column: column})
	return start + length + len("}}"), nil
}

// closing finds the "}}" that ends a formula: not within quotes, nor one that
// closes a record of the formula itself. It is -1 where there is none.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			n := quotedLength(s[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{':
			depth++
		case '}':
			if depth == 0 && strings.HasPrefix(s[i:], "}}") {
				return i
			}
			depth--
		}
	}
	return -1
}

// quotedLength is the length of the quoted text that s begins with, or -1.
func quotedLength(s string) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		end := strings.Index(s[3:], triple)
		if end < 0 {
			return -1
		}
		return end + 6
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote[0]:
			return i + 1
		}
	}
	return -1
}

// position gives line and column of byte at, both from 1, in characters.
func position(s string, at int) (line, column int) {
	before := s[:at]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// placed moves a problem that counts from byte at of src to count in src.
func placed(src string, at int, err error) error {
	line, column := position(src, at)
	return shifted(line, column, err)
}

// A formula counts from its own first character; only its first line is moved sideways.
func shifted(line, column int, err error) error {
	var p *Problem
	if !errors.As(err, &p) {
		return err
	}
	out := &Problem{Line: line, Column: column, Message: p.Message}
	if p.Line > 1 {
		out.Line, out.Column = line+p.Line-1, p.Column
	} else if p.Column > 1 {
		out.Column = column + p.Column - 1
	}
	return out
}

// Source is what the text was parsed from.
func (t *Text) Source() string { return t.source }

// Refs lists what the insertions read, in the order of the text.
func (t *Text) Refs() []Ref {
	var out []Ref
	for _, p := range t.parts {
		if p.formula != nil {
			out = append(out, p.formula.refs...)
		}
	}
	return out
}

// Render inserts the values, in the words of Words. A value that is not there or
// empty is an error that names its place. The result is Plain.
func (t *Text) Render(ctx context.Context, scope Scope) (string, error) {
	return t.RenderEncoded(ctx, scope, func(text string) string { return text })
}

// RenderEncoded is Render for a text of a notation of its own, such as an address: each
// insertion is encoded, so that it cannot end the place where it stands. One that the text
// begins with is the notation itself and inserted as it is.
func (t *Text) RenderEncoded(ctx context.Context, scope Scope, encode func(string) string) (string, error) {
	var out strings.Builder
	for i, p := range t.parts {
		text := p.literal
		if p.formula != nil {
			var err error
			if text, err = p.insert(ctx, scope); err != nil {
				return "", shifted(p.line, p.column, err)
			}
			if i > 0 {
				text = encode(text)
			}
		}
		if out.Len()+len(text) > maxRendered {
			return "", &Problem{Message: fmt.Sprintf("With everything inserted the text is longer than %d bytes.", maxRendered)}
		}
		out.WriteString(text)
	}
	return Plain(out.String()), nil
}

// An empty value is refused rather than inserted as nothing: a letter that begins
// “Dear ,” is worse than a step that says what it lacks.
func (p part) insert(ctx context.Context, scope Scope) (string, error) {
	v, err := p.formula.Eval(ctx, scope)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", &Problem{Message: "“" + clip(p.formula.source, 80) + "” is empty. Say what to insert then, as in default(" + clip(p.formula.source, 80) + ", \"none\")."}
	}
	text, err := Words(v)
	if err != nil {
		return "", &Problem{Message: upperFirst(err.Error()) + "."}
	}
	return text, nil
}
