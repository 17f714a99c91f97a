package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/app/review"
	"tollgate/web/ui"
)

// editor offers one value of a review for editing. What a form cannot carry unharmed
// must never come back as an edit: a value counts as changed only if what was sent
// differs from what was shown.
type editor struct {
	review.EditableField
	index int
	zone  *time.Location
}

// editors are those of a review's fields, or none where nothing may be edited.
func editors(d review.Detail, zone *time.Location) []editor {
	if !d.CanEdit() {
		return nil
	}
	var all []editor
	for i, field := range d.Content.Editable {
		all = append(all, editor{field, i, zone})
	}
	return all
}

// formName is the field's name in the form; the prefix keeps it from meeting one of our
// own.
func (e editor) formName() string { return "edit." + e.Name }

func (e editor) title() string {
	if e.Label != "" {
		return e.Label
	}
	return e.Name
}

// longLine is what is read and written in several lines rather than in one.
const longLine = 80

// minute is how browsers write a date with a time.
const minute = "2006-01-02T15:04"

// kind is the input that holds the proposed value exactly. A value that does not look
// like its type is shown as the text it is.
func (e editor) kind() ui.FieldKind {
	written := e.text()
	switch e.Type {
	case review.FieldNumber:
		return ui.NumberField
	case review.FieldMoney:
		if _, currency, ok := e.money(); ok && currency != "" {
			return ui.MoneyField
		}
	case review.FieldDate:
		if _, err := time.Parse(time.DateOnly, written); err == nil || written == "" {
			return ui.DateField
		}
	case review.FieldDateTime:
		if _, err := time.Parse(time.RFC3339, written); err == nil || written == "" {
			return ui.DateTimeField
		}
	case review.FieldYesNo:
		return ui.YesNoField
	case review.FieldChoice:
		return ui.ChoiceField
	}
	if e.Long || strings.ContainsAny(written, "\r\n") || utf8.RuneCountInString(written) > longLine {
		return ui.LongField
	}
	return ui.TextField
}

// text is the proposed value as text: without quotes if it is a text, "" for none.
func (e editor) text() string {
	var written string
	if json.Unmarshal(e.Value, &written) == nil {
		return written
	}
	if bytes.Equal(bytes.TrimSpace(e.Value), []byte("null")) {
		return ""
	}
	return string(e.Value)
}

// money takes an amount apart, with its digits as they are.
func (e editor) money() (amount, currency string, ok bool) {
	var parts struct {
		Amount   json.RawMessage `json:"amount"`
		Currency string          `json:"currency"`
	}
	if json.Unmarshal(e.Value, &parts) != nil || len(parts.Amount) == 0 {
		return "", "", false
	}
	return strings.Trim(string(parts.Amount), `"`), parts.Currency, true
}

// shown is the proposed value as the input holds it.
func (e editor) shown() string {
	switch e.kind() {
	case ui.MoneyField:
		amount, _, _ := e.money()
		return amount
	case ui.DateTimeField:
		if at, err := time.Parse(time.RFC3339, e.text()); err == nil {
			return at.In(e.zone).Format(minute)
		}
	}
	return e.text()
}

// read gives the value that was typed, and whether it is another than the proposed one.
// The error is a sentence for the person.
func (e editor) read(typed string) (json.RawMessage, bool, error) {
	if sameText(typed, ui.Clean(e.shown())) || typed == "" && e.cannotShow() {
		return nil, false, nil
	}
	if e.Type == review.FieldDateTime && e.kind() == ui.DateTimeField {
		if at, err := time.ParseInLocation(minute, typed, e.zone); err == nil {
			typed = at.Format(time.RFC3339)
		}
	}
	value, err := e.Read(typed)
	return value, true, err
}

// cannotShow tells of a choice that offers the proposed value to nobody.
func (e editor) cannotShow() bool {
	return e.Type == review.FieldChoice && !slices.ContainsFunc(e.Choices, func(c review.Choice) bool { return c.Value == e.text() })
}

// sameText compares texts whatever line ends a browser made of them.
func sameText(a, b string) bool {
	unify := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace
	return unify(a) == unify(b)
}

// input is the field of the form, with what was typed if anything was.
func (e editor) input(typed map[string]string, fault string) ui.Field {
	field := ui.Field{
		Kind: e.kind(), Name: e.formName(), ID: fmt.Sprintf("edit-%d", e.index), Label: e.title(), Help: e.Help,
		Value: e.shown(), Error: fault, Optional: !e.Required, Rows: e.rows(),
	}
	switch field.Kind {
	case ui.MoneyField:
		_, field.Currency, _ = e.money()
	case ui.DateTimeField:
		field.Zone = e.zone.String()
	}
	for _, choice := range e.Choices {
		label := choice.Label
		if label == "" {
			label = choice.Value
		}
		field.Options = append(field.Options, ui.Option{Value: choice.Value, Label: label})
	}
	if now, ok := typed[e.Name]; ok {
		field.Value = now
	}
	return field
}

// rows makes a long text visible without scrolling where that is possible.
func (e editor) rows() int {
	lines := 1
	for line := range strings.SplitSeq(e.text(), "\n") {
		lines += 1 + utf8.RuneCountInString(line)/longLine
	}
	return min(max(lines, 4), 16)
}

// valueWords is a value for reading.
func valueWords(field review.EditableField, now time.Time, zone *time.Location) string {
	e := editor{field, 0, zone}
	written := e.text()
	switch field.Type {
	case review.FieldMoney:
		if amount, currency, ok := e.money(); ok {
			return ui.Money(amount, currency)
		}
	case review.FieldYesNo:
		if words, ok := map[string]string{"true": "Yes", "false": "No"}[written]; ok {
			return words
		}
	case review.FieldDateTime:
		if at, err := time.Parse(time.RFC3339, written); err == nil {
			return ui.When(at, now, zone)
		}
	case review.FieldChoice:
		for _, choice := range field.Choices {
			if choice.Value == written && choice.Label != "" {
				return choice.Label
			}
		}
	}
	if written == "" {
		return "–"
	}
	return written
}
