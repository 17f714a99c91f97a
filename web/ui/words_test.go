package ui_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"tollgate/web/ui"
)

func TestDollars(t *testing.T) {
	t.Parallel()
	cases := map[int64]string{
		0: "$0.00", 1: "<$0.01", 4_999: "<$0.01", 5_000: "$0.01", 14_999: "$0.01", 15_000: "$0.02",
		420_000: "$0.42", 994_999: "$0.99", 995_000: "$1.00", 1_240_500_000: "$1,240.50", 999_999_995_000: "$1,000,000.00",
		-420_000: "−$0.42", -1: "−$0.00",
		math.MaxInt64: "$9,223,372,036,854.78", math.MinInt64: "−$9,223,372,036,854.78",
	}
	for micros, want := range cases {
		require.Equal(t, want, ui.Dollars(micros), "%d", micros)
	}
}

func TestMoneyKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	cases := []struct{ amount, currency, want string }{
		{"1240.50", "EUR", "€1,240.50"},
		{"118204.1", "EUR", "€118,204.1"},
		{"9007199254740993.005", "USD", "$9,007,199,254,740,993.005"},
		{"-3", "GBP", "−£3"},
		{"1240.50", "CHF", "CHF 1,240.50"},
		{"5", "", "5"},
		{"1e9", "EUR", "1e9 EUR"},
		{"1.", "EUR", "1. EUR"},
		{"", "EUR", "EUR"},
		{"<b>", "EUR", "<b> EUR"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, ui.Money(c.amount, c.currency), "%s %s", c.amount, c.currency)
	}
}

func TestNumbersInWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1,284", ui.Count(1284))
	require.Equal(t, "−9,223,372,036,854,775,808", ui.Count(math.MinInt64))
	require.Equal(t, "1 run", ui.Plural(1, "run", "runs"))
	require.Equal(t, "0 runs", ui.Plural(0, "run", "runs"))
	require.Equal(t, "1,284 runs", ui.Plural(1284, "run", "runs"))
	require.Equal(t, "980", ui.Tokens(980))
	require.Equal(t, "84.1 k", ui.Tokens(84_120))
	require.Equal(t, "4.6 M", ui.Tokens(4_600_001))
	require.Equal(t, "131 k", ui.Tokens(131_402))
	require.Equal(t, "812 B", ui.Bytes(812))
	require.Equal(t, "12 KB", ui.Bytes(12<<10))
	require.Equal(t, "2.1 MB", ui.Bytes(2202009))
	require.Equal(t, "10 MB", ui.Bytes(10<<20))
	require.Equal(t, "82 %", ui.Percent(412, 500))
	require.Equal(t, "99 %", ui.Percent(4_999, 5_000), "only what is full reads 100")
	require.Equal(t, "100 %", ui.Percent(50, 50))
	require.Equal(t, "–", ui.Percent(1, 0))
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "", ui.List(nil))
	require.Equal(t, "Ana", ui.List([]string{"Ana"}))
	require.Equal(t, "Ana and Ben", ui.List([]string{"Ana", "Ben"}))
	require.Equal(t, "Ana, Ben and Chi", ui.List([]string{"Ana", "Ben", "Chi"}))
	require.Equal(t, "", ui.Either(nil))
	require.Equal(t, "Ana", ui.Either([]string{"Ana"}))
	require.Equal(t, "Ana, Ben or Chi", ui.Either([]string{"Ana", "Ben", "Chi"}))
	for name, want := range map[string]string{
		"Ana Berger": "AB", "ana": "A", "Jörg-Friedrich von Westernhagen": "JW", "ليلى الحسيني": "لا", "": "?", "👩🏽‍⚖️": "?", "\xff\xfe": "?", "  élan  vital ": "ÉV",
	} {
		require.Equal(t, want, ui.Initials(name), "%q", name)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	cases := map[time.Duration]string{
		-time.Hour: "0 s", 0: "0 s", time.Millisecond: "0.1 s", 430 * time.Millisecond: "0.4 s", 999 * time.Millisecond: "0.9 s",
		time.Second: "1 s", 48 * time.Second: "48 s", 59_999 * time.Millisecond: "59 s",
		time.Minute: "1 min", 110 * time.Second: "1 min 50 s", 9*time.Minute + 59*time.Second: "9 min 59 s", 40*time.Minute + 30*time.Second: "40 min",
		time.Hour: "1 h", 2*time.Hour + 10*time.Minute: "2 h 10 min", 23*time.Hour + 59*time.Minute: "23 h 59 min",
		70 * time.Hour: "2 d 22 h", 24 * time.Hour: "1 d", 3 * 365 * 24 * time.Hour: "1,095 d",
	}
	for d, want := range cases {
		require.Equal(t, want, ui.Duration(d), d.String())
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", "ليلى", "👩🏽‍⚖️ law", strings.Repeat("é", 100)} {
		for n := range len(text) + 2 {
			short, cut := ui.Cut(text, n)
			require.LessOrEqual(t, len(short), n)
			require.True(t, strings.HasPrefix(text, short))
			require.True(t, utf8.ValidString(short))
			require.Equal(t, len(short) < len(text), cut)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\uFFFDb\uFFFDc\n\td", ui.Clean("a\xffb\x00c\n\td"))
	require.Equal(t, "ليلى 🧾", ui.Clean("ليلى 🧾"))
	require.Equal(t, "\uFFFD[31mred", ui.Clean("\x1b[31mred"))
}
