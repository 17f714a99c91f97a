package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/app/expr"
)

// maxTypedNumber bounds the digits of a number that people or programs send.
const maxTypedNumber = 100

var numberPattern = regexp.MustCompile(`^(-?)0*([0-9]*)(\.[0-9]+)?$`)

// read turns what was typed into the JSON value of the field's type; fit then
// looks at it as at any other value.
func (p *inputParser) read(at string, f Field, typed string) (any, error) {
	trimmed := strings.TrimSpace(typed)
	switch f.Type {
	case TypeNumber:
		return readNumber(trimmed)
	case TypeMoney:
		amount, err := readNumber(trimmed)
		if err != nil {
			return nil, err
		}
		return map[string]any{"amount": amount, "currency": p.currency(at, f)}, nil
	case TypeYesNo:
		return readYesNo(trimmed)
	case TypeDate:
		return trimmed, nil
	case TypeDateTime:
		return p.dateTime(at, trimmed)
	}
	return typed, nil
}

// readNumber takes plain digits with a point. A comma could mean two things, so
// it is refused; zeros in front and a missing one before the point are set right.
func readNumber(typed string) (any, error) {
	parts := numberPattern.FindStringSubmatch(typed)
	if parts == nil || parts[2]+parts[3] == "" && !strings.Contains(typed, "0") || len(typed) > maxTypedNumber {
		return nil, fmt.Errorf("is not a number that can be read (“%s”). Write digits with a point, like 1234.50.", shown(typed))
	}
	whole := parts[2]
	if whole == "" {
		whole = "0"
	}
	return json.Number(parts[1] + whole + parts[3]), nil
}

// A field with a fixed currency needs none from the form.
func (p *inputParser) currency(at string, f Field) string {
	if sent := p.form.Values[at+".currency"]; len(sent) > 0 && strings.TrimSpace(sent[0]) != "" {
		return strings.ToUpper(strings.TrimSpace(sent[0]))
	}
	return f.Currency
}

func readYesNo(typed string) (any, error) {
	switch strings.ToLower(typed) {
	case "yes", "on", "true", "1":
		return true, nil
	case "no", "off", "false", "0":
		return false, nil
	}
	return nil, errors.New("is neither yes nor no. Choose one.")
}

// dateTime takes a time with its offset, or a local time and the zone that was
// sent with it. A local time that the zone skips is refused; of one that it has
// twice the first is taken.
func (p *inputParser) dateTime(at, typed string) (any, error) {
	zone := ""
	if sent := p.form.Values[at+".zone"]; len(sent) > 0 {
		zone = strings.TrimSpace(sent[0])
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		local, err := time.Parse(layout, typed)
		if err != nil {
			continue
		}
		place, err := time.LoadLocation(zone)
		if err != nil || zone == "" || zone == "Local" {
			return nil, errors.New("needs a time zone, like Europe/Berlin. Choose one.")
		}
		t, err := time.ParseInLocation(layout, typed, place)
		if err != nil || t.Format(layout) != local.Format(layout) {
			return nil, fmt.Errorf("is a time that does not exist in %s, because the clocks change then. Choose another.", shown(zone))
		}
		return firstOf(t, layout).Format(time.RFC3339), nil
	}
	return typed, nil
}

// firstOf is the earlier of the two moments that a local time names when the
// clocks go back.
func firstOf(t time.Time, layout string) time.Time {
	for _, back := range []time.Duration{time.Hour, 30 * time.Minute} {
		if earlier := t.Add(-back); earlier.Format(layout) == t.Format(layout) {
			return earlier
		}
	}
	return t
}

// fit checks a JSON value against its field and gives it back as it is stored.
func (p *inputParser) fit(f Field, at string, v any) any {
	if v == nil {
		return p.left(at, f)
	}
	switch f.Type {
	case TypeNumber:
		return p.fitNumber(f, at, v)
	case TypeMoney:
		return p.fitMoney(f, at, v)
	case TypeYesNo:
		if _, ok := v.(bool); !ok {
			return p.fail(f, at, "must be true or false.")
		}
		return v
	case TypeList:
		return p.fitList(f, at, v)
	case TypeRecord:
		return p.fitRecord(f, at, v)
	case TypeFile:
		return p.fitFile(f, at, v)
	}
	s, ok := v.(string)
	if !ok {
		return p.fail(f, at, "must be text.")
	}
	return p.fitText(f, at, s)
}

func (p *inputParser) fitText(f Field, at, s string) any {
	switch {
	case f.Required && strings.TrimSpace(s) == "":
		return p.left(at, f)
	case utf8.RuneCountInString(s) > MaxText:
		return p.fail(f, at, "is longer than %d characters. Shorten it, or hand it in as a file.", MaxText)
	}
	switch f.Type {
	case TypeDate:
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return p.fail(f, at, "is not a date that exists (“%s”). Write it like 2026-11-30.", shown(s))
		}
	case TypeDateTime:
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return p.fail(f, at, "is not a date with time and zone (“%s”). Write it like 2026-11-30T09:00:00+01:00.", shown(s))
		}
	case TypeChoice:
		for _, c := range f.Choices {
			if c.Value == s {
				return s
			}
		}
		return p.fail(f, at, "cannot be “%s”. Choose one of the list.", shown(s))
	}
	return s
}

// Any number of digits up to the bound is kept as it is, though formulas compute with
// integers of 64 bits only: carrying an order number needs no arithmetic.
func (p *inputParser) fitNumber(f Field, at string, v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return p.fail(f, at, "must be a number.")
	}
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	power, err := strconv.Atoi(exponent)
	if len(n) > maxTypedNumber || exponent != "" && (err != nil || power > maxTypedNumber || power < -maxTypedNumber) {
		return p.fail(f, at, "has more than %d digits. Hand it in as text.", maxTypedNumber)
	}
	return n
}

func (p *inputParser) fitMoney(f Field, at string, v any) any {
	m, ok := v.(map[string]any)
	currency, text := m["currency"].(string)
	if !ok || !text || len(m) != 2 {
		return p.fail(f, at, "must be an amount and a currency.")
	}
	if f.Currency != "" && currency != f.Currency {
		return p.fail(f, at, "must be in %s, not in “%s”.", f.Currency, shown(currency))
	}
	if !currencyPattern.MatchString(currency) {
		return p.fail(f, at, "needs a currency of three letters, like EUR, not “%s”.", shown(currency))
	}
	if amount, ok := m["amount"]; !ok || p.fitNumber(f, at, amount) == nil {
		return nil
	}
	return v
}

func (p *inputParser) fitList(f Field, at string, v any) any {
	list, ok := v.([]any)
	if !ok {
		return p.fail(f, at, "must be a list.")
	}
	if len(list) == 0 && f.Required {
		return p.left(at, f)
	}
	out := make([]any, len(list))
	for i, entry := range list {
		of := f.entry()
		of.Label = fmt.Sprintf("%s, entry %d", f.Title(), i+1)
		out[i] = p.fit(of, at, entry)
	}
	return p.bounded(at, f, out)
}

// An entry that no field asks for is told, not dropped: it is a typing mistake more
// often than it is of no use.
func (p *inputParser) fitRecord(f Field, at string, v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return p.fail(f, at, "must be a record.")
	}
	prefix := at
	if prefix != "" {
		prefix += "."
	}
	out := map[string]any{}
	for _, inner := range f.Fields {
		out[inner.Name] = p.fit(inner, prefix+inner.Name, m[inner.Name])
	}
	for name := range m {
		if _, known := findField(f.Fields, name); !known {
			p.fail(f, prefix+shown(name), "has no field “%s”. It has: %s.", shown(name), quoted(fieldNames(f.Fields)))
		}
	}
	return out
}

// Content is text here, which is all that the readable kinds of file need.
func (p *inputParser) fitFile(f Field, at string, v any) any {
	m, _ := v.(map[string]any)
	if digest, stored := m["digest"].(string); p.handsOn && stored && len(digest) == 64 {
		return v
	}
	name, named := m["name"].(string)
	content, filled := m["content"].(string)
	if !named || !filled || len(m) != 2 {
		return p.fail(f, at, "must be a file with a name and its content.")
	}
	if err := expr.CheckText(content); err != nil {
		return p.fail(f, at, "cannot be taken: %s.", err.Error())
	}
	return p.store(at, f, Upload{name, []byte(content)})
}
