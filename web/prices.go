package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// pricesView is what models cost the workspace.
type pricesView struct {
	v       *visit
	List    ledger.PriceList // what counts, in its order
	Own     []ledger.OwnPrice
	Aliases []ledger.Alias
	Names   map[tenants.UserID]string
	Key     string
	Alias   aliasForm
}

// aliasForm is a name as it was typed.
type aliasForm struct{ Billed, Model, Field, Fault string }

func (s *Server) pricesPage(v *visit) error {
	view := pricesView{v: v, Key: newFormKey()}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return view.show(http.StatusOK)
}

func (p *pricesView) show(status int) error {
	title := "Prices of models"
	if p.Alias.Fault != "" {
		title = "Error: 1 thing to fix"
	}
	return p.v.page(status, p.v.frame(title, inUsage), pricesBody(*p))
}

func (p *pricesView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if p.List, err = ledger.Prices(ctx, tx); err != nil {
		return err
	}
	if p.Own, err = ledger.OwnPrices(ctx, tx); err != nil {
		return err
	}
	if p.Aliases, err = ledger.Aliases(ctx, tx); err != nil {
		return err
	}
	var ids []tenants.UserID
	for _, own := range p.Own {
		ids = append(ids, own.By)
	}
	p.Names, err = tenants.Names(ctx, tx, ids)
	return err
}

// table lists the prices that count now or later. Of a row that another one hides nothing
// is shown; an alias stands in a table of its own.
func (p pricesView) table() ui.Table {
	table := ui.Table{ID: "prices", Caption: "US dollars for a million tokens", Columns: []ui.Column{
		{Title: "Model"}, {Title: "Read", Number: true}, {Title: "Written", Number: true}, {Title: "From the cache", Number: true},
		{Title: "Into the cache", Number: true}, {Title: "Holds"}, {Title: "From whom"},
	}}
	for i, price := range p.List {
		if price.AliasOf != "" || p.hidden(i) {
			continue
		}
		table.Rows = append(table.Rows, ui.TableRow{Cells: p.cells(price)})
	}
	slices.SortStableFunc(table.Rows, func(a, b ui.TableRow) int { return strings.Compare(a.Cells[0].Text, b.Cells[0].Text) })
	return table
}

// hidden tells that an earlier row of the list is valid for as long as this one is, or
// that this one is over.
func (p pricesView) hidden(i int) bool {
	price := p.List[i]
	if !price.To.IsZero() && !price.To.After(p.v.now) {
		return true
	}
	return slices.ContainsFunc(p.List[:i], func(other ledger.Price) bool {
		return other.Provider == price.Provider && other.Model == price.Model && !other.From.After(price.From) &&
			(other.To.IsZero() || !price.To.IsZero() && !other.To.Before(price.To))
	})
}

func (p pricesView) cells(price ledger.Price) []ui.Cell {
	name := ui.Cell{Text: price.Provider + "/" + price.Model}
	if price.Funds == ledger.Pretend {
		name.Small = "pretend dollars"
	}
	if price.LongOver > 0 {
		name.Small = "above " + ui.Count(price.LongOver) + " tokens read: " + rateWords(price.Long.Input) + " read, " + rateWords(price.Long.Output) + " written"
	}
	write := ui.Cell{Text: rateWords(price.CacheWrite)}
	if _, known := price.CacheWriteLong.Micros(); known {
		write.Small = rateWords(price.CacheWriteLong) + " for an hour"
	}
	return []ui.Cell{name, {Text: rateWords(price.Input)}, {Text: rateWords(price.Output)}, {Text: rateWords(price.CacheRead)}, write,
		{Text: p.holds(price)}, p.source(price)}
}

// rateWords write a rate; one that nobody knows is not zero.
func rateWords(rate ledger.Rate) string {
	if micros, known := rate.Micros(); known {
		return micros.Exact()
	}
	return "unknown"
}

// holds says from when until when a price is valid.
func (p pricesView) holds(price ledger.Price) string {
	at := func(t time.Time) string { return inSentence(ui.When(t, p.v.now, p.v.zone())) }
	switch {
	case price.From.IsZero() && price.To.IsZero(), price.To.IsZero() && !price.From.After(p.v.now):
		return "now"
	case price.To.IsZero():
		return "from " + at(price.From)
	case price.From.After(p.v.now):
		return "from " + at(price.From) + " until " + at(price.To)
	}
	return "until " + at(price.To)
}

// source says where a price comes from; the workspace's own can be taken out of use.
func (p pricesView) source(price ledger.Price) ui.Cell {
	if price.ID.IsZero() {
		return ui.Cell{Text: price.Source}
	}
	cell := ui.Cell{}
	for _, own := range p.Own {
		if own.ID == price.ID {
			cell.Text = p.Names[own.By] + ", " + inSentence(ui.WhenBrief(own.SetAt, p.v.now, p.v.zone()))
			cell.Small = own.Note
		}
	}
	if p.v.maySetCaps() {
		cell.Part = ui.PostButton{Action: p.v.path("prices", price.ID.String(), "retire"), Hidden: []ui.Hidden{{Name: formKeyName, Value: newFormKey()}},
			Button: ui.Button{Text: "Take out of use", Little: true, About: price.Provider + "/" + price.Model}}
	}
	return cell
}

// aliasRows are the names under which models are billed.
func (p pricesView) aliasRows() []ui.Row {
	var rows []ui.Row
	for _, alias := range p.Aliases {
		row := ui.Row{Name: alias.Billed, Reason: ui.Sentence{ui.Plain("costs what "), ui.Name(alias.Model), ui.Plain(" costs")}}
		if p.v.maySetCaps() {
			row.EndPart = ui.PostButton{Action: p.v.path("prices", "alias"), Hidden: []ui.Hidden{{Name: formKeyName, Value: newFormKey()}, {Name: "remove", Value: alias.Billed}},
				Button: ui.Button{Text: "Remove", Little: true, About: alias.Billed}}
		}
		rows = append(rows, row)
	}
	return rows
}

func (p pricesView) aliasFields() []ui.Field {
	fields := []ui.Field{
		{Kind: ui.TextField, Name: "billed", Label: "Name on the bill", Value: p.Alias.Billed, MaxLength: 200, Autocomplete: "off", Placeholder: "openai/gpt-5.6-terra-2026-10-01"},
		{Kind: ui.TextField, Name: "model", Label: "Costs what this model costs", Value: p.Alias.Model, MaxLength: 200, Autocomplete: "off", Placeholder: "openai/gpt-5.6-terra"},
	}
	for i := range fields {
		if fields[i].Name == p.Alias.Field {
			fields[i].Error = p.Alias.Fault
		}
	}
	return fields
}
