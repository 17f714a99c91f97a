package expr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

// scope is what the formulas of these tests see.
func scope(t testing.TB) expr.Scope {
	t.Helper()
	v, err := expr.DecodeJSON([]byte(`{
		"input": {
			"order": 9007199254740993, "sum": 0.1, "big": 123456789012345678901234567890, "huge": 1e400,
			"name": "Ada", "empty": null, "yes": true, "list": [1, 2.5, 3], "none": [],
			"total": {"amount": 420.00, "currency": "EUR"}, "fee": {"amount": 5, "currency": "EUR"},
			"usd": {"amount": 1, "currency": "USD"},
			"rows": [{"price": 1.10, "n": 3}, {"price": 0.05, "n": 2}],
			"odd name": {"x": 1}, "when": "2026-11-30T09:00:00+01:00"
		},
		"steps": {"triage": {"kind": "refund", "score": 7}}
	}`))
	require.NoError(t, err)
	root := v.(map[string]any)
	return expr.Scope{"input": root["input"], "steps": root["steps"]}
}

func TestFormulasComputeExactly(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`0.1 + 0.2 == 0.3`:                      `true`,
		`input.sum + 0.2`:                       `0.3`,
		`0.1 + 0.2`:                             `0.3`,
		`1.10 + 1.10`:                           `2.20`,
		`0.12345678901234567890 * 1`:            `0.12345678901234567890`,
		`-0.5 - - .5`:                           `0.0`,
		`1e3 + 1`:                               `1001`,
		`1.5e-3 + 0`:                            `0.0015`,
		`7 / 2`:                                 `3.5`,
		`8 / 2`:                                 `4`,
		`7 % 3`:                                 `1`,
		`7.5 % 2`:                               `1.5`,
		`1 / 3`:                                 `0.3333333333333333333333333333333333`,
		`100 / 8.0`:                             `12.5`,
		`1 == 1.0`:                              `true`,
		`1.10 == 1.1`:                           `true`,
		`2 in [1, 2.0]`:                         `true`,
		`"1" == 1`:                              `false`,
		`1 != null`:                             `true`,
		`input.order`:                           `9007199254740993`,
		`input.order + 1`:                       `9007199254740994`,
		`input.order == 9007199254740992`:       `false`,
		`input.big`:                             `123456789012345678901234567890`,
		`[input.big]`:                           `[123456789012345678901234567890]`,
		`input.huge`:                            `1e400`,
		`input.total`:                           `{"amount":420.00,"currency":"EUR"}`,
		`input.total + input.fee`:               `{"amount":425.00,"currency":"EUR"}`,
		`input.total * 0.19`:                    `{"amount":79.8000,"currency":"EUR"}`,
		`round(input.total * 0.195, 2)`:         `{"amount":81.90,"currency":"EUR"}`,
		`input.total / input.fee`:               `84`,
		`input.total > money(400, "EUR")`:       `true`,
		`-input.fee`:                            `{"amount":-5,"currency":"EUR"}`,
		`input.total == input.usd`:              `false`,
		`input.total.amount > 419.99`:           `true`,
		`round(2.5)`:                            `3`,
		`round(-2.5)`:                           `-3`,
		`round(1.005, 2)`:                       `1.01`,
		`abs(-3.5)`:                             `3.5`,
		`min(3, 2.5, 4)`:                        `2.5`,
		`max(input.list)`:                       `3`,
		`sum(input.list)`:                       `6.5`,
		`sum([input.total, input.fee])`:         `{"amount":425.00,"currency":"EUR"}`,
		`sum(input.none)`:                       `0`,
		`sum(input.rows.map(r, r.price * r.n))`: `3.40`,
		`input.rows.filter(r, r.price > 1).size()`:        `1`,
		`input.rows.exists(r, r.n == 2)`:                  `true`,
		`input.rows.all(r, r.n > 2)`:                      `false`,
		`input.list.exists_one(x, x == 2.50)`:             `true`,
		`input.list[1] + 1`:                               `3.5`,
		`input.list[4 / 2]`:                               `3`,
		`input["odd name"].x`:                             `1`,
		`input.name + "!"`:                                `"Ada!"`,
		`input.name.lowerAscii()`:                         `"ada"`,
		`upper("über")`:                                   `"ÜBER"`,
		`size("Ünï")`:                                     `3`,
		`"a,b".split(",")`:                                `["a","b"]`,
		`["a","b"].join("-")`:                             `"a-b"`,
		`join([1, 2.50])`:                                 `"1, 2.50"`,
		`"Wörter".substring(1, 3)`:                        `"ör"`,
		`"Wörter".indexOf("t")`:                           `3`,
		`replace("a.b.c", ".", "")`:                       `"abc"`,
		`" x ".trim()`:                                    `"x"`,
		`"INV-7".matches("^INV-[0-9]+$")`:                 `true`,
		`number(" 12.50 ") + 1`:                           `13.50`,
		`text(input.total)`:                               `"€420.00"`,
		`first(input.list) + last(input.list)`:            `4`,
		`default(first(input.none), 9)`:                   `9`,
		`default(input.missing, "x")`:                     `"x"`,
		`default(input.missing.deeper, "x")`:              `"x"`,
		`default(input.empty, "x")`:                       `"x"`,
		`default(input.name, "x")`:                        `"Ada"`,
		`default(steps.later.text, "")`:                   `""`,
		`default(input.empty.x, 1)`:                       `1`,
		`default(input.empty.x.y, input.name)`:            `"Ada"`,
		`has(input.empty.x)`:                              `false`,
		`default(input.list[9].x, 1)`:                     `1`,
		`default(input.name.x, 1)`:                        `1`,
		`has(input.name)`:                                 `true`,
		`has(input.empty)`:                                `false`,
		`has(steps.later.text)`:                           `false`,
		`input.yes ? "a" : input.missing`:                 `"a"`,
		`!input.yes || true`:                              `true`,
		`{"a": 1.0, "b": [input.name]}`:                   `{"a":1.0,"b":["Ada"]}`,
		`"order" in input`:                                `true`,
		`[1, 2] + [3]`:                                    `[1,2,3]`,
		`timestamp(input.when) < timestamp("2026-12-01")`: `true`,
		`timestamp("2026-11-30") + duration("24h") == timestamp("2026-12-01")`: `true`,
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			f, err := expr.Compile(src)
			require.NoError(t, err)
			v, err := f.Eval(t.Context(), scope(t))
			require.NoError(t, err)
			got, err := expr.EncodeJSON(v)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}

func TestCompileSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]struct {
		line, column int
		message      string
	}{
		``:                          {1, 1, "empty"},
		"input.a +\n  foo":          {2, 3, "“foo” is not known"},
		`inputs.a`:                  {1, 1, "“inputs” is not known"},
		`1 + nope(2)`:               {1, 9, "no function “nope”"},
		`input.a.frobnicate()`:      {1, 19, "no function “frobnicate”"},
		`size(1, 2)`:                {1, 5, "takes 1 value, but has 2"},
		`1 +`:                       {1, 4, "ends too early"},
		`(1 + 2`:                    {1, 7, "ends too early"},
		`input.a ? 1`:               {1, 12, "ends too early"},
		`1 2`:                       {1, 3, "cannot be read at “2”"},
		`input.a && #`:              {1, 12, "cannot be read at “#”"},
		`1u + 2`:                    {1, 1, "no “u”"},
		`b"abc"`:                    {1, 1, "no bytes"},
		`google.type.Money{a: 1}`:   {1, 18, "no types to build"},
		`[1].all(2, true)`:          {1, 9, "all, exists, map and filter"},
		"input.\x00":                {1, 1, "NUL"},
		"\"\xff\"":                  {1, 1, "UTF-8"},
		`input.items.all(x, y > 1)`: {1, 20, "“y” is not known"},
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			_, err := expr.Compile(src)
			var p *expr.Problem
			require.ErrorAs(t, err, &p)
			require.Contains(t, p.Message, want.message)
			require.Equal(t, [2]int{want.line, want.column}, [2]int{p.Line, p.Column}, p.Message)
		})
	}
}

func TestEvalErrorsAreSentences(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`input.nope + 1`:                   "There is nothing at input.nope.",
		`input.nope.deeper + 1`:            "There is nothing at input.nope",
		`input.nope`:                       "There is nothing at input.nope.",
		`steps.later.text == "x"`:          "There is nothing at steps.later",
		`item.x + 1`:                       "There is nothing at item",
		`input.empty.x + 1`:                "input.empty",
		`input.list[7] + 1`:                "There is nothing at input.list.7.",
		`input.big + 1`:                    "more than 64 bits",
		`input.big == 1`:                   "more than 64 bits",
		`9223372036854775807 + 1`:          "more than 64 bits",
		`-9223372036854775807 - 2`:         "more than 64 bits",
		`9223372036854775807 * 2`:          "more than 64 bits",
		`input.huge + 1`:                   "200 digits",
		`input.total + input.usd`:          "EUR and USD cannot be combined",
		`input.total > input.usd`:          "EUR and USD cannot be combined",
		`input.total > 500`:                "compare its .amount",
		`input.total + 1`:                  ".amount",
		`1 / 0`:                            "divides by zero",
		`1.5 % 0.0`:                        "divides by zero",
		`"a" + 1`:                          "Cannot add a text and a number",
		`"a" < 1`:                          "A text cannot be compared with a number",
		`[1] < [2]`:                        "A list cannot be compared",
		`number("12,5")`:                   "1234.50",
		`1 in 2`:                           "looks into a list",
		`min([])`:                          "at least one value",
		`"x".matches("(((")`:               "cannot be read",
		`"x".matches("((a{1,99}){1,99})")`: "cannot be read",
		`default(1 / 0, 1)`:                "divides by zero",
		`has(input.total + input.usd)`:     "cannot be combined",
		`"abc".substring(2, 9)`:            "places within it",
		`{1: 2}`:                           "must be texts",
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			f, err := expr.Compile(src)
			require.NoError(t, err)
			_, err = f.Eval(t.Context(), scope(t))
			var p *expr.Problem
			require.ErrorAs(t, err, &p)
			require.Contains(t, p.Message, want)
		})
	}
}

func TestBoolWantsYesOrNo(t *testing.T) {
	t.Parallel()
	f, err := expr.Compile(`input.name`)
	require.NoError(t, err)
	_, err = f.Bool(t.Context(), scope(t))
	require.ErrorContains(t, err, "gives a text")
	f, err = expr.Compile(`input.yes`)
	require.NoError(t, err)
	ok, err := f.Bool(t.Context(), scope(t))
	require.NoError(t, err)
	require.True(t, ok)
}

func TestRefsNameWhatIsRead(t *testing.T) {
	t.Parallel()
	f, err := expr.Compile(`input.rows.exists(r, r.n > steps.triage.score) && default(steps["a-b"].x, input.y) == item && has(run.id) && input.list[index].z == 1`)
	require.NoError(t, err)
	var got []string
	for _, r := range f.Refs() {
		s := r.String()
		if r.Guarded {
			s += "?"
		}
		got = append(got, s)
	}
	require.Equal(t, []string{"input.rows", "steps.triage.score", "steps.a-b.x?", "input.y", "item", "run.id?", "input.list", "index"}, got)
}

// No formula may take more than its share, whatever it is made of.
func TestBombsAreDefused(t *testing.T) {
	t.Parallel()
	twice := func(what string, n int) string { return what + strings.Repeat(".map(x, x + x)", n) }
	for name, src := range map[string]string{
		"texts that double":   twice(`["aaaaaaaaaaaaaaaa"]`, 25),
		"lists that double":   twice(`[[1, 2, 3]]`, 25),
		"nested loops":        `input.many.all(a, input.many.all(b, input.many.all(c, a + b + c >= 0)))`,
		"records that share":  `[{}]` + strings.Repeat(`.map(x, {"a": x, "b": x})`, 25),
		"compare what shares": `[[1]]` + strings.Repeat(`.map(x, [x, x])`, 25) + `.all(x, x == x && x in [x])`,
		"replace":             `input.long.replace("a", input.long)`,
		"join":                `input.many.map(x, input.long).join(input.long)`,
		"numbers":             `[9.9]` + strings.Repeat(`.map(x, x * x)`, 25),
		"brackets":            strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"open brackets":       strings.Repeat("[", 9999),
		"nots":                strings.Repeat("!", 9999) + "true",
		"questions":           strings.Repeat("true ? 1 : ", 900) + "1",
		"sums":                "1" + strings.Repeat("+1", 4900),
		"dots":                "input" + strings.Repeat(".a", 4900),
		"calls":               strings.Repeat("size(", 1500) + "1",
		"too long":            strings.Repeat(" ", 20_000) + "1",
		"maps":                `input.many.map(a, input.many.map(b, input.many))`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scope(t)
			many := make([]any, 2000)
			for i := range many {
				many[i] = "x"
			}
			s["input"].(map[string]any)["many"] = many
			s["input"].(map[string]any)["long"] = strings.Repeat("a", 100_000)
			start := time.Now()
			f, err := expr.Compile(src)
			if err == nil {
				var v any
				if v, err = f.Eval(context.Background(), s); err == nil {
					_, err = expr.EncodeJSON(v)
				}
			}
			t.Log(time.Since(start), err)
			require.Error(t, err)
			require.Less(t, time.Since(start), 20*time.Second)
		})
	}
}

func TestEvalStopsWithItsContext(t *testing.T) {
	t.Parallel()
	f, err := expr.Compile(`1 + 1`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Eval(ctx, expr.Scope{})
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkCondition(b *testing.B) {
	f, err := expr.Compile(`steps.triage.score > 5 && input.total.amount >= 100.50`)
	require.NoError(b, err)
	s := scope(b)
	for b.Loop() {
		if _, err := f.Bool(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
