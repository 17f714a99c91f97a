package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
)

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return moment
}

func TestShippedPrices(t *testing.T) {
	t.Parallel()
	autumn := at("2026-11-30T12:00:00Z")
	known := map[string][2]ledger.Micros{
		"anthropic/claude-sonnet-5": {2_000_000, 10_000_000},
		"openai/gpt-5.6-terra":      {2_000_000, 12_000_000},
		"google/gemini-3.8-flash":   {750_000, 3_750_000},
		"practice/standard":         {3_000_000, 15_000_000},
	}
	for model, want := range known {
		price, err := ledger.PriceAt(model, autumn)
		require.NoError(t, err, model)
		input, _ := price.Input.Micros()
		output, _ := price.Output.Micros()
		require.Equal(t, want, [2]ledger.Micros{input, output}, model)
		require.NotEmpty(t, price.Source, model)
		require.Equal(t, model == "practice/standard", price.Funds == ledger.Pretend, model)
	}
	unknown := []string{
		"anthropic/claude-fable-5.1", "openai/gpt-6-astra", // their output price is not known
		"openai/claude-sonnet-5", "gpt-5.6-terra", "openai/gpt-5.6-terra/x", "openai/GPT-5.6-terra", "practice/large", "/", "",
	}
	for _, model := range unknown {
		_, err := ledger.PriceAt(model, autumn)
		require.ErrorIs(t, err, ledger.ErrUnknownPrice, model)
		_, err = ledger.QuoteFor(model, autumn, time.Minute, 1, 1)
		require.ErrorIs(t, err, ledger.ErrUnknownPrice, model)
	}
}

func TestLaunchPriceEndsToTheSecond(t *testing.T) {
	t.Parallel()
	last := at("2026-12-31T23:59:59.999999999Z")
	_, err := ledger.PriceAt("google/gemini-3.8-flash", last)
	require.NoError(t, err)
	_, err = ledger.PriceAt("google/gemini-3.8-flash", last.In(time.FixedZone("Tokyo", 9*3600)))
	require.NoError(t, err, "an instant is the same in every zone")
	_, err = ledger.PriceAt("google/gemini-3.8-flash", last.Add(time.Nanosecond))
	require.ErrorIs(t, err, ledger.ErrUnknownPrice, "the output price of 2027 is not known")

	_, err = ledger.QuoteFor("google/gemini-3.8-flash", at("2026-12-31T23:54:59Z"), 5*time.Minute, 1, 1)
	require.NoError(t, err, "over before the turn")
	_, err = ledger.QuoteFor("google/gemini-3.8-flash", at("2026-12-31T23:55:00Z"), 5*time.Minute, 1, 1)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice, "may end in 2027")
}

func TestQuoteHoldsAtTheDearestOfTheCallsTime(t *testing.T) {
	t.Parallel()
	price := func(from, to string, micros ledger.Micros) ledger.Price {
		p := ledger.Price{Provider: "x", Model: "m", Input: ledger.PerMillion(micros), Output: ledger.PerMillion(micros), Funds: ledger.Real}
		if from != "" {
			p.From = at(from)
		}
		if to != "" {
			p.To = at(to)
		}
		return p
	}
	const one, two, three = "2026-12-01T00:00:00Z", "2026-12-01T00:10:00Z", "2026-12-01T00:20:00Z"
	list := ledger.PriceList{
		price(three, "", 2*ledger.Dollar), price("", one, ledger.Dollar),
		price(one, two, 9*ledger.Dollar), price(two, three, ledger.Dollar/2),
	}
	cases := []struct {
		name    string
		now     string
		longest time.Duration
		amount  ledger.Micros // for a million tokens
		start   ledger.Micros // the rate that the cost uses
	}{
		{"before any change", "2026-11-30T23:50:00Z", 9*time.Minute + 59*time.Second, 1, 1},
		{"the end touches the change", "2026-11-30T23:50:00Z", 10 * time.Minute, 9, 1},
		{"the last second", "2026-11-30T23:59:59Z", time.Second, 9, 1},
		{"at the change", one, time.Second, 9, 9},
		{"the dear price ends meanwhile", "2026-12-01T00:09:59Z", time.Hour, 9, 9},
		{"over two changes", "2026-11-30T23:59:59Z", time.Hour, 9, 1},
		{"the dear price is over", two, time.Minute, 0, 0},
		{"the last price has no end", three, 1000 * time.Hour, 2, 2},
		{"a length below 0 is none", "2026-11-30T23:59:59Z", -time.Hour, 1, 1},
	}
	for _, c := range cases {
		quote, err := list.Quote("x/m", at(c.now), c.longest, 1_000_000, 0)
		require.NoError(t, err, c.name)
		want, start := c.amount*ledger.Dollar, c.start*ledger.Dollar
		if c.amount == 0 {
			want, start = ledger.Dollar/2, ledger.Dollar/2
		}
		require.Equal(t, want, quote.Amount, c.name)
		require.Equal(t, start, quote.Price.Cost(ledger.Tokens{Input: 1_000_000}), c.name)
	}
	gap := ledger.PriceList{price("", one, ledger.Dollar), price(two, "", ledger.Dollar)}
	_, err := gap.Quote("x/m", at("2026-11-30T23:59:59Z"), time.Hour, 1, 1)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice, "a time without a price may be met")
}
