package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/app/trigger"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// priceView is the form for a price of the workspace's own.
type priceView struct {
	v      *visit
	Key    string
	Typed  map[string]string
	Faults map[string]string
}

// rateFields are the rates of a price: names as the ledger's faults have them.
var rateFields = []struct{ name, label, help string }{
	{"input", "Reading", "What a million tokens of input cost."},
	{"output", "Writing", "Answers and thinking."},
	{"cache_read", "Reading from the cache", ""},
	{"cache_write", "Writing into the cache", "For the provider’s usual time."},
	{"cache_write_long", "Writing into the cache for an hour", ""},
}

func (s *Server) addPricePage(v *visit) error {
	view := priceView{v: v, Key: newFormKey(), Typed: map[string]string{"model": v.QueryParam("model")}}
	return view.show(http.StatusOK)
}

func (p *priceView) show(status int) error {
	title := "Give a model a price"
	if n := len(p.Faults); n > 0 {
		title = "Error: " + ui.Plural(int64(n), "thing", "things") + " to fix"
	}
	frame := p.v.frame(title, inUsage)
	frame.Narrow = true
	return p.v.page(status, frame, priceBody(*p))
}

// addPrice gives a model a price, or lets a second person confirm it.
func (s *Server) addPrice(v *visit) error {
	view := priceView{v: v, Key: v.FormValue(formKeyName), Typed: map[string]string{}, Faults: map[string]string{}}
	if !trigger.FitsAsKey(view.Key) {
		return trigger.ErrNoFormKey
	}
	form := view.parse()
	if len(view.Faults) == 0 {
		if wrong, ok := errors.AsType[*ledger.PriceError](form.Price().Check()); ok {
			view.Faults[wrong.Field] = wrong.Reason
		}
	}
	if len(view.Faults) > 0 {
		v.saved = false
		return view.show(http.StatusUnprocessableEntity)
	}
	return v.changePrices(ledger.PriceChange{Add: &form}, form.Note)
}

// changePrices makes a change of prices and leads to where it shows.
func (v *visit) changePrices(change ledger.PriceChange, reason string) error {
	var out ledger.Outcome
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if out, err = ledger.Make(ctx, tx, ledger.Change{Price: &change}, reason, v.FormValue(formKeyName), v.me); err != nil || out.Done {
			return err
		}
		return v.s.askDeciders(ctx, tx, out.Request, v.me.User.ID)
	})
	if err != nil {
		return err
	}
	if !out.Done {
		return v.redirect(v.path("money", out.Request.String()))
	}
	return v.redirect(v.path("prices"))
}

// retirePrice takes one of the workspace's own prices out of use.
func (s *Server) retirePrice(v *visit) error {
	id, err := idParam[ledger.Price](v, "price")
	if err != nil {
		return err
	}
	view := pricesView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	known := false
	for _, own := range view.Own {
		known = known || own.ID == id
	}
	if !known {
		return errNotFound
	}
	if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
		return trigger.ErrNoFormKey
	}
	return v.changePrices(ledger.PriceChange{Retire: id}, "")
}

// setAlias adds or removes a name under which a model is billed.
func (s *Server) setAlias(v *visit) error {
	if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
		return trigger.ErrNoFormKey
	}
	if billed := v.FormValue("remove"); billed != "" {
		return v.changePrices(ledger.PriceChange{RemoveAlias: billed}, "")
	}
	alias := ledger.Alias{Billed: strings.TrimSpace(v.FormValue("billed")), Model: strings.TrimSpace(v.FormValue("model"))}
	err := v.changePrices(ledger.PriceChange{Alias: &alias}, "")
	wrong, ok := errors.AsType[*ledger.PriceError](err)
	if !ok {
		return err
	}
	v.saved = false
	view := pricesView{v: v, Key: newFormKey(), Alias: aliasForm{Billed: alias.Billed, Model: alias.Model, Field: wrong.Field, Fault: wrong.Reason}}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return view.show(http.StatusUnprocessableEntity)
}

// parse reads what was typed, and says beside each field what is wrong with it.
func (p *priceView) parse() ledger.PriceForm {
	form := ledger.PriceForm{Model: p.text("model"), Note: p.text("note"), From: p.instant("from"), To: p.instant("to")}
	form.Rates, form.Long = p.rates(""), p.rates("long_")
	if over := p.text("long_over"); over != "" {
		n, err := strconv.ParseInt(over, 10, 64)
		if err != nil || n < 1 || n > 1_000_000_000 {
			p.Faults["long_over"] = "Write from how many tokens on the other rates count, such as 200000."
		}
		form.LongOver = n
	}
	return form
}

func (p *priceView) text(name string) string {
	p.Typed[name] = strings.TrimSpace(p.v.FormValue(name))
	return p.Typed[name]
}

func (p *priceView) rates(prefix string) ledger.RateForm {
	rate := func(name string) *ledger.Micros {
		found, err := ledger.ParseRate(p.text(prefix + name))
		if amount, ok := errors.AsType[*ledger.AmountError](err); ok {
			p.Faults[prefix+name] = amount.Reason
		}
		if micros, known := found.Micros(); known {
			return &micros
		}
		return nil
	}
	return ledger.RateForm{Input: rate("input"), Output: rate("output"), CacheRead: rate("cache_read"), CacheWrite: rate("cache_write"), CacheWriteLong: rate("cache_write_long")}
}

// instant reads a date and time in the workspace's zone; empty leaves that side open.
func (p *priceView) instant(name string) time.Time {
	text := p.text(name)
	if text == "" {
		return time.Time{}
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(form, text, p.v.workspaceZone()); err == nil {
			return at.UTC()
		}
	}
	p.Faults[name] = "Write a date and a time, or leave it empty."
	return time.Time{}
}

func (p priceView) fields() []ui.Field {
	zone := ui.Zone(p.v.now, p.v.workspaceZone())
	fields := []ui.Field{p.field(ui.Field{Kind: ui.TextField, Name: "model", Label: "Model", MaxLength: 200, Autocomplete: "off", Placeholder: "openai/gpt-5.6-terra", Help: "With its provider, as pipelines name it."})}
	fields = append(fields, p.rateFields("")...)
	return append(fields,
		p.field(ui.Field{Kind: ui.DateTimeField, Name: "from", Label: "Holds from", Zone: zone, Optional: true, Needed: "empty: at once"}),
		p.field(ui.Field{Kind: ui.DateTimeField, Name: "to", Label: "Holds until", Zone: zone, Optional: true, Needed: "empty: no end", Help: "For launch prices. A call that may reach beyond it is reserved at the dearer price."}),
		p.field(ui.Field{Kind: ui.TextField, Name: "note", Label: "Where the figures come from", Optional: true, MaxLength: ledger.MaxReason}))
}

// longFields ask for what long inputs cost, which few models need.
func (p priceView) longFields() []ui.Field {
	over := p.field(ui.Field{Kind: ui.NumberField, Name: "long_over", Label: "More than so many tokens read", Optional: true, MaxLength: 12, Help: "Then these rates count for all tokens of the call."})
	return append([]ui.Field{over}, p.rateFields("long_")...)
}

func (p priceView) rateFields(prefix string) []ui.Field {
	var fields []ui.Field
	for i, one := range rateFields {
		field := ui.Field{Kind: ui.MoneyField, Name: prefix + one.name, Label: one.label, Help: one.help, Currency: "USD", MaxLength: 20, Optional: i > 1 || prefix != "", Needed: "empty: unknown"}
		fields = append(fields, p.field(field))
	}
	return fields
}

func (p priceView) field(f ui.Field) ui.Field {
	f.Value, f.Error = p.Typed[f.Name], p.Faults[f.Name]
	return f
}

// long folds the fields for long inputs away unless they are used.
func (p priceView) long() ui.Fold {
	fields, open := p.longFields(), false
	for _, field := range fields {
		open = open || field.Value != "" || field.Error != ""
	}
	return ui.Fold{ID: "long", Title: "Long inputs cost more", Open: open, Body: fieldsOf(fields)}
}
