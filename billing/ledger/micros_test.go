package ledger_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
)

func TestMicrosForPeople(t *testing.T) {
	t.Parallel()
	cases := []struct {
		amount     ledger.Micros
		text, full string
	}{
		{0, "$0.00", "$0.00"},
		{1, "under $0.01", "$0.000001"},
		{4_999, "under $0.01", "$0.004999"},
		{5_000, "$0.01", "$0.005"},
		{10_000, "$0.01", "$0.01"},
		{14_999, "$0.01", "$0.014999"},
		{15_000, "$0.02", "$0.015"},
		{93_015, "$0.09", "$0.093015"},
		{995_000, "$1.00", "$0.995"},
		{1_000_000, "$1.00", "$1.00"},
		{412_380_000, "$412.38", "$412.38"},
		{1_234_567_890_000, "$1,234,567.89", "$1,234,567.89"},
		{ledger.MaxMicros, "$1,000,000,000.00", "$1,000,000,000.00"},
		{-40_000, "-$0.04", "-$0.04"},
		{math.MinInt64, "-$9,223,372,036,854.78", "-$9,223,372,036,854.775808"},
	}
	for _, c := range cases {
		require.Equal(t, c.text, c.amount.String())
		require.Equal(t, c.full, c.amount.Exact())
	}
}

// S49, and its neighbours.
func TestCaseS49Limits(t *testing.T) {
	t.Parallel()
	good := map[string]ledger.Micros{
		"0": 0, "0.00": 0, "50": 50_000_000, "50.5": 50_500_000, "0.01": 10_000, " 12.50 ": 12_500_000, "$7": 7_000_000,
		"999999999.99": 999_999_999_990_000, "007": 7_000_000,
	}
	for text, want := range good {
		got, err := ledger.ParseLimit(text)
		require.NoError(t, err, text)
		require.Equal(t, want, *got, text)
	}
	for _, text := range []string{"", "  "} {
		none, err := ledger.ParseLimit(text)
		require.NoError(t, err)
		require.Nil(t, none, "empty is no cap")
	}
	bad := map[string]string{
		"-7": "below 0", "-0": "below 0", "1,5": "with a point", "1,000": "with a point", "1e9": "in dollars", "NaN": "in dollars",
		"Inf": "in dollars", "+5": "in dollars", "0x10": "in dollars", ".5": "in dollars", "5.": "in dollars", "1.2.3": "in dollars",
		"٥": "in dollars", "5 0": "in dollars", "5\x00": "in dollars", "€5": "in dollars", "$": "in dollars", "$$5": "in dollars",
		"0.001": "one cent", "1000000000": "too much", strings.Repeat("9", 400): "too much",
	}
	for text, reason := range bad {
		_, err := ledger.ParseLimit(text)
		var problem *ledger.AmountError
		require.True(t, errors.As(err, &problem), text)
		require.Contains(t, problem.Reason, reason, text)
	}
}

func FuzzParseDollars(f *testing.F) {
	for _, seed := range []string{"50", "0.01", "1,5", "-7", "NaN", "999999999.99", "$3.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := ledger.ParseDollars(text)
		if err != nil {
			return
		}
		if amount < 0 || amount >= ledger.MaxMicros || amount%ledger.Cent != 0 {
			t.Fatalf("%q became %d", text, amount)
		}
		again, err := ledger.ParseDollars(strings.ReplaceAll(amount.String(), ",", ""))
		if err != nil || again != amount {
			t.Fatalf("%q became %v and then %v, %v", text, amount, again, err)
		}
	})
}
