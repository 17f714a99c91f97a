package web

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

func (s *site) priceOf(model string) (ledger.Price, error) {
	s.t.Helper()
	var list ledger.PriceList
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		list, err = ledger.Prices(ctx, tx)
		return err
	})
	return list.At(model, time.Now())
}

func TestPricesAreEnteredNamedAndTakenOutOfUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	finance, builder := s.in(tenants.Finance), s.in(tenants.Builder)
	p := builder.get(s.at("prices")).is(http.StatusOK).says("openai/gpt-5.6-terra", "$2.00", "$12.00", "unknown", "until", "practice/standard", "pretend dollars")
	require.Empty(t, p.all("", "data-testid", "add-alias"))
	builder.get(s.at("prices", "add")).is(http.StatusForbidden)

	add := s.at("prices", "add")
	key := finance.get(add).is(http.StatusOK).field(formKeyName)
	for _, c := range []struct {
		says  string
		typed []string
	}{
		{"Write the model with its provider", []string{"model", "terra", "input", "1", "output", "2"}},
		{"Without it the model is not called", []string{"model", "acme/one", "input", "1"}},
		{"Did you write the price of one token", []string{"model", "acme/one", "input", "0.000002", "output", "2"}},
		{"which no model costs", []string{"model", "acme/one", "input", "9999999", "output", "2"}},
		{"is very far from it", []string{"model", "openai/gpt-5.6-terra", "input", "200", "output", "12"}},
		{"ends before it begins", []string{"model", "acme/one", "input", "1", "output", "2", "from", "2027-01-02T00:00", "to", "2027-01-01T00:00"}},
		{"Write a date and a time", []string{"model", "acme/one", "input", "1", "output", "2", "to", "soon"}},
		{"from how many tokens on", []string{"model", "acme/one", "input", "1", "output", "2", "long_over", "-5"}},
		{"long inputs and their outputs", []string{"model", "acme/one", "input", "1", "output", "2", "long_over", "200000"}},
	} {
		finance.post(add, append(c.typed, formKeyName, key)...).is(http.StatusUnprocessableEntity).says(c.says, "1 thing to fix")
	}
	finance.post(add, "model", "acme/one", "input", "1", "output", "2").is(http.StatusBadRequest)
	_, err := s.priceOf("acme/one")
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)

	finance.post(add, formKeyName, key, "model", "acme/one", "input", "1.5", "output", "6", "cache_read", "0.15", "note", "contract of <b>May</b>").leadsTo(s.at("prices"))
	price, err := s.priceOf("acme/one")
	require.NoError(t, err)
	require.Equal(t, ledger.PerMillion(150*ledger.Cent), price.Input)
	builder.get(s.at("prices")).says("acme/one", "$1.50", "$6.00", "$0.15", "contract of <b>May</b>")

	finance.post(s.at("prices", "alias"), formKeyName, key, "billed", "acme one", "model", "acme/one").is(http.StatusUnprocessableEntity).says("1 thing to fix")
	finance.post(s.at("prices", "alias"), formKeyName, key, "billed", "acme/one-2026-11", "model", "acme/one").leadsTo(s.at("prices"))
	_, err = s.priceOf("acme/one-2026-11")
	require.NoError(t, err)
	finance.post(s.at("prices", "alias"), formKeyName, key, "remove", "acme/one-2026-11").leadsTo(s.at("prices"))
	_, err = s.priceOf("acme/one-2026-11")
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)
	finance.post(s.at("prices", price.ID.String(), "retire"), formKeyName, key).leadsTo(s.at("prices"))
	_, err = s.priceOf("acme/one")
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)
	finance.post(s.at("prices", price.ID.String(), "retire"), formKeyName, key).is(http.StatusConflict)
}

// Where raises need a second person, so does every price.
func TestPricesNeedTwoPeopleWhereRaisesDo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	owner, finance := s.in(tenants.Owner), s.in(tenants.Finance)
	rules := owner.get(s.at("settings", "money"))
	owner.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), secondName, "100").is(http.StatusSeeOther)
	key := finance.get(s.at("prices", "add")).field(formKeyName)
	request := finance.post(s.at("prices", "add"), formKeyName, key, "model", "acme/one", "input", "1", "output", "2").is(http.StatusSeeOther).header.Get("Location")
	_, err := s.priceOf("acme/one")
	require.ErrorIs(t, err, ledger.ErrUnknownPrice)
	shown := owner.get(request).is(http.StatusOK).says("Change the prices of models", "acme/one", "Confirm as the second person")
	owner.get(s.at("caps")).says("Change the prices of models")
	owner.post(request+"/grant", formKeyName, shown.field(formKeyName)).is(http.StatusSeeOther)
	_, err = s.priceOf("acme/one")
	require.NoError(t, err)
}

func TestTheLookOfPrices(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	owner := s.in(tenants.Owner)
	key := owner.get(s.at("prices", "add")).field(formKeyName)
	owner.post(s.at("prices", "add"), formKeyName, key, "model", "acme/summariser-large-2026", "input", "1.5", "output", "6", "cache_read", "0.15", "cache_write", "2",
		"cache_write_long", "3", "long_over", "200000", "long_input", "3", "long_output", "12", "note", hostile).is(http.StatusSeeOther)
	owner.post(s.at("prices", "alias"), formKeyName, key, "billed", "acme/summariser-large-2026-11-02", "model", "acme/summariser-large-2026").is(http.StatusSeeOther)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			for name, path := range map[string]string{"prices": s.at("prices"), "price": s.at("prices", "add")} {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
		})
	}
}
