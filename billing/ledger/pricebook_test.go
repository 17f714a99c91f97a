package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// own is a price that a person could enter.
func own(model string, input, output ledger.Micros) ledger.Price {
	provider, name, _ := strings.Cut(model, "/")
	return ledger.Price{Provider: provider, Model: name, Input: ledger.PerMillion(input), Output: ledger.PerMillion(output)}
}

func (b *books) prices(t testing.TB) ledger.PriceList {
	t.Helper()
	var list ledger.PriceList
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.Prices(ctx, tx)
		list = found
		return err
	})
	return list
}

func (b *books) addPrice(t testing.TB, p ledger.Price) ledger.PriceID {
	t.Helper()
	var id ledger.PriceID
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		added, err := ledger.AddPrice(ctx, tx, p, "by contract", tenants.UserID{})
		id = added
		return err
	})
	return id
}

func TestTenantsOwnPrices(t *testing.T) {
	t.Parallel()
	b := open(t)
	other := opened(t, b.Database)
	now := time.Now().UTC().Truncate(time.Millisecond)
	_, err := b.prices(t).At("openai/gpt-6-astra", now)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)

	full := own("openai/gpt-6-astra", 10*ledger.Dollar, 40*ledger.Dollar)
	full.CacheRead, full.CacheWrite, full.CacheWriteLong = ledger.PerMillion(ledger.Dollar), ledger.PerMillion(12*ledger.Dollar), ledger.PerMillion(20*ledger.Dollar)
	full.LongOver, full.Long = 200_000, ledger.Rates{Input: ledger.PerMillion(20 * ledger.Dollar), Output: ledger.PerMillion(60 * ledger.Dollar)}
	first := b.addPrice(t, full)
	second := own("openai/gpt-6-astra", 8*ledger.Dollar, 30*ledger.Dollar)
	second.From, second.To = now.Add(-time.Hour), now.Add(time.Hour)
	b.addPrice(t, second)

	got, err := b.prices(t).At("openai/gpt-6-astra", now)
	require.NoError(t, err)
	require.Equal(t, second.Input, got.Input, "the newest counts")
	got, err = b.prices(t).At("openai/gpt-6-astra", second.To)
	require.NoError(t, err)
	full.ID, full.Funds, full.Source = first, ledger.Real, got.Source
	require.Equal(t, full, got, "behind its end what was entered before counts again")
	_, err = other.prices(t).At("openai/gpt-6-astra", now)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice, "prices are one tenant's")

	err = b.InTx(t.Context(), other.tenant, func(ctx context.Context, tx tenants.Tx) error { return ledger.RetirePrice(ctx, tx, first) })
	require.True(t, tenants.IsLostRace(err), "%v", err)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error { return ledger.RetirePrice(ctx, tx, first) })
	_, err = b.prices(t).At("openai/gpt-6-astra", second.To)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)
}

// What the installation pays for is not cheaper because a workspace says so.
func TestWorkspacesPricesAndWhoPays(t *testing.T) {
	t.Parallel()
	b := open(t)
	now := time.Now().Add(time.Second)
	b.addPrice(t, own("openai/gpt-5.6-terra", 10*ledger.Cent, 60*ledger.Cent)) // the release knows 2 and 12 dollars
	b.addPrice(t, own("openai/gpt-6-astra", 10*ledger.Dollar, 40*ledger.Dollar))
	b.addPrice(t, own("openai/house-model", ledger.Dollar, 2*ledger.Dollar))
	b.addPrice(t, own("practice/standard", 5*ledger.Dollar, 20*ledger.Dollar))
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetAlias(ctx, tx, ledger.Alias{Billed: "openai/gpt-5.6-terra-0601", Model: "openai/house-model"}, tenants.UserID{})
	})
	list := b.prices(t)
	for model, want := range map[string]map[ledger.Payer]ledger.Micros{
		"openai/gpt-5.6-terra":      {ledger.PayerOwn: 10 * ledger.Cent, ledger.PayerPlatform: 2 * ledger.Dollar},
		"openai/gpt-6-astra":        {ledger.PayerOwn: 10 * ledger.Dollar},
		"openai/house-model":        {ledger.PayerOwn: ledger.Dollar, ledger.PayerPlatform: ledger.Dollar},
		"openai/gpt-5.6-terra-0601": {ledger.PayerOwn: ledger.Dollar},
		"practice/standard":         {ledger.PayerOwn: 5 * ledger.Dollar, ledger.PayerPlatform: 5 * ledger.Dollar},
	} {
		for _, payer := range []ledger.Payer{ledger.PayerOwn, ledger.PayerPlatform} {
			price, err := list.PaidBy(payer).At(model, now)
			if want[payer] == 0 {
				require.ErrorIs(t, err, ledger.ErrUnknownPrice, "%s %s", model, payer)
				continue
			}
			require.NoError(t, err)
			got, _ := price.Input.Micros()
			require.Equal(t, want[payer], got, "%s %s", model, payer)
		}
	}

	hold := ledger.Hold{Quote: ledger.Quote{Model: "openai/gpt-5.6-terra", Start: now}, Payer: ledger.PayerPlatform}
	var err error
	hold.Price, err = list.PaidBy(ledger.PayerPlatform).At(hold.Model, now)
	require.NoError(t, err)
	settled := list.Settle(hold, ledger.Tokens{Input: 1_000_000}, ledger.Receipt{Model: "gpt-5.6-terra-0601"})
	require.Equal(t, 4*ledger.Dollar, settled.Cost, "an alias of the workspace's makes it no cheaper")
}

// A price that changes while a call may run: the dearer is held, that of the start counts.
func TestPriceThatChangesDuringACall(t *testing.T) {
	t.Parallel()
	b := open(t)
	turn := at("2027-03-01T00:00:00Z")
	cheap, dear := own("openai/x", ledger.Dollar, ledger.Dollar), own("openai/x", 3*ledger.Dollar, 3*ledger.Dollar)
	dear.From = turn
	b.addPrice(t, cheap)
	b.addPrice(t, dear)
	list := b.prices(t)
	for start, want := range map[time.Time][2]ledger.Micros{
		turn.Add(-61 * time.Second): {2000, 1000}, turn.Add(-60 * time.Second): {6000, 1000},
		turn.Add(-time.Second): {6000, 1000}, turn: {6000, 3000}, turn.Add(time.Second): {6000, 3000},
	} {
		quote, err := list.Quote("openai/x", start, time.Minute, 1000, 1000)
		require.NoError(t, err)
		require.Equal(t, want[0], quote.Amount, start)
		require.Equal(t, want[1], ledger.Hold{Quote: quote}.Settle(ledger.Tokens{Output: 1000}, receipt).Cost, start)
	}
}

// What a transaction wrote and undid is never taken for what another wrote.
func TestUndonePriceIsNotRemembered(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.addPrice(t, own("openai/one", ledger.Dollar, ledger.Dollar))
	undone := errors.New("undone")
	err := b.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := ledger.AddPrice(ctx, tx, own("openai/two", ledger.Dollar, ledger.Dollar), "", tenants.UserID{})
		require.NoError(t, err)
		list, err := ledger.Prices(ctx, tx)
		require.NoError(t, err)
		_, err = list.At("openai/two", tx.Now)
		require.NoError(t, err)
		return undone
	})
	require.ErrorIs(t, err, undone)
	b.addPrice(t, own("openai/three", ledger.Dollar, ledger.Dollar))
	_, err = b.prices(t).At("openai/two", time.Now())
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)
	_, err = b.prices(t).At("openai/three", time.Now())
	require.NoError(t, err)
}

// S52: a model that is billed under another name is never free.
func TestCaseS52BilledNames(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetAlias(ctx, tx, ledger.Alias{Billed: "openai/terra-eu", Model: "openai/gpt-5.6-terra"}, tenants.UserID{})
	})
	b.addPrice(t, own("openai/gpt-5.6-luna", 4*ledger.Dollar, 24*ledger.Dollar))
	list := b.prices(t)
	aliased, err := list.Quote("openai/terra-eu", time.Now(), time.Minute, 1000, 1000)
	require.NoError(t, err)
	require.EqualValues(t, 14_500, aliased.Amount)
	require.Equal(t, "openai/gpt-5.6-terra", aliased.Price.AliasOf)

	quote, err := list.Quote("openai/gpt-5.6-terra", time.Now(), time.Minute, 1000, 1000)
	require.NoError(t, err)
	for billed, want := range map[string]struct {
		cost  ledger.Micros
		guess bool
	}{
		"gpt-5.6-terra": {14_000, false}, "": {14_000, false}, "gpt-5.6-terra-2026-09-01": {14_000, false},
		"gpt-5.6-terra-001": {14_000, false}, "models/gpt-5.6-terra": {14_000, false}, "terra-eu": {14_000, false},
		"gpt-5.6-luna":      {28_000, false},
		"gpt-5.6-terra-pro": {14_000, true}, "gpt-5.6-terra-2": {14_000, true}, "gpt-9": {14_000, true}, "terra-us": {14_000, true},
	} {
		got := list.Settle(ledger.Hold{Quote: quote, Payer: ledger.PayerOwn}, ledger.Tokens{Input: 1000, Output: 1000}, ledger.Receipt{Model: billed})
		require.Equal(t, want.cost, got.Cost, billed)
		require.Equal(t, want.guess, got.Estimated, billed)
	}
}

// A price that is a slip, of a token for a million, of a thousand or of a digit, is refused
// at its field.
func TestPricesOutOfReasonAreRefused(t *testing.T) {
	t.Parallel()
	b := open(t)
	with := func(model string, change func(*ledger.Price)) ledger.Price {
		p := own(model, 2*ledger.Dollar, 10*ledger.Dollar)
		change(&p)
		return p
	}
	rate := ledger.PerMillion
	for name, c := range map[string]struct {
		price ledger.Price
		field string
	}{
		"of a token":               {own("openai/x", 2, 10), "input"},
		"of a thousand":            {own("openai/x", 2_000, 10*ledger.Dollar), "input"},
		"output of a token":        {own("openai/x", 2*ledger.Dollar, 10), "output"},
		"of a billion":             {own("openai/x", 2*ledger.Dollar, 10_000*ledger.Dollar), "output"},
		"far from what is known":   {own("openai/gpt-5.6-terra", 2*ledger.Cent, ledger.Dollar), "input"},
		"nothing for what costs":   {own("openai/gpt-5.6-terra", 0, 12*ledger.Dollar), "input"},
		"no output for what costs": {own("openai/gpt-5.6-terra", 2*ledger.Dollar, 0), "output"},
		"far above what is known":  {own("openai/gpt-5.6-terra", 2*ledger.Dollar, 700*ledger.Dollar), "output"},
		"no input":                 {with("openai/x", func(p *ledger.Price) { p.Input = ledger.Rate{} }), "input"},
		"no output":                {with("openai/x", func(p *ledger.Price) { p.Output = ledger.Rate{} }), "output"},
		"cache dearer than input":  {with("openai/x", func(p *ledger.Price) { p.CacheRead = rate(3 * ledger.Dollar) }), "cache_read"},
		"cache write of a token":   {with("openai/x", func(p *ledger.Price) { p.CacheWrite = rate(3) }), "cache_write"},
		"hour's write of a token":  {with("openai/x", func(p *ledger.Price) { p.CacheWriteLong = rate(3) }), "cache_write_long"},
		"long without rates":       {with("openai/x", func(p *ledger.Price) { p.LongOver = 200_000 }), "long_input"},
		"long rates without limit": {with("openai/x", func(p *ledger.Price) { p.Long.Input = rate(ledger.Dollar) }), "long_over"},
		"long of a token": {with("openai/x", func(p *ledger.Price) {
			p.LongOver, p.Long = 10, ledger.Rates{Input: rate(3), Output: rate(ledger.Dollar)}
		}), "long_input"},
		"ends before it begins": {with("openai/x", func(p *ledger.Price) { p.From, p.To = at("2026-02-01T00:00:00Z"), at("2026-01-01T00:00:00Z") }), "to"},
		"no provider":           {own("x", ledger.Dollar, ledger.Dollar), "model"},
		"hostile name":          {own("openai/<script>", ledger.Dollar, ledger.Dollar), "model"},
		"endless name":          {own("openai/"+strings.Repeat("x", 500), ledger.Dollar, ledger.Dollar), "model"},
	} {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			_, err := ledger.AddPrice(ctx, tx, c.price, "", tenants.UserID{})
			var wrong *ledger.PriceError
			require.ErrorAs(t, err, &wrong, name)
			require.Equal(t, c.field, wrong.Field, name)
			require.NotEmpty(t, wrong.Reason)
			return nil
		})
	}
	for _, fine := range []ledger.Price{
		own("openai/free", 0, 0), own("openai/cheap", ledger.Cent, 2*ledger.Cent), own("openai/dear", 150*ledger.Dollar, 600*ledger.Dollar),
		own("openai/gpt-5.6-terra", 15*ledger.Cent, 60*ledger.Cent), own("openrouter/meta/llama-3:free", 0, 0),
	} {
		b.addPrice(t, fine)
	}
	// Nobody makes real money of pretend dollars.
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var wrong *ledger.PriceError
		require.ErrorAs(t, ledger.SetAlias(ctx, tx, ledger.Alias{Billed: "openai/x", Model: "practice/standard"}, tenants.UserID{}), &wrong)
		return nil
	})
	b.addPrice(t, own("practice/standard", 5*ledger.Dollar, 20*ledger.Dollar))
	price, err := b.prices(t).At("practice/standard", time.Now())
	require.NoError(t, err)
	require.Equal(t, ledger.Pretend, price.Funds)
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ledger.Rate{
		"": {}, "  ": {}, "2": ledger.PerMillion(2 * ledger.Dollar), "$0.075": ledger.PerMillion(75_000),
		"0": ledger.PerMillion(0), "0.000001": ledger.PerMillion(1), " 1.5 ": ledger.PerMillion(1_500_000),
	} {
		got, err := ledger.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "1e3", "NaN", "1,5", "0.0000001", "3000", "99999999999999999999", ".5", "5.", "two", "$", "1.2.3"} {
		_, err := ledger.ParseRate(text)
		var wrong *ledger.AmountError
		require.ErrorAs(t, err, &wrong, text)
	}
}

// A charge names the row that priced it, also where nothing is known of its answer.
func TestChargesNameTheirPrice(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	price := own("openai/long", ledger.Dollar, ledger.Dollar)
	price.LongOver, price.Long = 100, ledger.Rates{Input: ledger.PerMillion(3 * ledger.Dollar), Output: ledger.PerMillion(5 * ledger.Dollar)}
	id := b.addPrice(t, price)
	list := b.prices(t)
	quote, err := list.Quote("openai/long", time.Now(), time.Minute, 200, 10)
	require.NoError(t, err)
	require.EqualValues(t, 650, quote.Amount, "held at the long rates, as it may be long")
	for _, tokens := range []ledger.Tokens{{Input: 100, Output: 10}, {Input: 60, CacheRead: 41, Output: 10}} {
		h := s.hold(0)
		h.Quote = quote
		require.NoError(t, b.hold(t, h))
		require.NoError(t, b.settle(t, list.Settle(h, tokens, ledger.Receipt{Model: "long"})))
	}
	lost := s.hold(0)
	lost.Quote = quote
	require.NoError(t, b.book(t.Context(), ledger.Booking{Held: []ledger.Hold{lost, s.hold(5)}}))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(lost.ID)))
	lines := b.charges(t, s)
	require.Len(t, lines, 3)
	costs := []ledger.Micros{110, 101*3 + 10*5, 650}
	for i, line := range lines {
		require.Equal(t, id, line.Price)
		require.Equal(t, costs[i], line.Cost)
	}
	require.Equal(t, ledger.PerMillion(3*ledger.Dollar), lines[1].Input, "the rates that were used")
	require.True(t, lines[1].Tokens.Estimated, "the cache's long rate is not known")
	b.sound(t)
}
