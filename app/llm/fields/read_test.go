package fields

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func record(fields ...Field) *Schema { return &Schema{Shape: ShapeRecord, Fields: fields} }

func field(name string, shape Shape) Field {
	return Field{Name: name, Schema: Schema{Shape: shape}}
}

func optional(name string, shape Shape) Field {
	return Field{Name: name, Optional: true, Schema: Schema{Shape: shape}}
}

func choice(name string, choices ...string) Field {
	return Field{Name: name, Schema: Schema{Shape: ShapeChoice, Choices: choices}}
}

// TestRead: what fits, in the form it is handed on, and how many repairs it took.
func TestRead(t *testing.T) {
	t.Parallel()
	note := record(field("note", ShapeText))
	tests := []struct {
		name    string
		schema  *Schema
		text    string
		want    string
		repairs int
	}{
		{"bare", note, `{"note":"x"}`, `{"note":"x"}`, 0},
		{"asked order, extras dropped", record(field("b", ShapeText), field("a", ShapeInteger)), `{"a":1,"z":[{}],"b":"x"}`, `{"b":"x","a":1}`, 0},
		{"braces in prose before", note, `With {placeholders} and {"quotes"}: {"note":"x"}`, `{"note":"x"}`, 0},
		{"example before that does not fit", note, `Form: {"example":1}. Answer: {"note":"x"}`, `{"note":"x"}`, 0},
		{"the same twice", note, `{"note":"x"} again: {"note": "x"}`, `{"note":"x"}`, 0},
		{"in a list", note, `[{"note":"x"}]`, `{"note":"x"}`, 0},
		{"empty object beside", note, `{} {"note":"x"}`, `{"note":"x"}`, 0},
		{"html is not escaped", note, `{"note":"<b>&\u003c"}`, `{"note":"<b>&<"}`, 0},
		{"raw line breaks", note, "{\"note\":\"a\nb\tc\"}", `{"note":"a\nb\tc"}`, 1},
		{"raw line breaks after another object", note, "{\"x\":1} {\"note\":\"a\nb\"}", `{"note":"a\nb"}`, 1},
		{"as a JSON string", note, `"{\"note\":\"x\"}"`, `{"note":"x"}`, 1},
		{"unclosed thoughts", note, `<think>hm {"note":"x"}`, `{"note":"x"}`, 0},
		{"optional missing and null", record(optional("a", ShapeDate), optional("b", ShapeText)), `{"b":null}`, `{"a":null,"b":null}`, 0},
		{"all optional, empty", record(optional("a", ShapeText)), `{}`, `{"a":null}`, 0},
		{"number verbatim", record(field("n", ShapeNumber)), `{"n":-12.3400E+05}`, `{"n":-12.3400E+05}`, 0},
		{"minus zero", record(field("n", ShapeNumber)), `{"n":-0}`, `{"n":-0}`, 0},
		{"number as text", record(field("n", ShapeNumber)), `{"n":" 12.50 "}`, `{"n":12.50}`, 1},
		{"integer with zeros", record(field("n", ShapeInteger)), `{"n":3.00}`, `{"n":3}`, 0},
		{"text that is a number", note, `{"note":0012345678901234567890}`, ``, 0},
		{"text from a number", note, `{"note":12345678901234567890}`, `{"note":"12345678901234567890"}`, 1},
		{"yes", record(field("y", ShapeYesNo)), `{"y":"Yes"}`, `{"y":true}`, 1},
		{"no", record(field("y", ShapeYesNo)), `{"y":false}`, `{"y":false}`, 0},
		{"choice in other case", record(choice("c", "Low", "High")), `{"c":" high"}`, `{"c":"High"}`, 1},
		{"choice exact among look-alikes", record(choice("c", "a", "A")), `{"c":"A"}`, `{"c":"A"}`, 0},
		{"date", record(field("d", ShapeDate)), `{"d":"2028-02-29"}`, `{"d":"2028-02-29"}`, 0},
		{"time", record(field("d", ShapeTime)), `{"d":"2028-02-29T23:59:00+09:00"}`, `{"d":"2028-02-29T23:59:00+09:00"}`, 0},
		{"empty list", record(Field{Name: "l", Schema: Schema{Shape: ShapeList, Item: &Schema{Shape: ShapeText}}}), `{"l":[]}`, `{"l":[]}`, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, test.schema.Check())
			data, repairs, err := Read(test.text, test.schema)
			if test.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, string(data))
			require.Len(t, repairs, test.repairs, "%v", repairs)
		})
	}
}

// TestReadSaysWhatIsWrong: each misfit names the place, what was asked and what
// came.
func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	lines := record(Field{Name: "lines", Schema: Schema{Shape: ShapeList, Item: record(field("amount", ShapeNumber))}})
	tests := []struct {
		name   string
		schema *Schema
		text   string
		want   string
	}{
		{"prose", record(field("n", ShapeText)), `I think so.`, "it holds no JSON object"},
		{"only prose in braces", record(field("n", ShapeText)), `{a} {b} {"c"}`, "it holds no JSON object"},
		{"a list", record(field("n", ShapeText)), `[1,2]`, "it holds no JSON object"},
		{"missing", record(field("n", ShapeText)), `{"m":"x"}`, "n is missing"},
		{"null where needed", record(field("n", ShapeText)), `{"n":null}`, "n must be a text, but is null"},
		{"deep place", lines, `{"lines":[{"amount":1},{"amount":"ten"}]}`, `lines[1].amount must be a number, but is the text "ten"`},
		{"not a list", lines, `{"lines":{"amount":1}}`, "lines must be a list, but is an object"},
		{"not an object", lines, `{"lines":[3]}`, "lines[0] must be an object, but is the number 3"},
		{"fraction", record(field("n", ShapeInteger)), `{"n":1.5}`, "n must be a whole number, but is the number 1.5"},
		{"grouped digits", record(field("n", ShapeNumber)), `{"n":"1,250.00"}`, `n must be a number, but is the text "1,250.00"`},
		{"boolean as number", record(field("n", ShapeNumber)), `{"n":true}`, "n must be a number, but is true"},
		{"maybe", record(field("y", ShapeYesNo)), `{"y":"maybe"}`, `y must be true or false, but is the text "maybe"`},
		{"other choice", record(choice("c", "low", "high")), `{"c":"medium"}`, `c must be one of "low", "high", but is the text "medium"`},
		{"ambiguous choice", record(choice("c", "Low", "LOW")), `{"c":"low"}`, "c must be one of"},
		{"no such day", record(field("d", ShapeDate)), `{"d":"2027-02-29"}`, "d must be a date like"},
		{"no zone", record(field("d", ShapeTime)), `{"d":"2027-02-28T10:00:00"}`, "d must be a date and time with zone"},
		{"cut", record(field("n", ShapeText)), `{"n":"x`, "its JSON ends in the middle"},
		{"cut with a whole inside", record(optional("n", ShapeText)), `{"a":{"n":"x"},"b":`, "its JSON ends in the middle"},
		{"broken with a whole inside", record(optional("n", ShapeText)), `{"a":{"n":"x"} oops}`, "its JSON is broken"},
		{"trailing comma", record(field("n", ShapeText)), `{"n":"x",}`, "its JSON is broken"},
		{"key twice", record(field("n", ShapeText)), `{"n":"x","n":"y"}`, `the key "n" stands twice`},
		{"two results", record(field("n", ShapeText)), `{"n":"x"} or {"n":"y"}`, "two different results"},
		{"nested too deep", record(field("n", ShapeText)), `{"n":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "deeper than 100 levels"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Read(test.text, test.schema)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestReadIsLinear: texts made to be read many times over are read in time.
func TestReadIsLinear(t *testing.T) {
	t.Parallel()
	schema := record(field("n", ShapeText))
	const size = 1 << 18
	for _, unit := range []string{"{", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":{"b":1},`, `{ `, `{"\`, `{"{`, `[`, `"`, `{}`, `{"a":1}`, "{\"a\":\"\n", "{\"a\":\"\n\"}"} {
		began := time.Now()
		_, _, err := Read(strings.Repeat(unit, size/len(unit)), schema)
		require.Error(t, err, unit)
		require.Less(t, time.Since(began), 5*time.Second, unit)
	}
}

// FuzzRead: whatever a model writes, the reader ends without panic, and what it
// hands on fits the schema: reading it again gives the same.
func FuzzRead(f *testing.F) {
	schema := record(field("note", ShapeText), field("total", ShapeNumber), optional("count", ShapeInteger), optional("due", ShapeDate),
		optional("urgent", ShapeYesNo), Field{Name: "c", Optional: true, Schema: Schema{Shape: ShapeChoice, Choices: []string{"a", "b"}}},
		Field{Name: "lines", Optional: true, Schema: Schema{Shape: ShapeList, Item: record(field("x", ShapeText))}})
	for _, text := range []string{
		`{"note":"x","total":1}`, "```json\n{\"note\":\"a```b\",\"total\":\"2.50\"}\n``` [1]", `{"note":"\ud83d","total":1e400}`,
		`{"note":"` + "\n" + `","total":1,"count":3.0,"due":"2027-01-31","urgent":"yes","c":"A","lines":[{"x":1}]}`, `"{\"note\":\"x\",\"total\":1}"`,
		`<think>{</think>{"note":"x","total":-0.0}`, strings.Repeat("[", 300), `{"note":{"note":"x","total":1}`, "\x00\xff{\"\x00\":1}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, _, err := Read(text, schema)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.True(t, json.Valid(data), "%s", data)
		require.NotContains(t, string(data), "\x00")
		require.NotContains(t, string(data), `\u0000`)
		again, repairs, err := Read(string(data), schema)
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
		require.Empty(t, repairs)
	})
}
