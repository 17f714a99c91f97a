package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fitter writes a value in the form of a schema: the fields asked for, in the order
// asked, null for an optional one that is missing. What was not asked for is left
// out; it stays in the answer's text.
type fitter struct {
	buf     bytes.Buffer
	repairs []string
}

func (f *fitter) value(s *Schema, v any, path string) error {
	switch s.Shape {
	case ShapeRecord:
		return f.record(s, v, path)
	case ShapeList:
		return f.list(s, v, path)
	case ShapeNumber, ShapeInteger:
		return f.number(s, v, path)
	case ShapeYesNo:
		return f.yesNo(v, path)
	case ShapeChoice:
		return f.choice(s, v, path)
	case ShapeDate:
		return f.instant(v, path, time.DateOnly, "a date like 2027-01-31")
	case ShapeTime:
		return f.instant(v, path, time.RFC3339, "a date and time with zone, like 2027-01-31T09:30:00Z")
	case ShapeText:
	}
	return f.text(v, path)
}

func (f *fitter) record(s *Schema, v any, path string) error {
	object, ok := v.(map[string]any)
	if !ok {
		return misfit(path, "an object", v)
	}
	f.buf.WriteByte('{')
	for i := range s.Fields {
		if i > 0 {
			f.buf.WriteByte(',')
		}
		field := &s.Fields[i]
		f.buf.Write(quote(field.Name))
		f.buf.WriteByte(':')
		if err := f.field(field, object, join(path, field.Name)); err != nil {
			return err
		}
	}
	f.buf.WriteByte('}')
	return nil
}

func (f *fitter) field(field *Field, object map[string]any, path string) error {
	v, given := object[field.Name]
	switch {
	case v == nil && field.Optional:
		f.buf.WriteString("null")
		return nil
	case field.Optional && isNoNumber(v) && (field.Schema.Shape == ShapeNumber || field.Schema.Shape == ShapeInteger):
		f.repaired(path, fmt.Sprintf("it was %s, which is no number, and is left empty", v))
		f.buf.WriteString("null")
		return nil
	case !given:
		return fmt.Errorf("%s is missing", place(path))
	}
	return f.value(&field.Schema, v, path)
}

func (f *fitter) list(s *Schema, v any, path string) error {
	items, ok := v.([]any)
	if !ok {
		return misfit(path, "a list", v)
	}
	f.buf.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			f.buf.WriteByte(',')
		}
		if err := f.value(s.Item, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	f.buf.WriteByte(']')
	return nil
}

func (f *fitter) text(v any, path string) error {
	switch v := v.(type) {
	case string:
		text, mended := Clean(v)
		if mended {
			f.repaired(path, "characters that cannot be stored were replaced by �")
		}
		f.buf.Write(quote(text))
		return nil
	case json.Number:
		f.repaired(path, "a number was taken as text")
		f.buf.Write(quote(v.String()))
		return nil
	}
	return misfit(path, "a text", v)
}

// number keeps the digits as they were written: no float ever touches them.
func (f *fitter) number(s *Schema, v any, path string) error {
	want := "a number"
	if s.Shape == ShapeInteger {
		want = "a whole number"
	}
	number, ok := v.(json.Number)
	if text, isText := v.(string); isText && isNumber(strings.TrimSpace(text)) {
		number, ok = json.Number(strings.TrimSpace(text)), true
		f.repaired(path, "a text was taken as number")
	}
	if !ok {
		return misfit(path, want, v)
	}
	if !bounded(number.String()) {
		return fmt.Errorf("%s is a number beyond all use: %s", place(path), Cut(number.String(), 40))
	}
	digits := number.String()
	if s.Shape == ShapeInteger {
		whole, fraction, _ := strings.Cut(digits, ".")
		if strings.Trim(fraction, "0") != "" || strings.ContainsAny(whole, "eE") {
			return misfit(path, want, v)
		}
		digits = whole
	}
	f.buf.WriteString(digits)
	return nil
}

// isNumber tells whether a text is a JSON number.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text[:1], "-0123456789") == "" && json.Valid([]byte(text))
}

// bounded refuses numbers that only serve to exhaust whoever computes with them:
// more than 200 digits, or a power of ten beyond 308.
func bounded(number string) bool {
	if len(number) > 200 {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && exponent >= -308 && exponent <= 308
}

func (f *fitter) yesNo(v any, path string) error {
	answer, ok := v.(bool)
	if text, isText := v.(string); isText {
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "yes":
			answer, ok = true, true
		case "false", "no":
			answer, ok = false, true
		}
		f.repaired(path, "a text was taken as yes or no")
	}
	if !ok {
		return misfit(path, "true or false", v)
	}
	f.buf.WriteString(strconv.FormatBool(answer))
	return nil
}

func (f *fitter) choice(s *Schema, v any, path string) error {
	text, ok := v.(string)
	if !ok {
		return misfit(path, "one of "+choiceList(s.Choices), v)
	}
	var near []string
	for _, choice := range s.Choices {
		if choice == text {
			f.buf.Write(quote(choice))
			return nil
		}
		if strings.EqualFold(choice, strings.TrimSpace(text)) {
			near = append(near, choice)
		}
	}
	if len(near) != 1 {
		return misfit(path, "one of "+choiceList(s.Choices), v)
	}
	f.repaired(path, "the choice was written differently")
	f.buf.Write(quote(near[0]))
	return nil
}

func choiceList(choices []string) string {
	quotedChoices := make([]string, len(choices))
	for i, choice := range choices {
		quotedChoices[i] = string(quote(choice))
	}
	return Cut(strings.Join(quotedChoices, ", "), 300)
}

func (f *fitter) instant(v any, path, layout, want string) error {
	text, ok := v.(string)
	if !ok {
		return misfit(path, want, v)
	}
	if _, err := time.Parse(layout, text); err != nil {
		return misfit(path, want, v)
	}
	f.buf.Write(quote(text))
	return nil
}

func (f *fitter) repaired(path, what string) {
	if len(f.repairs) < 20 {
		f.repairs = append(f.repairs, place(path)+": "+what)
	}
}

// misfit says where the answer does not fit, what was asked and what came.
func misfit(path, want string, got any) error {
	return fmt.Errorf("%s must be %s, but is %s", place(path), want, describe(got))
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "the text " + string(quote(Cut(v, 60)))
	case json.Number:
		return "the number " + Cut(v.String(), 40)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}
