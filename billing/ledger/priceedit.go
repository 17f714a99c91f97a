package ledger

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tollgate/tenants"
)

// PriceError tells a person what is wrong with a price, and at which field of it.
type PriceError struct {
	Field  string // "model", "input", "long_input", "to", …
	Reason string
}

func (e *PriceError) Error() string { return e.Reason }

// What a million tokens cost in the world is between these, if it costs anything: below
// it somebody has written the price of one token or of a thousand, above it the price of
// more than a million.
const (
	leastRate = Cent / 2
	mostRate  = 2_000 * Dollar
)

// slip is how many times an entered rate may differ from the one that the release knows.
const slip = 50

// ParseRate reads what a million tokens cost as a person types it, in dollars with at most
// six places after a point: "2", "0.075". Empty is a rate that nobody knows. Anything else
// is an *AmountError whose reason can be shown beside the field.
func ParseRate(text string) (Rate, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Rate{}, nil
	}
	text = strings.TrimPrefix(text, "$")
	whole, fraction, pointed := strings.Cut(text, ".")
	if !allDigits(whole) || pointed && !allDigits(fraction) {
		return Rate{}, &AmountError{"Write what a million tokens cost in dollars, with a point, such as 2 or 0.075."}
	}
	if len(fraction) > 6 {
		return Rate{}, &AmountError{"The smallest part of a price is a millionth of a dollar, six places after the point."}
	}
	dollars, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || dollars > int64(mostRate/Dollar) {
		return Rate{}, &AmountError{fmt.Sprintf("That is more than %v for a million tokens, which no model costs.", mostRate)}
	}
	micros, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	return PerMillion(Micros(dollars)*Dollar + Micros(micros)), nil
}

var modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}/[A-Za-z0-9][A-Za-z0-9._:@/-]{0,149}$`)

// Check finds what a price that a person has entered cannot be; nil or a *PriceError.
func (p Price) Check() error {
	switch {
	case !modelName.MatchString(p.name()):
		return &PriceError{"model", "Write the model with its provider, such as openai/gpt-5.6-terra."}
	case !p.To.IsZero() && !p.To.After(p.From):
		return &PriceError{"to", "The price ends before it begins."}
	case !p.Input.known:
		return &PriceError{"input", "Write what a million tokens of input cost. Without it the model is not called."}
	case !p.Output.known:
		return &PriceError{"output", "Write what a million tokens of output cost. Without it the model is not called."}
	case p.LongOver < 0:
		return &PriceError{"long_over", "Write from how many tokens on the other rates count, or leave it empty."}
	case p.LongOver == 0 && p.Long != Rates{}:
		return &PriceError{"long_over", "Write from how many tokens on the rates of long inputs count."}
	case p.LongOver > 0 && !p.Long.complete():
		return &PriceError{"long_input", "Write what long inputs and their outputs cost."}
	}
	if err := p.rates(0).check("", p.known()); err != nil {
		return err
	}
	return p.Long.check("long_", p.known())
}

// known are the rates that the release knows of the model, to compare with.
func (p Price) known() Rates {
	for _, s := range shipped {
		if s.name() == p.name() && s.complete() {
			return s.rates(0)
		}
	}
	return Rates{}
}

// check finds rates that are a slip.
func (r Rates) check(prefix string, known Rates) error {
	for _, one := range []struct {
		field       string
		rate, known Rate
	}{
		{"input", r.Input, known.Input}, {"output", r.Output, known.Output}, {"cache_read", r.CacheRead, known.CacheRead},
		{"cache_write", r.CacheWrite, known.CacheWrite}, {"cache_write_long", r.CacheWriteLong, known.CacheWriteLong},
	} {
		field, rate := prefix+one.field, one.rate.micros
		least := leastRate
		if one.field == "cache_read" {
			least /= 10
		}
		switch {
		case !one.rate.known || rate == 0 && one.known.micros == 0:
		case rate > 0 && rate < least:
			return &PriceError{field, fmt.Sprintf(
				"%s for a million tokens is less than any model costs. Did you write the price of one token, or of a thousand?", rate.Exact())}
		case rate > mostRate:
			return &PriceError{field, fmt.Sprintf("%v for a million tokens is more than any model costs.", rate)}
		case one.known.known && (rate > slip*one.known.micros || rate*slip < one.known.micros):
			return &PriceError{field, fmt.Sprintf("This model is known to cost %s for a million tokens, and %s is very far from it.",
				one.known.micros.Exact(), rate.Exact())}
		case one.field == "cache_read" && rate > r.Input.micros:
			return &PriceError{field, "Reading from a cache cannot cost more than reading anew."}
		}
	}
	return nil
}

// AddPrice gives a model a price of the tenant's own, which counts before all earlier
// ones. Calls that have begun keep theirs. It fails with a *PriceError. The price's ID and
// funds are not taken from p.
func AddPrice(ctx context.Context, tx tenants.Tx, p Price, note string, by tenants.UserID) (PriceID, error) {
	if err := p.Check(); err != nil {
		return PriceID{}, err
	}
	if len(note) > 500 {
		return PriceID{}, &PriceError{"note", "The note is longer than 500 characters."}
	}
	p.ID = tenants.NewID[Price]()
	short, long := p.columns(0), priceColumns{}
	var over *int64
	if p.LongOver > 0 {
		over, long = &p.LongOver, p.columns(p.LongOver+1)
	}
	var b tenants.Batch
	b.Queue(`INSERT INTO prices (tenant_id, id, model, valid_from, valid_to, input, output, cache_read, cache_write, cache_write_long,
			long_over, long_input, long_output, long_cache_read, long_cache_write, long_cache_write_long, note, set_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		tx.Tenant, p.ID, p.name(), orNull(p.From), orNull(p.To), short.Input, short.Output, short.CacheRead, short.CacheWrite,
		short.CacheWriteLong, over, long.Input, long.Output, long.CacheRead, long.CacheWrite, long.CacheWriteLong, plainText(note), by)
	queueNewList(&b)
	if err := tx.Send(ctx, &b); err != nil {
		return PriceID{}, fmt.Errorf("add a price: %w", err)
	}
	return p.ID, nil
}

// RetirePrice takes one of the tenant's own prices out of use; what stands behind it
// counts again. tenants.IsLostRace tells that there is no such price in use.
func RetirePrice(ctx context.Context, tx tenants.Tx, id PriceID) error {
	var b tenants.Batch
	b.Guarded(`UPDATE prices SET retired_at = now() WHERE tenant_id = $1 AND id = $2 AND retired_at IS NULL RETURNING 1`, tx.Tenant, id)
	queueNewList(&b)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("retire a price: %w", err)
	}
	return nil
}

// SetAlias says under which name a provider bills a model. It fails with a *PriceError.
func SetAlias(ctx context.Context, tx tenants.Tx, a Alias, by tenants.UserID) error {
	for field, name := range map[string]string{"billed": a.Billed, "model": a.Model} {
		if !modelName.MatchString(name) {
			return &PriceError{field, "Write the model with its provider, such as openai/gpt-5.6-terra."}
		}
	}
	from, _, _ := strings.Cut(a.Billed, "/")
	to, _, _ := strings.Cut(a.Model, "/")
	if fundsOf(from) != fundsOf(to) {
		return &PriceError{"model", "A model that costs real money cannot be billed as one that costs pretend dollars, nor the other way round."}
	}
	var b tenants.Batch
	b.Queue(`INSERT INTO price_aliases (tenant_id, billed, model, set_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, billed) DO UPDATE SET model = excluded.model, set_by = excluded.set_by, set_at = now()`,
		tx.Tenant, a.Billed, a.Model, by)
	queueNewList(&b)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("set an alias: %w", err)
	}
	return nil
}

// RemoveAlias forgets a name. tenants.IsLostRace tells that it was not known.
func RemoveAlias(ctx context.Context, tx tenants.Tx, billed string) error {
	var b tenants.Batch
	b.Guarded(`DELETE FROM price_aliases WHERE tenant_id = $1 AND billed = $2 RETURNING 1`, tx.Tenant, billed)
	queueNewList(&b)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("remove an alias: %w", err)
	}
	return nil
}

// queueNewList has everybody read the tenant's prices anew. A version is an instant: one
// that was undone is never given again.
func queueNewList(b *tenants.Batch) {
	b.Queue(`INSERT INTO price_lists (tenant_id, version) VALUES (ledger_tenant(), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
		ON CONFLICT (tenant_id) DO UPDATE SET version = greatest(excluded.version, price_lists.version + 1)`)
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
