package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// maxDigits bounds a number inside formulas, counted as it is written out
// without an exponent.
const maxDigits = 200

// number is a number that is not a plain 64-bit integer: a decimal, or an
// integer too large to compute with. It remembers its digits, so that a value
// which passes through a formula unchanged stays as it was written.
type number struct{ text string }

var numberType = types.NewOpaqueType("number")

// newNumber gives the smallest form of a JSON number: an Int, or a number.
func newNumber(text string) ref.Val {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		return types.Int(n)
	}
	return number{text}
}

// decimal is the exact value of a number; the error is a sentence.
func (n number) decimal() (*apd.Decimal, error) {
	if !strings.ContainsAny(n.text, ".eE") && n.text != "-0" {
		return nil, sentencef("%s has more than 64 bits; formulas do not compute with integers that large", clip(n.text, 40))
	}
	if len(n.text) > 2*maxDigits {
		return nil, tooLong()
	}
	d, _, err := apd.NewFromString(n.text)
	if err != nil || d.Form != apd.Finite {
		return nil, tooLong()
	}
	return d, fits(d)
}

// One sentence for every way of being too long; which limit it was helps nobody.
func tooLong() error {
	return sentencef("this number takes more than %d digits; formulas do not compute with such numbers", maxDigits)
}

// fits bounds a decimal by the digits it has when written out.
func fits(d *apd.Decimal) error {
	n := d.NumDigits()
	if d.Exponent > maxDigits || d.Exponent < -maxDigits || n > maxDigits ||
		n+max(int64(d.Exponent), 0) > maxDigits {
		return tooLong()
	}
	return nil
}

// asDecimal reads any number of a formula; ok is false for what is none.
func asDecimal(v ref.Val) (d *apd.Decimal, ok bool, err error) {
	switch v := v.(type) {
	case types.Int:
		return apd.New(int64(v), 0), true, nil
	case number:
		d, err = v.decimal()
		return d, true, err
	}
	return nil, false, nil
}

// fromDecimal makes a formula's value of a decimal that was just computed.
func fromDecimal(d *apd.Decimal) ref.Val {
	if err := fits(d); err != nil {
		return types.WrapErr(err)
	}
	if d.IsZero() {
		d.Negative = false
	}
	text := d.Text('f')
	if d.Exponent >= 0 {
		return newNumber(text)
	}
	return number{text}
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, number:
		return true
	}
	return false
}

var exact = apd.BaseContext

// compute applies one of + - * / % to two numbers. Only a quotient is ever
// rounded, and only where it does not end within its precision.
func compute(op string, a, b *apd.Decimal) ref.Val {
	out := new(apd.Decimal)
	var err error
	switch op {
	case "+":
		_, err = exact.Add(out, a, b)
	case "-":
		_, err = exact.Sub(out, a, b)
	case "*":
		_, err = exact.Mul(out, a, b)
	default:
		return divide(op, a, b)
	}
	if err != nil {
		return types.WrapErr(tooLong())
	}
	return fromDecimal(out)
}

// quotientDigits is how many significant digits a division keeps at least.
const quotientDigits = 34

// The precision is chosen so that a quotient which ends is exact.
func divide(op string, a, b *apd.Decimal) ref.Val {
	if b.IsZero() {
		return types.WrapErr(sentencef("this divides by zero"))
	}
	// The spread of the exponents counts as well: a remainder needs the whole quotient.
	spread := max(int64(a.Exponent)-int64(b.Exponent), 0)
	ctx := exact.WithPrecision(uint32(max(quotientDigits, a.NumDigits()+b.NumDigits()+spread)))
	ctx.Rounding = apd.RoundHalfEven
	out := new(apd.Decimal)
	var err error
	if op == "%" {
		_, err = ctx.Rem(out, a, b)
	} else {
		_, err = ctx.Quo(out, a, b)
	}
	if err != nil {
		return types.WrapErr(tooLong())
	}
	if op == "/" {
		out = shorten(out)
	}
	return fromDecimal(out)
}

// shorten drops the zeros that a division leaves behind the point.
func shorten(d *apd.Decimal) *apd.Decimal {
	reduced, _ := new(apd.Decimal).Reduce(d)
	if reduced.Exponent > 0 {
		out := new(apd.Decimal)
		if _, err := exact.Quantize(out, reduced, 0); err == nil {
			return out
		}
	}
	return reduced
}

// ConvertToNative gives the digits, the only native form.
func (n number) ConvertToNative(t reflect.Type) (any, error) {
	if t == reflect.TypeFor[json.Number]() || t.Kind() == reflect.Interface {
		return json.Number(n.text), nil
	}
	return nil, fmt.Errorf("a number cannot become a %v", t)
}

// ConvertToType gives the digits as text; CEL asks for nothing else.
func (n number) ConvertToType(t ref.Type) ref.Val {
	if t == types.StringType {
		return types.String(n.text)
	}
	return types.WrapErr(errors.New("a number cannot become a " + t.TypeName()))
}

// Equal compares by value, whatever the number of zeros.
func (n number) Equal(other ref.Val) ref.Val { return equal(n, other) }

// Type is the one of decimals.
func (n number) Type() ref.Type { return numberType }

// Value is the digits.
func (n number) Value() any { return json.Number(n.text) }
