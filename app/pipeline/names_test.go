package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

func TestNamesStandForPlaces(t *testing.T) {
	t.Parallel()
	names := NewDataNames([]Datum{
		{Ref: "input.mail", From: "Input", Label: "Mail"},
		{Ref: "steps.sort.kind", Step: "sort", From: "Sort it", Label: "Kind"},
		{Ref: "steps.one.text", Step: "one", From: "Ask AI", Label: "Answer"},
		{Ref: "steps.two.text", Step: "two", From: "Ask AI", Label: "Answer"},
		{Ref: "steps.odd.x", Step: "odd", From: "Odd [name]", Label: "X"},
	})
	for stored, shown := range map[string]string{
		"Read {{ input.mail }} now":                         "Read [Input › Mail] now",
		"Read {{input.mail}} now":                           "Read [Input › Mail] now",
		`{{ default(steps.sort.kind, "none") }}!`:           "[Sort it › Kind, if empty: none]!",
		"{{ steps.one.text }} {{ steps.two.text }}":         "[Ask AI (one) › Answer] [Ask AI (two) › Answer]",
		"{{ steps.odd.x }}":                                 "{{ steps.odd.x }}",
		"{{ steps.sort.other }}":                            "{{ steps.sort.other }}",
		"{{ input.mail + 1 }}":                              "{{ input.mail + 1 }}",
		"{{ steps.sort.kind.of.it }}":                       "[Sort it › Kind: of: it]",
		"no insertion [1]":                                  "no insertion [1]",
		"taken at its word [Input › Mail] {{ input.mail }}": "taken at its word [Input › Mail] {{ input.mail }}",
	} {
		require.Equal(t, shown, names.ShownText(stored))
	}
	require.Equal(t, "Read {{ input.mail }} [who] now", names.StoredText("Read [Input › Mail] [who] now"))
	require.Equal(t, `{{ default(input.mail, "") }}`, names.StoredText("[Input › Mail, if empty: ]"))
	for stored, shown := range map[string]string{
		"input.mail.size() > 3":                "[Input › Mail].size() > 3",
		`steps.sort.kind == "steps.sort.kind"`: `[Sort it › Kind] == "steps.sort.kind"`,
		"[input.mail, 'input.mail'][0]":        "[[Input › Mail], 'input.mail'][0]",
		"steps.sort.kinder":                    "steps.sort.kinder",
		"default(steps.one.text, input.mail)":  "default([Ask AI (one) › Answer], [Input › Mail])",
	} {
		require.Equal(t, shown, names.ShownFormula(stored))
		require.Equal(t, stored, names.StoredFormula(shown))
	}
}

// Whatever is stored in any template comes back as it was.
func TestNamesBringEverythingBack(t *testing.T) {
	t.Parallel()
	for _, template := range Templates() {
		program := Sketch(template.Document)
		names := NewDataNames(program.AllData())
		for _, n := range grow(&template.Document).all {
			for _, s := range append(n.Step.With.slots(), plainSlots(innerSlots(n.Step.With))...) {
				if s.text {
					require.Equal(t, spelled(s.source), names.StoredText(names.ShownText(s.source)))
					require.NotRegexp(t, `\{\{ (input|steps)\.[a-z_.]+ \}\}`, names.ShownText(s.source), "%s %s", template.Slug, n.ID())
					continue
				}
				require.Equal(t, s.source, names.StoredFormula(names.ShownFormula(s.source)))
			}
		}
	}
}

func plainSlots(slots []innerSlot) []slot {
	var out []slot
	for _, s := range slots {
		out = append(out, s.slot)
	}
	return out
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"{{ input.mail }}", "[Input › Mail]", `"[Input › Mail]`, `{{ default(input.mail, "x") }}`, "input.mail['a']"} {
		f.Add(seed)
	}
	names := NewDataNames([]Datum{{Ref: "input.mail", From: "Input", Label: "Mail"}, {Ref: "steps.a.b", From: "A", Label: "B"}})
	f.Fuzz(func(t *testing.T, s string) {
		if back := names.StoredText(names.ShownText(s)); back != s && back != spelled(s) && back != names.StoredText(s) {
			t.Fatalf("%q came back as %q", s, back)
		}
		if shown := names.ShownFormula(s); shown != s && names.StoredFormula(shown) != s {
			t.Fatalf("the formula %q came back as %q", s, names.StoredFormula(shown))
		}
	})
}

func TestConditionsReadAsSentences(t *testing.T) {
	t.Parallel()
	for formula, want := range map[string]Condition{
		`steps.a.n > 500`:                              {Tests: []Test{{"steps.a.n", TestMore, "500"}}},
		`steps.a.n>=500`:                               {Tests: []Test{{"steps.a.n", TestAtLeast, "500"}}},
		`steps.a.k == "a && b"`:                        {Tests: []Test{{"steps.a.k", TestIs, `"a && b"`}}},
		`steps.a.k != "x" && has(input.b)`:             {Tests: []Test{{"steps.a.k", TestIsNot, `"x"`}, {"input.b", TestFilled, ""}}},
		`!has(input.b) || input.c == true`:             {Any: true, Tests: []Test{{"input.b", TestEmpty, ""}, {"input.c", TestIs, "true"}}},
		`input.c.contains("x")`:                        {Tests: []Test{{"input.c", TestContains, `"x"`}}},
		`!input.c.contains("(")`:                       {Tests: []Test{{"input.c", TestLacks, `"("`}}},
		`input.m > money(500, "EUR")`:                  {Tests: []Test{{"input.m", TestMore, `money(500, "EUR")`}}},
		`timestamp(input.d) < timestamp("2026-12-01")`: {Tests: []Test{{"timestamp(input.d)", TestLess, `timestamp("2026-12-01")`}}},
		`steps.a.n <= input.limit`:                     {Tests: []Test{{"steps.a.n", TestAtMost, "input.limit"}}},
	} {
		got, ok := ReadCondition(formula)
		require.True(t, ok, formula)
		require.Equal(t, want, got)
		_, err := expr.Compile(got.Formula())
		require.NoError(t, err)
		again, ok := ReadCondition(got.Formula())
		require.True(t, ok)
		require.Equal(t, got, again)
	}
	for _, formula := range []string{
		"", "true", "a", "input.a + 1 > 2", "input.a > 1 && input.b > 2 || input.c > 3", "(input.a > 1)", `input.a == 'x'`,
		"input.a > 1 > 2", "default(input.a, 1) > 2", "input.a.exists(x, x > 1)", `input.a == "x`,
	} {
		_, ok := ReadCondition(formula)
		require.False(t, ok, formula)
	}
}

func FuzzCondition(f *testing.F) {
	for _, seed := range []string{`input.a > 1 && !has(input.b)`, `input.c.contains("x\"y") || input.a == "\\"`, `timestamp(input.d) < timestamp("x")`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, formula string) {
		c, ok := ReadCondition(formula)
		if !ok {
			return
		}
		squeeze := strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "", "\v", "", "\f", "", "\u0085", "", "\u00a0", "")
		if squeeze.Replace(c.Formula()) != squeeze.Replace(formula) {
			t.Fatalf("%q became %q", formula, c.Formula())
		}
	})
}

func TestWhatIsTypedIsTakenByItsType(t *testing.T) {
	t.Parallel()
	names := NewDataNames([]Datum{{Ref: "input.other", From: "Input", Label: "Other"}})
	of := func(typ FieldType) Datum { return Datum{Ref: "input.a", Field: Field{Type: typ, Currency: "EUR"}} }
	for _, c := range []struct {
		of      FieldType
		op      TestOp
		typed   string
		formula string
		shown   string
	}{
		{TypeNumber, TestMore, "500", `input.a > 500`, "500"},
		{TypeNumber, TestMore, "[Input › Other]", `input.a > input.other`, "[Input › Other]"},
		{TypeText, TestIs, "500", `input.a == "500"`, "500"},
		{TypeText, TestIs, `say "hi"`, `input.a == "say \"hi\""`, `say "hi"`},
		{anything, TestIs, "500", `input.a == 500`, "500"},
		{anything, TestIs, `"500"`, `input.a == "500"`, `"500"`},
		{anything, TestIs, "paid", `input.a == "paid"`, "paid"},
		{TypeYesNo, TestIs, "Yes", `input.a == true`, "yes"},
		{TypeYesNo, TestIs, "no", `input.a == false`, "no"},
		{TypeMoney, TestAtLeast, "500", `input.a >= money(500, "EUR")`, "500 EUR"},
		{TypeMoney, TestAtLeast, "5.50 CHF", `input.a >= money(5.50, "CHF")`, "5.50 CHF"},
		{TypeDate, TestLess, "2026-12-01", `timestamp(input.a) < timestamp("2026-12-01")`, "2026-12-01"},
		{TypeChoice, TestContains, "x", `input.a.contains("x")`, "x"},
		{TypeText, TestEmpty, "ignored", `!has(input.a)`, ""},
	} {
		test := TypedTest(of(c.of), c.op, c.typed, names)
		formula := Condition{Tests: []Test{test}}.Formula()
		require.Equal(t, c.formula, formula)
		_, err := expr.Compile(formula)
		require.NoError(t, err)
		read, ok := ReadCondition(formula)
		require.True(t, ok)
		value, typed := ShownTest(read.Tests[0], of(c.of), names)
		require.Equal(t, "input.a", value)
		require.Equal(t, c.shown, typed)
	}
}

func TestDataIsWhatHasRunBefore(t *testing.T) {
	t.Parallel()
	d := nest()
	d.Input = []Field{{Name: "mail", Label: "Mail", Type: TypeText, Required: true}, {Name: "note", Type: TypeText}}
	p := Sketch(d)
	refs := func(step string, behind ListKey) string {
		var out []string
		for _, one := range p.DataAt(step, behind) {
			if strings.HasPrefix(one.Ref, "run.") {
				continue
			}
			mark := ""
			if one.May {
				mark = "?"
			}
			out = append(out, one.Ref+mark)
		}
		return strings.Join(out, " ")
	}
	require.Equal(t, "input.mail input.note?", refs("a", ListRoot))
	require.Equal(t, "input.mail input.note? steps.a.v", refs("c", ListRoot))
	require.Equal(t, "input.mail input.note? steps.a.v steps.c.v", refs("d", ListRoot))
	require.Equal(t, "input.mail input.note? steps.a.v", refs("e", ListRoot))
	require.Equal(t, "round input.mail input.note? steps.a.v steps.b.case? steps.c.v? steps.d.v? steps.e.v?", refs("g", ListRoot))
	require.Contains(t, refs("f", ListSteps), "steps.g.v", "a loop's condition reads the round")
	require.NotContains(t, refs("f", ListRoot), "steps.g.v")
	require.Contains(t, refs("", ListRoot), "steps.f.best")
	require.Empty(t, refs("zz", ListRoot))

	// What is offered is what the checks let through.
	for _, step := range []string{"a", "c", "d", "e", "g", "f"} {
		for _, one := range p.DataAt(step, ListRoot) {
			changed, err := d.WithChanged(step, func(s *Step) error {
				if w, ok := s.With.(*Set); ok {
					w.Values = []Value{{"v", "default(" + one.Ref + ", 1)"}}
				}
				return nil
			})
			require.NoError(t, err)
			for _, p := range Blocking(Check(changed)) {
				require.NotEqual(t, step, p.Step, p.Message)
			}
		}
	}
}
