package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxFieldText bounds what a reviewer may type into one field, in bytes.
const maxFieldText = 100_000

var (
	decimal  = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,60})(\.[0-9]{1,60})?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// money is how pipelines write an amount. The amount keeps its digits.
type money struct {
	Amount   json.RawMessage `json:"amount"`
	Currency string          `json:"currency"`
}

// Read makes a value of what somebody typed into the field. The error is a sentence
// for her.
func (f EditableField) Read(typed string) (json.RawMessage, error) {
	if !utf8.ValidString(typed) || strings.ContainsRune(typed, 0) {
		return nil, tell("%s holds characters that are not text.", f.title())
	}
	if f.Type == FieldText {
		return quoted(text(typed)), f.Check(quoted(text(typed)))
	}
	typed = strings.TrimSpace(typed)
	if typed == "" && f.Type != FieldYesNo {
		return json.RawMessage("null"), f.Check(json.RawMessage("null"))
	}
	value := f.valueOf(typed)
	return value, f.Check(value)
}

// valueOf writes typed text the way the field's type is written; Check tells whether
// it fits.
func (f EditableField) valueOf(typed string) json.RawMessage {
	switch f.Type {
	case FieldYesNo:
		return json.RawMessage(fmt.Sprint(slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(typed))))
	case FieldNumber:
		if decimal.MatchString(typed) {
			return json.RawMessage(typed)
		}
	case FieldMoney:
		return f.moneyOf(typed)
	}
	return quoted(typed)
}

// moneyOf reads "12.50" or "12.50 EUR". Without a currency the proposed one stays, and
// the amount is written as a number or as text like the proposed one.
func (f EditableField) moneyOf(typed string) json.RawMessage {
	var proposed money
	_ = json.Unmarshal(f.Value, &proposed) // a proposal of another shape has no currency to keep
	amount, code, _ := strings.Cut(typed, " ")
	if code = strings.ToUpper(strings.TrimSpace(code)); code == "" {
		code = proposed.Currency
	}
	written := quoted(amount)
	if decimal.MatchString(amount) && !bytes.HasPrefix(proposed.Amount, []byte(`"`)) {
		written = json.RawMessage(amount)
	}
	value, err := json.Marshal(money{Amount: written, Currency: code})
	if err != nil {
		return quoted(typed)
	}
	return value
}

// Check tells whether a value fits the field. The error is a sentence for people.
func (f EditableField) Check(value json.RawMessage) error {
	if len(value) > maxFieldText {
		return tell("%s is too long. Shorten it to %d characters.", f.title(), maxFieldText)
	}
	var got any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if err := decoder.Decode(&got); err != nil || decoder.More() {
		return tell("%s holds a value that cannot be read.", f.title())
	}
	if got == nil || got == "" {
		if f.Required {
			return tell("Enter %s.", f.title())
		}
		return nil
	}
	return f.checkType(got)
}

func (f EditableField) checkType(got any) error {
	fits, want := false, ""
	written, _ := got.(string)
	switch f.Type {
	case FieldText:
		_, fits = got.(string)
		want = "text"
	case FieldNumber:
		number, ok := got.(json.Number)
		fits, want = ok && decimal.MatchString(number.String()), "a number like 1250.50"
	case FieldMoney:
		fits, want = isMoney(got), "an amount like 420.00 EUR"
	case FieldDate:
		fits, want = isTime(time.DateOnly, written), "a date like 2026-11-30"
	case FieldDateTime:
		fits, want = isTime(time.RFC3339, written), "a date and time with zone like 2026-11-30T17:00:00+01:00"
	case FieldYesNo:
		_, fits = got.(bool)
		want = "yes or no"
	case FieldChoice:
		fits = slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == written && written != "" })
		want = "one of the choices"
	}
	if !fits {
		return tell("%s needs %s.", f.title(), want)
	}
	return nil
}

func isMoney(got any) bool {
	parts, ok := got.(map[string]any)
	if !ok || len(parts) != 2 {
		return false
	}
	code, _ := parts["currency"].(string)
	return decimal.MatchString(fmt.Sprint(parts["amount"])) && currency.MatchString(code)
}

func isTime(layout, written string) bool {
	_, err := time.Parse(layout, written)
	return err == nil
}

// sentence is an error that is written for people.
type sentence string

// Error is the sentence.
func (s sentence) Error() string { return string(s) }

func tell(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }

func (f EditableField) title() string {
	if f.Label != "" {
		return "“" + f.Label + "”"
	}
	return "“" + f.Name + "”"
}

func quoted(s string) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimSpace(out.Bytes())
}
