package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sentence is an error written for the person whose formula it is.
type sentence struct{ text string }

func (s *sentence) Error() string { return s.text }

// The words begin small and have no full stop; explain finishes them.
func sentencef(format string, args ...any) error { return &sentence{fmt.Sprintf(format, args...)} }

// refuse is a sentence as a formula's value.
func refuse(format string, args ...any) ref.Val { return types.WrapErr(sentencef(format, args...)) }

// adapter turns decoded JSON into formula values, one level at a time, when a
// formula gets there.
type adapter struct{ types.Adapter }

// NativeToValue wraps v without copying it.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		return newNumber(string(v))
	case []any:
		return types.NewDynamicList(a, v)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

var adapt = adapter{types.DefaultTypeAdapter}

// maxNodes bounds how many entries one formula may build, compare or hand back.
const maxNodes = 1_000_000

// native turns the result of a formula into a decoded JSON value. Parts that
// came from outside are handed over as they are; parts that the formula built
// are copied, and counted, because they may name the same list a million times.
func native(v ref.Val) (any, error) {
	left := maxNodes
	return nativeWithin(v, &left, 0)
}

// Depth and number of entries are bounded, because the encoder's own bounds come too
// late: the copy would already have been made.
func nativeWithin(v ref.Val, left *int, depth int) (any, error) {
	if *left--; *left < 0 {
		return nil, sentencef("the result has more than %d entries", maxNodes)
	}
	if depth > MaxDepth {
		return nil, sentencef("the result is nested deeper than %d levels", MaxDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return json.Number(fmt.Sprint(int64(v))), nil
	case number:
		return json.Number(v.text), nil
	case types.Timestamp:
		return v.Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case traits.Mapper:
		return nativeRecord(v, left, depth)
	case traits.Lister:
		return nativeList(v, left, depth)
	case *types.Err:
		return nil, v
	}
	return nil, sentencef("a formula cannot give a %s", v.Type().TypeName())
}

// A list from outside is handed over as it is, digits and all.
func nativeList(v traits.Lister, left *int, depth int) (any, error) {
	if whole, ok := v.Value().([]any); ok {
		return whole, nil
	}
	out := make([]any, 0, min(sizeOf(v), 1024))
	for it := v.Iterator(); it.HasNext() == types.True; {
		entry, err := nativeWithin(it.Next(), left, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, entry)
	}
	return out, nil
}

func nativeRecord(v traits.Mapper, left *int, depth int) (any, error) {
	if whole, ok := v.Value().(map[string]any); ok {
		return whole, nil
	}
	out := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, sentencef("the names in a record must be texts")
		}
		entry, err := nativeWithin(v.Get(key), left, depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = entry
	}
	return out, nil
}

func sizeOf(v traits.Sizer) int {
	n, _ := v.Size().(types.Int)
	return int(n)
}

// kindWord is what people call a value of v's type.
func kindWord(v ref.Val) string {
	switch v := v.(type) {
	case types.Null:
		return "an empty value"
	case types.Bool:
		return "yes/no"
	case types.String:
		return "a text"
	case types.Int, number:
		return "a number"
	case types.Timestamp:
		return "a time"
	case types.Duration:
		return "a time span"
	case traits.Mapper:
		if _, ok := asMoney(v); ok {
			return "an amount of money"
		}
		return "a record"
	case traits.Lister:
		return "a list"
	}
	return "this"
}

// amount is money taken apart.
type amount struct {
	value    ref.Val
	currency string
}

// asMoney recognises a record of exactly an amount and a currency.
func asMoney(v ref.Val) (amount, bool) {
	m, ok := v.(traits.Mapper)
	if !ok || sizeOf(m) != 2 {
		return amount{}, false
	}
	value, found := m.Find(types.String("amount"))
	if !found || !isNumber(value) {
		return amount{}, false
	}
	currency, found := m.Find(types.String("currency"))
	name, text := currency.(types.String)
	return amount{value, string(name)}, found && text
}

// money makes the value that asMoney takes apart.
func money(value ref.Val, currency string) ref.Val {
	if types.IsError(value) {
		return value
	}
	digits, err := native(value)
	if err != nil {
		return types.WrapErr(err)
	}
	return adapt.NativeToValue(map[string]any{"amount": digits, "currency": currency})
}

// missing reports whether v is the error of a place that holds nothing.
func missing(v ref.Val) bool {
	err, ok := v.(*types.Err)
	return ok && isMissing(err)
}

// isMissing recognises CEL's errors for a place that is not there. CEL has no
// type for them; their beginnings are fixed and hold nothing of the data.
func isMissing(err error) bool {
	var own *sentence
	if errors.As(err, &own) {
		return false
	}
	for _, start := range []string{"no such key", "no such attribute", "index out of bounds", "index out of range"} {
		if text := err.Error(); len(text) >= len(start) && text[:len(start)] == start {
			return true
		}
	}
	return false
}
