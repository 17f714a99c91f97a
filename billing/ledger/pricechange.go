package ledger

import (
	"context"
	"strings"
	"time"

	"tollgate/tenants"
)

// PriceChange is a change of what models cost: exactly one of its parts is set.
type PriceChange struct {
	Add         *PriceForm `json:"add,omitempty"`
	Retire      PriceID    `json:"retire,omitzero"`
	Alias       *Alias     `json:"alias,omitempty"`
	RemoveAlias string     `json:"remove_alias,omitempty"`
}

// PriceForm is a price as a person gives it. Rates are in micros for a million tokens;
// nil is a rate that nobody knows.
type PriceForm struct {
	Model    string    `json:"model"` // with its provider
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Rates    RateForm  `json:"rates"`
	LongOver int64     `json:"long_over,omitempty"`
	Long     RateForm  `json:"long,omitzero"`
	Note     string    `json:"note,omitempty"`
}

// RateForm are the rates of each class of tokens.
type RateForm struct {
	Input          *Micros `json:"input,omitempty"`
	Output         *Micros `json:"output,omitempty"`
	CacheRead      *Micros `json:"cache_read,omitempty"`
	CacheWrite     *Micros `json:"cache_write,omitempty"`
	CacheWriteLong *Micros `json:"cache_write_long,omitempty"`
}

func (f RateForm) rates() Rates {
	return Rates{Input: rateOf(f.Input), Output: rateOf(f.Output), CacheRead: rateOf(f.CacheRead), CacheWrite: rateOf(f.CacheWrite), CacheWriteLong: rateOf(f.CacheWriteLong)}
}

// Price is the price that the form gives.
func (f PriceForm) Price() Price {
	provider, model, _ := strings.Cut(f.Model, "/")
	r := f.Rates.rates()
	return Price{
		Provider: provider, Model: model, From: f.From, To: f.To, Input: r.Input, Output: r.Output, CacheRead: r.CacheRead,
		CacheWrite: r.CacheWrite, CacheWriteLong: r.CacheWriteLong, LongOver: f.LongOver, Long: f.Long.rates(),
	}
}

func (c PriceChange) check() error {
	if c.Add != nil {
		return c.Add.Price().Check()
	}
	return nil
}

func (c PriceChange) apply(ctx context.Context, tx tenants.Tx, by tenants.UserID) error {
	switch {
	case c.Add != nil:
		_, err := AddPrice(ctx, tx, c.Add.Price(), c.Add.Note, by)
		return err
	case c.Alias != nil:
		return SetAlias(ctx, tx, *c.Alias, by)
	case c.RemoveAlias != "":
		return RemoveAlias(ctx, tx, c.RemoveAlias)
	}
	return RetirePrice(ctx, tx, c.Retire)
}
