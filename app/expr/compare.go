package expr

import "encoding/json"

// Equal tells whether two values are the same: numbers by their value, whatever their
// zeros, lists and records part by part. The error is a sentence, about numbers that
// formulas do not compute with or values that are too large to compare.
func Equal(a, b any) (bool, error) {
	left := maxNodes
	return same(adapt.NativeToValue(a), adapt.NativeToValue(b), &left, 0)
}

// Compare orders two numbers exactly: negative where a is less than b, 0 where they are
// equal. The error is a sentence, about a number that formulas do not compute with.
func Compare(a, b json.Number) (int, error) {
	return orderNumbers(newNumber(string(a)), newNumber(string(b)))
}
