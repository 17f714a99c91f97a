package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Dollars writes micro-dollars with two decimals, rounded half up:
// "$1,240.50". What is more than nothing but less than a cent is "<$0.01", so
// that nothing paid for ever reads as free.
func Dollars(micros int64) string {
	if micros > 0 && micros < 5_000 {
		return "<$0.01"
	}
	sign := ""
	size := uint64(micros)
	if micros < 0 {
		sign, size = "−", -uint64(micros)
	}
	cents := (size + 5_000) / 10_000
	return fmt.Sprintf("%s$%s.%02d", sign, thousands(strconv.FormatUint(cents/100, 10)), cents%100)
}

// symbols of the currencies people recognise; others show their code.
var symbols = map[string]string{"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "INR": "₹"}

// Symbol gives the sign of a currency, or its code.
func Symbol(currency string) string {
	if s, ok := symbols[currency]; ok {
		return s
	}
	return currency
}

// Money writes an exact decimal amount in a currency: "€1,240.50",
// "CHF 1,240.50". Digits are kept as they came; only separators are put in. An
// amount that is not a plain decimal is shown as it is.
func Money(amount, currency string) string {
	symbol := Symbol(currency)
	if symbol == currency && currency != "" {
		symbol += " "
	}
	number, sign := amount, ""
	if rest, ok := strings.CutPrefix(number, "-"); ok {
		number, sign = rest, "−"
	}
	whole, fraction, point := strings.Cut(number, ".")
	if !digits(whole) || point && !digits(fraction) {
		return strings.TrimSpace(Clean(amount) + " " + currency)
	}
	if point {
		fraction = "." + fraction
	}
	return sign + symbol + thousands(whole) + fraction
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// thousands puts a comma between groups of three digits.
func thousands(whole string) string {
	var b strings.Builder
	for i, r := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Count writes a whole number: "1,284".
func Count(n int64) string {
	if n < 0 {
		return "−" + thousands(strings.TrimPrefix(strconv.FormatInt(n, 10), "-"))
	}
	return thousands(strconv.FormatInt(n, 10))
}

// Plural writes a number with its noun: "1 run", "3 runs".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Tokens writes a number of tokens short: "980", "84.1 k", "4.6 M".
func Tokens(n int64) string {
	switch {
	case n >= 1_000_000:
		return decimal(float64(n)/1e6) + " M"
	case n >= 10_000:
		return decimal(float64(n)/1e3) + " k"
	default:
		return Count(n)
	}
}

// Bytes writes a size: "812 B", "12 KB", "2.1 MB". Units are of 1024.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return decimal(float64(n)/(1<<30)) + " GB"
	case n >= 1<<20:
		return decimal(float64(n)/(1<<20)) + " MB"
	case n >= 1<<10:
		return decimal(float64(n)/(1<<10)) + " KB"
	default:
		return strconv.FormatInt(n, 10) + " B"
	}
}

// decimal keeps one decimal below 100 and drops a zero one.
func decimal(f float64) string {
	places := 1
	if f >= 100 {
		places = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', places, 64), ".0")
}

// Percent writes the share of part in whole: "82 %". Rounds down, so that
// only what is really full reads 100; without a whole it is a dash.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return strconv.FormatInt(int64(math.Floor(float64(part)*100/float64(whole))), 10) + " %"
}

// List joins names: "Ana", "Ana and Ben", "Ana, Ben and Chi".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Either joins words of which one holds: "a", "a or b", "a, b or c".
func Either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Initials gives one or two letters for a person: "Ana Berger" is "AB".
func Initials(name string) string {
	var out []rune
	for word := range strings.FieldsSeq(Clean(name)) {
		r, _ := utf8.DecodeRuneInString(word)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, unicode.ToUpper(r))
		}
	}
	switch len(out) {
	case 0:
		return "?"
	case 1:
		return string(out)
	default:
		return string([]rune{out[0], out[len(out)-1]})
	}
}

// Duration writes a length of time with its two largest units: "0.4 s",
// "48 s", "1 min 50 s", "40 min", "2 h 10 min", "2 d 22 h". Nothing is rounded
// up to a unit it has not reached; a negative length counts as none.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return strconv.FormatFloat(max(0.1, math.Floor(d.Seconds()*10)/10), 'f', 1, 64) + " s"
	case d < time.Minute:
		return unit(d, time.Second, "s")
	case d < 10*time.Minute:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < time.Hour:
		return unit(d, time.Minute, "min")
	case d < 24*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "min")
	default:
		return units(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func unit(d, size time.Duration, name string) string {
	return Count(int64(d/size)) + " " + name
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	out := unit(d, large, largeName)
	if rest := d % large; rest >= small {
		out += " " + unit(rest, small, smallName)
	}
	return out
}
