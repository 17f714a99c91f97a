package expr

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxBuilt is the most bytes of a text that a formula may build.
const maxBuilt = 4 << 20

// verbs name what an operator does, for sentences.
var verbs = map[string]string{"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "divide"}

// arithmetic applies + - * / % to any two values.
func arithmetic(op string, a, b ref.Val) ref.Val {
	if x, ok := a.(types.Int); ok {
		if y, ok := b.(types.Int); ok {
			return integers(op, int64(x), int64(y))
		}
	}
	if isNumber(a) && isNumber(b) {
		return decimals(op, a, b)
	}
	if out, done := withMoney(op, a, b); done {
		return out
	}
	if out, done := joined(op, a, b); done {
		return out
	}
	if out, done := withTime(op, a, b); done {
		return out
	}
	return refuse("cannot %s %s and %s", verbs[op], kindWord(a), kindWord(b))
}

// integers stays within 64 bits: what would leave them is refused, and a
// quotient that does not come out even is a decimal.
func integers(op string, x, y int64) ref.Val {
	out, ok := int64(0), true
	switch op {
	case "+":
		out = x + y
		ok = (out > x) == (y > 0)
	case "-":
		out = x - y
		ok = (out < x) == (y > 0)
	case "*":
		out, ok = multiply(x, y)
	default:
		if y == 0 || x == math.MinInt64 || op == "/" && x%y != 0 {
			return decimals(op, types.Int(x), types.Int(y))
		}
		if op == "%" {
			return types.Int(x % y)
		}
		return types.Int(x / y)
	}
	if !ok {
		return refuse("the result has more than 64 bits; formulas do not compute with integers that large")
	}
	return types.Int(out)
}

// The product is made in 128 bits of magnitude, where nothing can be lost unseen.
func multiply(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if hi != 0 {
		return 0, false
	}
	if (x < 0) != (y < 0) {
		return -int64(lo), lo <= 1<<63
	}
	return int64(lo), lo <= math.MaxInt64
}

// The smallest integer has no positive counterpart in 64 bits with a sign.
func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func decimals(op string, a, b ref.Val) ref.Val {
	x, _, err := asDecimal(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, _, err := asDecimal(b)
	if err != nil {
		return types.WrapErr(err)
	}
	return compute(op, x, y)
}

// withMoney handles every pair with an amount of money in it. Money adds to
// money of its own currency and scales by numbers; two amounts divide to a number.
func withMoney(op string, a, b ref.Val) (ref.Val, bool) {
	x, moneyA := asMoney(a)
	y, moneyB := asMoney(b)
	switch {
	case moneyA && moneyB && x.currency != y.currency:
		return mixed(x, y), true
	case moneyA && moneyB && (op == "+" || op == "-"):
		return money(arithmetic(op, x.value, y.value), x.currency), true
	case moneyA && moneyB && op == "/":
		return arithmetic(op, x.value, y.value), true
	case moneyA && isNumber(b) && (op == "*" || op == "/"):
		return money(arithmetic(op, x.value, b), x.currency), true
	case moneyB && isNumber(a) && op == "*":
		return money(arithmetic(op, a, y.value), y.currency), true
	case moneyA && isNumber(b) || moneyB && isNumber(a):
		return refuse("cannot %s an amount of money and a bare number; take .amount to compute with the figure alone", verbs[op]), true
	}
	return nil, false
}

// Exchange rates are nobody's guess to make.
func mixed(x, y amount) ref.Val {
	return refuse("amounts in %s and %s cannot be combined", clip(Plain(x.currency), 12), clip(Plain(y.currency), 12))
}

// joined puts texts or lists together, within bounds.
func joined(op string, a, b ref.Val) (ref.Val, bool) {
	if op != "+" {
		return nil, false
	}
	if x, ok := a.(types.String); ok {
		if y, ok := b.(types.String); ok {
			return bounded(len(x)+len(y), func() string { return string(x) + string(y) }), true
		}
	}
	x, listA := a.(traits.Lister)
	y, listB := b.(traits.Lister)
	if !listA || !listB {
		return nil, false
	}
	if sizeOf(x)+sizeOf(y) > maxNodes {
		return refuse("the list has more than %d entries", maxNodes), true
	}
	return x.Add(b), true
}

// bounded builds a text of n bytes unless that is too many.
func bounded(n int, build func() string) ref.Val {
	if n > maxBuilt {
		return refuse("the text is longer than %d bytes, the most a formula may build", maxBuilt)
	}
	return types.String(build())
}

// Times and spans keep CEL's own arithmetic, which is exact and bounded already.
func withTime(op string, a, b ref.Val) (ref.Val, bool) {
	if !isTime(a) || !isTime(b) {
		return nil, false
	}
	switch op {
	case "+":
		return a.(traits.Adder).Add(b), true
	case "-":
		return a.(traits.Subtractor).Subtract(b), true
	}
	return nil, false
}

func isTime(v ref.Val) bool {
	switch v.(type) {
	case types.Timestamp, types.Duration:
		return true
	}
	return false
}

// negate is the minus before a value.
func negate(v ref.Val) ref.Val {
	if m, ok := asMoney(v); ok {
		return money(negate(m.value), m.currency)
	}
	if isNumber(v) {
		return arithmetic("-", types.Int(0), v)
	}
	return refuse("a minus needs a number, but this is %s", kindWord(v))
}

// order compares two values of a kind that has an order: below 0, 0 or above.
func order(a, b ref.Val) (int, error) {
	switch x := a.(type) {
	case types.Int, number:
		if isNumber(b) {
			return orderNumbers(a, b)
		}
	case types.String, types.Timestamp, types.Duration:
		if a.Type() == b.Type() {
			n, ok := x.(traits.Comparer).Compare(b).(types.Int)
			if ok {
				return int(n), nil
			}
		}
	}
	x, moneyA := asMoney(a)
	y, moneyB := asMoney(b)
	switch {
	case moneyA && moneyB && x.currency == y.currency:
		return orderNumbers(x.value, y.value)
	case moneyA && moneyB:
		return 0, mixed(x, y).(*types.Err)
	case moneyA && isNumber(b) || moneyB && isNumber(a):
		return 0, sentencef("an amount of money cannot be compared with a bare number; compare its .amount, or write money(500, \"EUR\")")
	}
	return 0, sentencef("%s cannot be compared with %s", kindWord(a), kindWord(b))
}

// Two integers, by far the most common pair, never become decimals.
func orderNumbers(a, b ref.Val) (int, error) {
	if x, ok := a.(types.Int); ok {
		if y, ok := b.(types.Int); ok {
			return int(x.Compare(y).(types.Int)), nil
		}
	}
	x, _, err := asDecimal(a)
	if err != nil {
		return 0, err
	}
	y, _, err := asDecimal(b)
	if err != nil {
		return 0, err
	}
	return x.Cmp(y), nil
}

// compareWith makes < <= > >= out of order.
func compareWith(holds func(int) bool) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		n, err := order(a, b)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.Bool(holds(n))
	}
}

// equal compares by value: numbers whatever their zeros, lists and records part
// by part. Values of different kinds are not equal, which is no error.
func equal(a, b ref.Val) ref.Val {
	left := maxNodes
	same, err := same(a, b, &left, 0)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(same)
}

// Shared parts can make a value exponentially larger than it is in memory, so the
// entries that are compared are counted.
func same(a, b ref.Val, left *int, depth int) (bool, error) {
	if *left--; *left < 0 || depth > MaxDepth {
		return false, sentencef("the values are too large to compare")
	}
	if isNumber(a) && isNumber(b) {
		n, err := orderNumbers(a, b)
		return n == 0, err
	}
	switch x := a.(type) {
	case traits.Mapper:
		if y, ok := b.(traits.Mapper); ok {
			return sameRecord(x, y, left, depth+1)
		}
		return false, nil
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			return sameList(x, y, left, depth+1)
		}
		return false, nil
	}
	if a.Type() != b.Type() {
		return false, nil
	}
	return a.Equal(b) == types.True, nil
}

func sameList(a, b traits.Lister, left *int, depth int) (bool, error) {
	if sizeOf(a) != sizeOf(b) {
		return false, nil
	}
	for i, j := a.Iterator(), b.Iterator(); i.HasNext() == types.True && j.HasNext() == types.True; {
		if ok, err := same(i.Next(), j.Next(), left, depth); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func sameRecord(a, b traits.Mapper, left *int, depth int) (bool, error) {
	if sizeOf(a) != sizeOf(b) {
		return false, nil
	}
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		other, found := b.Find(key)
		if !found {
			return false, nil
		}
		if ok, err := same(a.Get(key), other, left, depth); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// contained is the operator in: an entry of a list or a name of a record.
func contained(x, in ref.Val) ref.Val {
	switch in := in.(type) {
	case traits.Mapper:
		_, found := in.Find(x)
		return types.Bool(found)
	case traits.Lister:
		left := maxNodes
		for it := in.Iterator(); it.HasNext() == types.True; {
			ok, err := same(x, it.Next(), &left, 0)
			if err != nil {
				return types.WrapErr(err)
			}
			if ok {
				return types.True
			}
		}
		return types.False
	}
	return refuse("“in” looks into a list or a record, but this is %s", kindWord(in))
}
