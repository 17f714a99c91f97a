package expr

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxRendered is the most bytes of a text with everything inserted.
const maxRendered = 16 << 20

// Words writes a value as people read it: yes or no, money as "€420.00", the
// entries of a simple list apart by commas, records as indented JSON. An empty
// value is an empty text. The result is Plain.
func Words(v any) (string, error) {
	out, err := words(v, maxRendered)
	return Plain(out), err
}

func words(v any, limit int) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case bool:
		if v {
			return "yes", nil
		}
		return "no", nil
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case []any:
		return listWords(v, limit)
	case map[string]any:
		if text, ok := moneyWords(v); ok {
			return text, nil
		}
	}
	return indented(v, limit)
}

// listWords joins a list of simple entries; any other list is written as JSON.
func listWords(list []any, limit int) (string, error) {
	parts := make([]string, 0, len(list))
	size := 0
	for _, v := range list {
		if !simple(v) {
			return indented(list, limit)
		}
		part, err := words(v, limit)
		if err != nil {
			return "", err
		}
		if size += len(part) + 2; size > limit {
			return "", sentencef("the list is longer than %d bytes as text", limit)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", "), nil
}

// Money counts as simple, since it is read as one figure.
func simple(v any) bool {
	switch v := v.(type) {
	case []any:
		return false
	case map[string]any:
		_, ok := moneyWords(v)
		return ok
	}
	return true
}

// Indented JSON is for people; whoever wants to compute takes the value itself.
func indented(v any, limit int) (string, error) {
	data, err := EncodeJSONLimit(v, limit)
	if err != nil {
		return "", sentencef("%s", err.Error())
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return "", err
	}
	// Indentation can outgrow the data it indents, deep lists above all.
	if out.Len() > 2*limit {
		return "", sentencef("the value is longer than %d bytes as text", limit)
	}
	return out.String(), nil
}

// signs are the currencies whose sign leaves no doubt.
var signs = map[string]string{"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}

// moneyWords writes an amount with its currency: the sign where there is one,
// thousands apart, at least the places that the currency usually has.
func moneyWords(m map[string]any) (string, bool) {
	number, ok := m["amount"].(json.Number)
	currency, named := m["currency"].(string)
	if len(m) != 2 || !ok || !named {
		return "", false
	}
	digits := string(number)
	if strings.ContainsAny(digits, "eE") {
		return currency + " " + digits, true
	}
	minus := ""
	if digits, ok = strings.CutPrefix(digits, "-"); ok {
		minus = "-"
	}
	whole, places, _ := strings.Cut(digits, ".")
	for currency != "JPY" && len(places) < 2 {
		places += "0"
	}
	text := grouped(whole)
	if places != "" {
		text += "." + places
	}
	if sign, ok := signs[currency]; ok {
		return minus + sign + text, true
	}
	return currency + " " + minus + text, true
}

// grouped puts a comma between thousands.
func grouped(digits string) string {
	var out []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}
