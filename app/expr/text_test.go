package expr_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

func TestTextsInsertValuesInWords(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		``:                                 "",
		`plain } text }} { here`:           "plain } text }} { here",
		`Dear {{ input.name }},`:           "Dear Ada,",
		"{{input.name}}{{\n input.sum}}":   "Ada0.1",
		`{{ "{{" }} and {{ '}}' }}`:        "{{ and }}",
		`{{ {"a": {"b": 1}}.a.b }}`:        "1",
		`{{ input.total }}`:                "€420.00",
		`{{ money(1234567.5, "USD") }}`:    "$1,234,567.50",
		`{{ money(-3, "JPY") }}`:           "-¥3",
		`{{ money(-1200.125, "CHF") }}`:    "CHF -1,200.125",
		`{{ input.yes }} {{ !input.yes }}`: "yes no",
		`{{ input.list }}`:                 "1, 2.5, 3",
		`{{ input.none }}`:                 "",
		`{{ [input.total, input.fee] }}`:   "€420.00, €5.00",
		`{{ input.rows }}`:                 "[\n  {\n    \"n\": 3,\n    \"price\": 1.10\n  },\n  {\n    \"n\": 2,\n    \"price\": 0.05\n  }\n]",
		`{{ input.order }}`:                "9007199254740993",
		`{{ default(input.empty, "-") }}`:  "-",
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			text, err := expr.ParseText(src)
			require.NoError(t, err)
			got, err := text.Render(t.Context(), scope(t))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestTextProblemsCountInTheWholeText(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]struct {
		line, column int
		message      string
	}{
		"Dear\nüü {{ foo }}":           {2, 7, "“foo” is not known"},
		"a {{ input.a +\n bar }}":      {2, 2, "“bar” is not known"},
		"a {{ }}":                      {1, 6, "empty"},
		"\n {{ input.a":                {2, 2, "no “}}”"},
		`{{ "}} `:                      {1, 1, "no “}}”"},
		"a\x00":                        {1, 1, "NUL"},
		strings.Repeat("{{ 1 }}", 501): {1, 3501, "more than 500"},
		strings.Repeat("x", 400_001):   {1, 1, "longer than"},
	} {
		_, err := expr.ParseText(src)
		var p *expr.Problem
		require.ErrorAs(t, err, &p)
		require.Contains(t, p.Message, want.message)
		require.Equal(t, [2]int{want.line, want.column}, [2]int{p.Line, p.Column}, p.Message)
	}
}

func TestMissingValuesNameTheirPlace(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"Hi\n {{ input.nope }}":   "line 2, column 5: There is nothing at input.nope.",
		"{{ input.empty }}":       "line 1, column 4: “input.empty” is empty.",
		"{{ input.nope + \"\" }}": "line 1, column 9: There is nothing at input.nope.",
	} {
		text, err := expr.ParseText(src)
		require.NoError(t, err)
		_, err = text.Render(t.Context(), scope(t))
		require.ErrorContains(t, err, want)
	}
}

func TestRenderedTextIsBoundedAndPlain(t *testing.T) {
	t.Parallel()
	text, err := expr.ParseText(strings.Repeat("{{ input }}", 300))
	require.NoError(t, err)
	_, err = text.Render(t.Context(), expr.Scope{"input": strings.Repeat("x", 100_000)})
	require.ErrorContains(t, err, "longer than")
	got, err := text.Render(t.Context(), expr.Scope{"input": "a\x00\xed\xa0\x80"})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("a\uFFFD\uFFFD", 300), got)
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{`Dear {{ input.name }}`, `{{ "{{" }}`, `{{ {"a":{"b":1}}.a }}`, `{{ 0.1+.2 }}{{`, "{{ '''}}''' }}", `{{ default(input.x, 1/0) }}`, `{{ input.list.map(x, x*x) }}`} {
		f.Add(seed)
	}
	s := scope(f)
	f.Fuzz(func(t *testing.T, src string) {
		text, err := expr.ParseText(src)
		if err != nil {
			var p *expr.Problem
			require.ErrorAs(t, err, &p)
			require.Positive(t, p.Line)
			require.Positive(t, p.Column)
			return
		}
		text.Refs()
		out, err := text.Render(context.Background(), s)
		if err == nil {
			require.NoError(t, expr.CheckText(out))
		}
	})
}

func FuzzFormula(f *testing.F) {
	for _, seed := range []string{
		`0.1 + 0.2 == 0.3`, `input.rows.map(r, r.price * r.n)`, `sum(input.list) / 7`, `input["odd name"].x`,
		`has(input.a.b) ? 1 : default(steps.x.y, {"a": [1]})`, `input.total * 1.5 > input.fee`, `1e3 % -.7`, `timestamp(input.when)`,
		`round(1.005, 2)`, `input.list.exists(input, input > 2)`, `"a".replace("", "b")`, `[1][1.0]`,
	} {
		f.Add(seed)
	}
	s := scope(f)
	f.Fuzz(func(t *testing.T, src string) {
		formula, err := expr.Compile(src)
		if err != nil {
			var p *expr.Problem
			require.ErrorAs(t, err, &p)
			require.NoError(t, expr.CheckText(p.Message))
			return
		}
		v, err := formula.Eval(context.Background(), s)
		if err != nil {
			var p *expr.Problem
			require.ErrorAs(t, err, &p)
			return
		}
		if data, err := expr.EncodeJSON(v); err == nil {
			_, err = expr.DecodeJSON(data)
			require.NoError(t, err)
		}
	})
}
