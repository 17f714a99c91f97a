package pipeline

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"tollgate/app/expr"
)

// Condition is a formula that reads as a sentence: tests of values, all of which must
// hold, or any.
type Condition struct {
	Any   bool
	Tests []Test
}

// Test compares one value.
type Test struct {
	Value string // what is tested, as a formula names its place
	Op    TestOp
	With  string // what it is compared with, as a formula: a text in quotes, a number, a place
}

// TestOp is how a value is tested.
type TestOp string

// The tests, in the order in which a builder is offered them.
const (
	TestIs       TestOp = "is"
	TestIsNot    TestOp = "is_not"
	TestMore     TestOp = "more"
	TestAtLeast  TestOp = "at_least"
	TestLess     TestOp = "less"
	TestAtMost   TestOp = "at_most"
	TestContains TestOp = "contains"
	TestLacks    TestOp = "lacks"
	TestFilled   TestOp = "filled"
	TestEmpty    TestOp = "empty"
)

// Alone tells a test that compares with nothing.
func (o TestOp) Alone() bool { return o == TestFilled || o == TestEmpty }

var signs = []struct {
	op   TestOp
	sign string
}{
	{TestAtLeast, " >= "}, {TestAtMost, " <= "}, {TestIs, " == "}, {TestIsNot, " != "}, {TestMore, " > "}, {TestLess, " < "},
}

// Formula is the condition as it is stored; empty without tests.
func (c Condition) Formula() string {
	var out []string
	for _, t := range c.Tests {
		out = append(out, t.formula())
	}
	if c.Any {
		return strings.Join(out, " || ")
	}
	return strings.Join(out, " && ")
}

func (t Test) formula() string {
	switch t.Op {
	case TestFilled:
		return "has(" + t.Value + ")"
	case TestEmpty:
		return "!has(" + t.Value + ")"
	case TestContains:
		return t.Value + ".contains(" + t.With + ")"
	case TestLacks:
		return "!" + t.Value + ".contains(" + t.With + ")"
	}
	for _, s := range signs {
		if s.op == t.Op {
			return t.Value + s.sign + t.With
		}
	}
	return ""
}

// ReadCondition reads a formula as a condition; ok is false where it says more than a
// sentence of tests can. What it takes is the same formula again, but for spaces.
func ReadCondition(formula string) (c Condition, ok bool) {
	all, any := splitOutside(formula, "&&"), splitOutside(formula, "||")
	parts := all
	switch {
	case len(all) > 1 && len(any) > 1:
		return c, false
	case len(any) > 1:
		c.Any, parts = true, any
	}
	for _, part := range parts {
		t, ok := readTest(strings.TrimSpace(part))
		if !ok {
			return Condition{}, false
		}
		c.Tests = append(c.Tests, t)
	}
	return c, true
}

var (
	hasTest      = regexp.MustCompile(`^(!?)has\(([^()]+)\)$`)
	containsTest = regexp.MustCompile(`^(!?)([^()!"]+)\.contains\((.+)\)$`)
	moneyTerm    = regexp.MustCompile(`^money\(-?[0-9.]+, "[A-Z]{3}"\)$`)
	dateTerm     = regexp.MustCompile(`^timestamp\((.+)\)$`)
)

func readTest(part string) (Test, bool) {
	if m := hasTest.FindStringSubmatch(part); m != nil {
		return Test{Value: m[2], Op: either(map[string]TestOp{"!": TestEmpty}[m[1]], TestFilled)}, isPlace(m[2])
	}
	if m := containsTest.FindStringSubmatch(part); m != nil {
		return Test{m[2], either(map[string]TestOp{"!": TestLacks}[m[1]], TestContains), m[3]}, isPlace(m[2]) && isTerm(m[3])
	}
	for _, s := range signs {
		sides := splitOutside(part, strings.TrimSpace(s.sign))
		if len(sides) == 2 {
			t := Test{strings.TrimSpace(sides[0]), s.op, strings.TrimSpace(sides[1])}
			return t, isTested(t.Value) && isTerm(t.With)
		}
	}
	return Test{}, false
}

func isPlace(s string) bool { _, ok := expr.Place(s); return ok && strings.TrimSpace(s) == s }

// isTested tells a place, or the time at a place.
func isTested(s string) bool {
	if m := dateTerm.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	return isPlace(s)
}

// isTerm tells a place, a text in quotes, a number, yes or no, money or a time.
func isTerm(s string) bool {
	if m := dateTerm.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	switch {
	case s == "true", s == "false", isPlace(s), moneyTerm.MatchString(s):
		return true
	case isNumber(s):
		return true
	}
	_, ok := unquote(s)
	return ok
}

var plainNumber = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)

func isNumber(s string) bool { return plainNumber.MatchString(s) }

// splitOutside splits a formula at a sign that is not inside of quotes or brackets.
func splitOutside(formula, sign string) []string {
	var out []string
	begin, depth := 0, 0
	for i := 0; i < len(formula); i++ {
		switch c := formula[i]; {
		case c == '"' || c == '\'':
			i = closingQuote(formula, i) - 1
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case depth == 0 && strings.HasPrefix(formula[i:], sign):
			out = append(out, formula[begin:i])
			i += len(sign) - 1
			begin = i + 1
		}
	}
	return append(out, formula[begin:])
}

// Quote writes a text as a formula does.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsControl(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// unquote reads what Quote writes.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || closingQuote(s, 0) != len(s) || s[len(s)-1] != '"' {
		return "", false
	}
	text, err := strconv.Unquote(s)
	return text, err == nil && Quote(text) == s
}

// TypedTest makes a test of what a person chose and typed. What is typed is a number, a
// date or an amount where the value is one, the name of another value in brackets, or else
// a text; a text in quotes is always a text.
func TypedTest(of Datum, op TestOp, typed string, names *DataNames) Test {
	t := Test{Value: of.Ref, Op: op}
	typed = strings.TrimSpace(typed)
	stored := names.StoredFormula(typed)
	quoted, isQuoted := unquote(typed)
	switch {
	case op.Alone():
		return t
	case stored != typed && isPlace(stored):
		t.With = stored
	case isQuoted:
		t.With = Quote(quoted)
	case of.Field.Type == TypeYesNo:
		t.With = strconv.FormatBool(isYes(typed))
	case of.Field.Type == TypeMoney && isAmount(typed, of.Field.Currency):
		t.With = amountTerm(typed, of.Field.Currency)
	case of.Field.Type == TypeText || of.Field.Type == TypeChoice:
		t.With = Quote(typed)
	case isNumber(typed):
		t.With = typed
	default:
		t.With = Quote(typed)
	}
	if (of.Field.Type == TypeDate || of.Field.Type == TypeDateTime) && op != TestContains && op != TestLacks {
		t.Value, t.With = "timestamp("+t.Value+")", "timestamp("+t.With+")"
	}
	return t
}

// ShownTest is what a person chose and typed for a test.
func ShownTest(t Test, of Datum, names *DataNames) (value, typed string) {
	value, typed = bareDate(t.Value), bareDate(t.With)
	switch text, quoted := unquote(typed); {
	case t.Op.Alone():
		return value, ""
	case typed == "true":
		return value, "yes"
	case typed == "false":
		return value, "no"
	case moneyTerm.MatchString(typed):
		amount, currency, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(typed, "money("), `")`), `, "`)
		return value, amount + " " + currency
	case quoted && TypedTest(of, t.Op, text, names).With == t.With:
		return value, text
	case quoted:
		return value, typed
	}
	return value, names.ShownFormula(typed)
}

func bareDate(s string) string {
	if m := dateTerm.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

func isYes(typed string) bool {
	switch strings.ToLower(typed) {
	case "no", "false", "0", "":
		return false
	}
	return true
}

func isAmount(typed, currency string) bool {
	amount, own, _ := strings.Cut(typed, " ")
	return isNumber(amount) && (own == "" && currency != "" || len(own) == 3 && own == strings.ToUpper(own))
}

func amountTerm(typed, currency string) string {
	amount, own, _ := strings.Cut(typed, " ")
	if own == "" {
		own = currency
	}
	return "money(" + amount + `, "` + own + `")`
}
