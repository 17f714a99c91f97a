package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// Micros is money in millionths of a US dollar. One token often costs less than one.
type Micros int64

// Amounts of money. MaxMicros, a billion dollars, is the most that one hold, charge or
// cap may say; the database holds the same bound.
const (
	Cent      Micros = 10_000
	Dollar    Micros = 1_000_000
	MaxMicros Micros = 1_000_000_000 * Dollar
)

// String is the amount for people, in dollars and cents: "$1,234.50". An amount that
// is not zero never reads as zero: below half a cent it is "under $0.01".
func (m Micros) String() string {
	sign, size := m.split()
	cents := (size + uint64(Cent)/2) / uint64(Cent)
	if cents == 0 && size > 0 {
		return "under $0.01"
	}
	return fmt.Sprintf("%s$%s.%02d", sign, grouped(cents/100), cents%100)
}

// Plain is the amount to the last digit as a bare number of dollars, for spreadsheets:
// "1234.5", "-0.093015".
func (m Micros) Plain() string {
	sign, size := m.split()
	fraction := strings.TrimRight(fmt.Sprintf("%06d", size%uint64(Dollar)), "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + strconv.FormatUint(size/uint64(Dollar), 10) + fraction
}

// Exact is the amount to the last digit, with at least two places: "$0.093015".
func (m Micros) Exact() string {
	sign, size := m.split()
	fraction := fmt.Sprintf("%06d", size%uint64(Dollar))
	fraction = fraction[:2] + strings.TrimRight(fraction[2:], "0")
	return sign + "$" + grouped(size/uint64(Dollar)) + "." + fraction
}

func (m Micros) split() (string, uint64) {
	if m < 0 {
		return "-", -uint64(m)
	}
	return "", uint64(m)
}

// grouped writes a number with a comma before every third digit.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// AmountError tells a person why what she typed is not an amount of money.
type AmountError struct{ Reason string }

func (e *AmountError) Error() string { return e.Reason }

// ParseLimit reads a cap as a person types it, in dollars: "50", "50.00", "0". Empty
// means no cap and gives nil; 0 is a cap that allows nothing. Anything else is an
// *AmountError whose reason can be shown beside the field.
func ParseLimit(text string) (*Micros, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	amount, err := ParseDollars(text)
	if err != nil {
		return nil, err
	}
	return &amount, nil
}

// ParseDollars reads an amount of dollars and cents from 0 to a billion. It takes
// digits with at most two places after a point, and an optional dollar sign.
func ParseDollars(text string) (Micros, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "$")
	whole, fraction, pointed := strings.Cut(text, ".")
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, &AmountError{"An amount cannot be below 0. Write 0 to allow no spending."}
	case strings.Contains(text, ","):
		return 0, &AmountError{"Write the amount with a point and without commas, such as 1500.00."}
	case !allDigits(whole) || pointed && !allDigits(fraction):
		return 0, &AmountError{"Write an amount in dollars, such as 50 or 12.50."}
	case len(fraction) > 2:
		return 0, &AmountError{"The smallest amount is one cent, 0.01."}
	}
	dollars, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || dollars >= int64(MaxMicros/Dollar) {
		return 0, &AmountError{"That is too much. Write an amount below 1000000000."}
	}
	padded := fraction + "00"
	cents := Micros(padded[0]-'0')*10 + Micros(padded[1]-'0')
	return Micros(dollars)*Dollar + cents*Cent, nil
}

func allDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
