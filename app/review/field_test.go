package review

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadTypedValues(t *testing.T) {
	t.Parallel()
	euros := json.RawMessage(`{"amount":"420.00","currency":"EUR"}`)
	plain := json.RawMessage(`{"amount":420,"currency":"EUR"}`)
	choices := []Choice{{Value: "a"}, {Value: "b", Label: "B"}}
	tests := map[string]struct {
		field EditableField
		typed string
		want  string // "" means that it is refused
	}{
		"text":                    {EditableField{Type: FieldText}, " a\r\nb ", `" a\nb "`},
		"text, markup":            {EditableField{Type: FieldText}, "<b>&", `"<b>&"`},
		"text, nul":               {EditableField{Type: FieldText}, "a\x00", ""},
		"text, broken":            {EditableField{Type: FieldText}, "a\xff", ""},
		"text, empty":             {EditableField{Type: FieldText}, "", `""`},
		"text, empty, required":   {EditableField{Type: FieldText, Required: true}, "", ""},
		"text, too long":          {EditableField{Type: FieldText}, strings.Repeat("x", 100_000), ""},
		"number":                  {EditableField{Type: FieldNumber}, " 12345678901234567890.10 ", `12345678901234567890.10`},
		"number, negative":        {EditableField{Type: FieldNumber}, "-0.5", `-0.5`},
		"number, exponent":        {EditableField{Type: FieldNumber}, "1e5", ""},
		"number, comma":           {EditableField{Type: FieldNumber}, "1,5", ""},
		"number, leading zero":    {EditableField{Type: FieldNumber}, "007", ""},
		"number, word":            {EditableField{Type: FieldNumber}, "NaN", ""},
		"number, long":            {EditableField{Type: FieldNumber}, strings.Repeat("9", 62), ""},
		"number, empty":           {EditableField{Type: FieldNumber}, "", `null`},
		"number, empty, required": {EditableField{Type: FieldNumber, Required: true}, " ", ""},
		"money keeps currency":    {EditableField{Type: FieldMoney, Value: euros}, "400.00", `{"amount":"400.00","currency":"EUR"}`},
		"money keeps its kind":    {EditableField{Type: FieldMoney, Value: plain}, "400.50", `{"amount":400.50,"currency":"EUR"}`},
		"money, other currency":   {EditableField{Type: FieldMoney, Value: euros}, "400 usd", `{"amount":"400","currency":"USD"}`},
		"money without currency":  {EditableField{Type: FieldMoney}, "400", ""},
		"money, no number":        {EditableField{Type: FieldMoney, Value: euros}, "much EUR", ""},
		"money, odd currency":     {EditableField{Type: FieldMoney, Value: euros}, "1 EURO", ""},
		"date":                    {EditableField{Type: FieldDate}, "2026-11-30", `"2026-11-30"`},
		"date, none":              {EditableField{Type: FieldDate}, "2026-02-30", ""},
		"time":                    {EditableField{Type: FieldDateTime}, "2026-11-30T17:00:00+01:00", `"2026-11-30T17:00:00+01:00"`},
		"time without zone":       {EditableField{Type: FieldDateTime}, "2026-11-30T17:00:00", ""},
		"yes":                     {EditableField{Type: FieldYesNo}, "on", `true`},
		"no":                      {EditableField{Type: FieldYesNo}, "", `false`},
		"choice":                  {EditableField{Type: FieldChoice, Choices: choices}, "b", `"b"`},
		"choice, label":           {EditableField{Type: FieldChoice, Choices: choices}, "B", ""},
		"choice, none":            {EditableField{Type: FieldChoice, Choices: choices}, "c", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.field.Label = "Amount"
			got, err := test.field.Read(test.typed)
			if test.want == "" {
				require.ErrorContains(t, err, "“Amount”")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

func TestCheckRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	values := map[FieldType]string{
		FieldText: `"a"`, FieldNumber: `1`, FieldMoney: `{"amount":1,"currency":"EUR"}`, FieldDate: `"2026-11-30"`,
		FieldDateTime: `"2026-11-30T17:00:00Z"`, FieldYesNo: `true`, FieldChoice: `"c"`,
	}
	for kind := range values {
		field := EditableField{Name: "x", Type: kind, Choices: []Choice{{Value: "c"}}}
		require.NoError(t, field.Check(json.RawMessage(values[kind])), kind)
		for _, other := range []string{`{}`, `[]`, `[1]`, `{"amount":"x","currency":"EUR"}`, `{"amount":1}`, `{"amount":1,"currency":"EUR","x":1}`, `1 2`, `{`, ``} {
			require.Error(t, field.Check(json.RawMessage(other)), "%s as %s", other, kind)
		}
	}
}

// Whatever is typed or sent, it is refused with a sentence, or it is a value of the
// field's type that is read the same again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "1.50", "420.00 EUR", "2026-11-30", "a\x00", "\xff", `"`, "\u2028", "1e9", strings.Repeat("[", 2000)} {
		f.Add(seed)
	}
	kinds := []FieldType{FieldText, FieldNumber, FieldMoney, FieldDate, FieldDateTime, FieldYesNo, FieldChoice}
	f.Fuzz(func(t *testing.T, typed string) {
		for _, kind := range kinds {
			field := EditableField{Name: "x", Type: kind, Choices: []Choice{{Value: "c"}}, Value: json.RawMessage(`{"amount":"1","currency":"EUR"}`)}
			value, err := field.Read(typed)
			if err == nil {
				require.True(t, json.Valid(value))
				require.NoError(t, field.Check(value))
				require.True(t, same(value, compact(value)))
			}
			_ = field.Check(json.RawMessage(typed))
		}
	})
}
