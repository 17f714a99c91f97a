package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// function is one thing that formulas can call, as f(x, y) or as x.f(y).
type function struct {
	least, most int  // arguments, the one before the dot included
	lazy        bool // gets the errors of its arguments instead of failing on them
	call        func(args []ref.Val) ref.Val
}

// functions are all that formulas can call by name.
var functions = map[string]function{
	"size":       {1, 1, false, callSize},
	"contains":   {2, 2, false, twoTexts(func(s, part string) ref.Val { return types.Bool(strings.Contains(s, part)) })},
	"startsWith": {2, 2, false, twoTexts(func(s, part string) ref.Val { return types.Bool(strings.HasPrefix(s, part)) })},
	"endsWith":   {2, 2, false, twoTexts(func(s, part string) ref.Val { return types.Bool(strings.HasSuffix(s, part)) })},
	"indexOf":    {2, 2, false, twoTexts(indexOf)},
	"split":      {2, 2, false, twoTexts(split)},
	"matches":    {2, 2, false, twoTexts(matches)},
	"lower":      {1, 1, false, oneText(strings.ToLower)},
	"upper":      {1, 1, false, oneText(strings.ToUpper)},
	"lowerAscii": {1, 1, false, oneText(asciiLower)},
	"upperAscii": {1, 1, false, oneText(asciiUpper)},
	"trim":       {1, 1, false, oneText(strings.TrimSpace)},
	"replace":    {3, 3, false, callReplace},
	"substring":  {2, 3, false, callSubstring},
	"join":       {1, 2, false, callJoin},
	"text":       {1, 1, false, callText},
	"number":     {1, 1, false, callNumber},
	"money":      {2, 2, false, callMoney},
	"round":      {1, 2, false, callRound},
	"abs":        {1, 1, false, callAbs},
	"min":        {1, 20, false, extreme("min", func(n int) bool { return n < 0 })},
	"max":        {1, 20, false, extreme("max", func(n int) bool { return n > 0 })},
	"sum":        {1, 1, false, callSum},
	"first":      {1, 1, false, callFirst},
	"last":       {1, 1, false, callLast},
	"timestamp":  {1, 1, false, callTimestamp},
	"duration":   {1, 1, false, callDuration},
	"default":    {2, 2, true, callDefault},
	"has":        {1, 1, true, callHas},
}

func oneText(f func(string) string) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		if !ok {
			return refuse("this needs a text, but got %s", kindWord(args[0]))
		}
		// Changing case can make a text longer, by less than three times.
		return bounded(len(s), func() string { return f(string(s)) })
	}
}

// Both types are checked in one place, so that the functions themselves see only text.
func twoTexts(f func(a, b string) ref.Val) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		a, okA := args[0].(types.String)
		b, okB := args[1].(types.String)
		if !okA || !okB {
			return refuse("this needs two texts, but got %s and %s", kindWord(args[0]), kindWord(args[1]))
		}
		return f(string(a), string(b))
	}
}

// Texts are counted in characters, as people count, not in bytes.
func callSize(args []ref.Val) ref.Val {
	switch v := args[0].(type) {
	case types.String:
		return types.Int(utf8.RuneCountInString(string(v)))
	case traits.Sizer:
		return v.Size()
	}
	return refuse("size needs a text, a list or a record, but got %s", kindWord(args[0]))
}

// indexOf counts in characters, as size does; -1 where there is no match.
func indexOf(s, part string) ref.Val {
	i := strings.Index(s, part)
	if i < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:i]))
}

// An empty separator would split between characters, which is never what is meant.
func split(s, sep string) ref.Val {
	if sep == "" || strings.Count(s, sep) >= maxNodes {
		return refuse("split needs a separator, and gives at most %d parts", maxNodes)
	}
	return types.NewStringList(adapt, strings.Split(s, sep))
}

func asciiLower(s string) string { return strings.Map(asciiCase('A', 'Z', 'a'-'A'), s) }
func asciiUpper(s string) string { return strings.Map(asciiCase('a', 'z', 'A'-'a'), s) }

// Letters outside ASCII stay, for keys and codes that must not depend on a language.
func asciiCase(from, to, shift rune) func(rune) rune {
	return func(r rune) rune {
		if r >= from && r <= to {
			return r + shift
		}
		return r
	}
}

// The length is known before anything is built: each match changes it by the same amount.
func callReplace(args []ref.Val) ref.Val {
	s, a := args[0].(types.String)
	old, b := args[1].(types.String)
	with, c := args[2].(types.String)
	if !a || !b || !c {
		return refuse("replace needs three texts")
	}
	n := strings.Count(string(s), string(old))
	return bounded(len(s)+n*max(len(with)-len(old), 0), func() string {
		return strings.ReplaceAll(string(s), string(old), string(with))
	})
}

// callSubstring takes characters from a start to before an end.
func callSubstring(args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	from, okFrom := args[1].(types.Int)
	size := utf8.RuneCountInString(string(s))
	to, okTo := types.Int(size), true
	if len(args) == 3 {
		to, okTo = args[2].(types.Int)
	}
	if !ok || !okFrom || !okTo || from < 0 || to < from || int(to) > size {
		return refuse("substring needs a text and places within it")
	}
	return s[offset(string(s), int(from)):offset(string(s), int(to))]
}

// offset is the byte at which character n of s begins.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// Entries are put into words first, so amounts and numbers join as they are shown.
func callJoin(args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	sep := types.String(", ")
	okSep := true
	if len(args) == 2 {
		sep, okSep = args[1].(types.String)
	}
	if !ok || !okSep {
		return refuse("join needs a list and the text to put between its entries")
	}
	var out strings.Builder
	for it := list.Iterator(); it.HasNext() == types.True; {
		if out.Len() > 0 {
			out.WriteString(string(sep))
		}
		part, ok := callText([]ref.Val{it.Next()}).(types.String)
		if !ok || out.Len()+len(part)+len(sep) > maxBuilt {
			return refuse("join cannot put these entries into one text of at most %d bytes", maxBuilt)
		}
		out.WriteString(string(part))
	}
	return types.String(out.String())
}

func callText(args []ref.Val) ref.Val {
	if s, ok := args[0].(types.String); ok {
		return s
	}
	v, err := native(args[0])
	if err != nil {
		return types.WrapErr(err)
	}
	out, err := words(v, maxBuilt)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(out)
}

// Only the digits that JSON takes are a number. A comma means thousands to some and
// decimals to others, so it is refused.
func callNumber(args []ref.Val) ref.Val {
	if isNumber(args[0]) {
		return args[0]
	}
	s, ok := args[0].(types.String)
	text := strings.TrimSpace(string(s))
	switch {
	case !ok:
		return refuse("number needs a text such as 1234.50, but got %s", kindWord(args[0]))
	case len(text) > 2*maxDigits || text == "" || numberLength([]byte(text)) != len(text):
		return refuse("number needs a text such as 1234.50, but got “%s”", Preview([]byte(text), 40))
	}
	return newNumber(text)
}

func callMoney(args []ref.Val) ref.Val {
	currency, ok := args[1].(types.String)
	if !isNumber(args[0]) || !ok {
		return refuse("money needs a number and a currency, as in money(500, \"EUR\")")
	}
	return money(args[0], string(currency))
}

// callRound rounds half away from zero, as people do.
func callRound(args []ref.Val) ref.Val {
	places := types.Int(0)
	ok := true
	if len(args) == 2 {
		places, ok = args[1].(types.Int)
	}
	if !ok || places < 0 || places > 30 {
		return refuse("round needs a number of places from 0 to 30")
	}
	if m, ok := asMoney(args[0]); ok {
		return money(callRound([]ref.Val{m.value, places}), m.currency)
	}
	d, ok, err := asDecimal(args[0])
	if err != nil {
		return types.WrapErr(err)
	}
	if !ok {
		return refuse("round needs a number, but got %s", kindWord(args[0]))
	}
	ctx := exact.WithPrecision(2 * maxDigits)
	ctx.Rounding = apd.RoundHalfUp
	out := new(apd.Decimal)
	if _, err := ctx.Quantize(out, d, -int32(places)); err != nil {
		return types.WrapErr(tooLong())
	}
	return fromDecimal(out)
}

// Money keeps its currency.
func callAbs(args []ref.Val) ref.Val {
	if n, err := order(args[0], zeroLike(args[0])); err == nil && n < 0 {
		return negate(args[0])
	} else if err != nil {
		return types.WrapErr(err)
	}
	return args[0]
}

// zeroLike is the zero to compare v with: of its currency, or plain.
func zeroLike(v ref.Val) ref.Val {
	if m, ok := asMoney(v); ok {
		return money(types.Int(0), m.currency)
	}
	return types.Int(0)
}

// extreme is min or max over its arguments, or over the one list it gets.
func extreme(name string, better func(int) bool) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val {
		entries := args
		if list, ok := args[0].(traits.Lister); ok && len(args) == 1 {
			entries = nil
			for it := list.Iterator(); it.HasNext() == types.True; {
				entries = append(entries, it.Next())
			}
		}
		if len(entries) == 0 {
			return refuse("%s needs at least one value; use default for an empty list", name)
		}
		best := entries[0]
		for _, v := range entries[1:] {
			n, err := order(v, best)
			if err != nil {
				return types.WrapErr(err)
			}
			if better(n) {
				best = v
			}
		}
		return best
	}
}

// The sum of nothing is 0; otherwise the first entry decides whether money is summed.
func callSum(args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return refuse("sum needs a list, but got %s", kindWord(args[0]))
	}
	var total ref.Val = types.Int(0)
	for i, it := 0, list.Iterator(); it.HasNext() == types.True; i++ {
		v := it.Next()
		if i == 0 {
			total = zeroLike(v)
		}
		if total = arithmetic("+", total, v); types.IsError(total) {
			return total
		}
	}
	return total
}

func callFirst(args []ref.Val) ref.Val { return entryAt("first", args[0], 0) }

func callLast(args []ref.Val) ref.Val { return entryAt("last", args[0], -1) }

// An empty list is a missing value, not a mistake, so that default can stand in.
func entryAt(name string, v ref.Val, i int) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return refuse("%s needs a list, but got %s", name, kindWord(v))
	}
	if i < 0 {
		i += sizeOf(list)
	}
	if i < 0 || i >= sizeOf(list) {
		return types.NewErrFromString("index out of bounds: the list is empty")
	}
	return list.Get(types.Int(i))
}

// A date alone is its beginning in UTC, which is enough to compare dates.
func callTimestamp(args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return refuse("timestamp needs a text such as 2026-11-30T09:00:00+01:00")
	}
	if len(s) == len("2026-11-30") {
		s += "T00:00:00Z"
	}
	out := s.ConvertToType(types.TimestampType)
	if types.IsError(out) {
		return refuse("“%s” is not a time such as 2026-11-30T09:00:00+01:00", clip(Plain(string(s)), 40))
	}
	return out
}

func callDuration(args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return refuse("duration needs a text such as 36h")
	}
	out := s.ConvertToType(types.DurationType)
	if types.IsError(out) {
		return refuse("“%s” is not a time span such as 90m or 36h", clip(Plain(string(s)), 40))
	}
	return out
}

// callDefault gives its second argument where the first is not there or empty.
func callDefault(args []ref.Val) ref.Val {
	if missing(args[0]) || args[0] == types.NullValue {
		return args[1]
	}
	return args[0]
}

// callHas is false where its argument is not there or empty; any other error of
// the argument stays one.
func callHas(args []ref.Val) ref.Val {
	if missing(args[0]) {
		return types.False
	}
	if types.IsError(args[0]) {
		return args[0]
	}
	return types.Bool(args[0] != types.NullValue)
}
