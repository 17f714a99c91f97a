package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrUnknownPrice refuses a call whose price is not known: the model has no price, or
// not at that time, or lacks an input or an output rate.
var ErrUnknownPrice = errors.New("the model's price is not known")

// PriceList is a set of dated prices. Of two rows that are valid at once, the one that
// stands first counts.
type PriceList []Price

// shipped are the prices that are known without anybody entering them. A figure that
// its source does not give is left out, and is then unknown.
var shipped = PriceList{
	{Provider: "anthropic", Model: "claude-sonnet-5", Funds: Real, Source: announced,
		Input: PerMillion(2 * Dollar), Output: PerMillion(10 * Dollar),
		CacheRead: PerMillion(20 * Cent), CacheWrite: PerMillion(250 * Cent), CacheWriteLong: PerMillion(4 * Dollar)},
	{Provider: "openai", Model: "gpt-5.6-terra", Funds: Real, Source: announced,
		Input: PerMillion(2 * Dollar), Output: PerMillion(12 * Dollar),
		CacheRead: PerMillion(20 * Cent), CacheWrite: PerMillion(250 * Cent), LongOver: 272_000, Long: Rates{
			Input: PerMillion(4 * Dollar), Output: PerMillion(18 * Dollar), CacheRead: PerMillion(40 * Cent), CacheWrite: PerMillion(5 * Dollar)}},
	{Provider: "google", Model: "gemini-3.8-flash", Funds: Real, Source: announced, To: geminiRise,
		Input: PerMillion(75 * Cent), Output: PerMillion(375 * Cent)},
	{Provider: "google", Model: "gemini-3.8-flash", Funds: Real, Source: announced, From: geminiRise,
		Input: PerMillion(150 * Cent)},
	{Provider: "anthropic", Model: "claude-fable-5.1", Funds: Real, Source: announced,
		Input: PerMillion(10 * Dollar), CacheRead: PerMillion(25 * Cent)},
	{Provider: "openai", Model: "gpt-6-astra", Funds: Real, Source: announced,
		Input: PerMillion(10 * Dollar)},
	{Provider: "practice", Model: "standard", Funds: Pretend, Source: "pretend, so that caps and bills can be seen working",
		Input: PerMillion(3 * Dollar), Output: PerMillion(15 * Dollar),
		CacheRead: PerMillion(30 * Cent), CacheWrite: PerMillion(375 * Cent)},
	{Provider: "fake", Model: "first", Funds: Pretend, Source: "pretend, so that caps and bills can be seen working",
		Input: PerMillion(3 * Dollar), Output: PerMillion(15 * Dollar),
		CacheRead: PerMillion(30 * Cent), CacheWrite: PerMillion(375 * Cent)},
	{Provider: "fake", Model: "second", Funds: Pretend, Source: "pretend, so that caps and bills can be seen working",
		Input: PerMillion(3 * Dollar), Output: PerMillion(15 * Dollar),
		CacheRead: PerMillion(30 * Cent), CacheWrite: PerMillion(375 * Cent)},
}

const announced = "the provider's published price"

// geminiRise ends the launch price, which is valid through 31 December 2026.
var geminiRise = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)

// PriceAt is the shipped price of a model, such as "openai/gpt-5.6-terra", at an
// instant. It fails with ErrUnknownPrice.
func PriceAt(model string, at time.Time) (Price, error) { return shipped.At(model, at) }

// At is the price of a model at an instant. It fails with ErrUnknownPrice.
func (l PriceList) At(model string, at time.Time) (Price, error) {
	provider, name, _ := strings.Cut(model, "/")
	for _, p := range l {
		if p.Provider == provider && p.Model == name && p.validAt(at) {
			if !p.complete() {
				return Price{}, fmt.Errorf("%w: %q lacks an input or an output price on %s",
					ErrUnknownPrice, model, at.UTC().Format(time.DateOnly))
			}
			return p, nil
		}
	}
	return Price{}, fmt.Errorf("%w: there is none for %q on %s", ErrUnknownPrice, model, at.UTC().Format(time.DateOnly))
}

func (p Price) validAt(at time.Time) bool {
	return !at.Before(p.From) && (p.To.IsZero() || at.Before(p.To))
}

// Quote is what a call needs before it may start.
type Quote struct {
	Model  string // as asked for: "openai/gpt-5.6-terra"
	Price  Price  // valid at the start; the cost is computed with it
	Amount Micros // to reserve
	Start  time.Time
}

// QuoteFor prices a call that starts at now, takes at most longest, reads at most
// inputBound tokens and writes at most maxOutput. It reserves at the dearest price that
// is valid at any time of the call, since a provider may bill by the call's end. It
// fails with ErrUnknownPrice also where a price is not known for the whole of that time.
func QuoteFor(model string, now time.Time, longest time.Duration, inputBound, maxOutput int64) (Quote, error) {
	return shipped.Quote(model, now, longest, inputBound, maxOutput)
}

// Quote is QuoteFor with the prices of this list.
func (l PriceList) Quote(model string, now time.Time, longest time.Duration, inputBound, maxOutput int64) (Quote, error) {
	price, err := l.quotable(model, now, inputBound)
	if err != nil {
		return Quote{}, err
	}
	quote := Quote{Model: model, Price: price, Amount: price.HoldFor(inputBound, maxOutput), Start: now}
	end := now.Add(max(longest, 0))
	for next := l.change(model, now); !next.IsZero() && !next.After(end); next = l.change(model, next) {
		if price, err = l.quotable(model, next, inputBound); err != nil {
			return Quote{}, err
		}
		quote.Amount = max(quote.Amount, price.HoldFor(inputBound, maxOutput))
	}
	return quote, nil
}

// quotable is the price at an instant of a call that may read so much.
func (l PriceList) quotable(model string, at time.Time, inputBound int64) (Price, error) {
	price, err := l.At(model, at)
	if err == nil && price.long(inputBound) && !price.Long.complete() {
		return Price{}, fmt.Errorf("%w: that of %q for calls that read more than %d tokens", ErrUnknownPrice, model, price.LongOver)
	}
	return price, err
}

// change is the next instant after one at which another price of the model may begin to
// count; zero if there is none.
func (l PriceList) change(model string, after time.Time) time.Time {
	provider, name, _ := strings.Cut(model, "/")
	var next time.Time
	for _, p := range l {
		if p.Provider != provider || p.Model != name {
			continue
		}
		for _, edge := range []time.Time{p.From, p.To} {
			if edge.After(after) && (next.IsZero() || edge.Before(next)) {
				next = edge
			}
		}
	}
	return next
}

// Settle is the settlement of an answered call. Where the provider billed a model other
// than was asked for, and its price is known, that counts; where it is not, the price of
// the model asked for counts, and the line is marked as an estimate.
func (l PriceList) Settle(h Hold, tokens Tokens, receipt Receipt) Settlement {
	l = l.PaidBy(h.Payer)
	settlement := h.Settle(tokens, receipt)
	name := strings.TrimPrefix(receipt.Model, "models/")
	if settlement.Unknown || name == "" || name == h.Price.Model || name == h.Model {
		return settlement
	}
	billed, err := l.At(h.Price.Provider+"/"+name, h.Start)
	switch {
	case err == nil && billed.Funds == h.Price.Funds:
		h.Price = billed
		return h.Settle(tokens, receipt)
	case !dated(name, h.Price.Model):
		settlement.Estimated = true
	}
	return settlement
}

// dated tells that a name on a bill is a model's with a date or a release behind it, such
// as "gpt-5.6-terra-2026-09-01".
func dated(name, model string) bool {
	rest, begins := strings.CutPrefix(name, model)
	digits := strings.NewReplacer("-", "", ".", "", "@", "", ":", "").Replace(rest)
	return begins && len(rest) > len(digits) && len(digits) >= 3 && strings.Trim(digits, "0123456789") == ""
}
