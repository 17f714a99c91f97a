package web

import (
	"context"
	"net/http"
	"slices"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// capsView are all caps of the workspace, who is stopped by one, and who asks for more.
type capsView struct {
	v        *visit
	Funds    ledger.Funds
	Both     bool // there is something of either kind of dollars
	Places   []capLine
	Stopped  []engine.Stopped
	Total    int // of the stopped runs
	Requests []ledger.Request
	Asked    map[ledger.RequestID]namedPlace
	Names    map[tenants.UserID]string
	Settings ledger.Settings
}

// capLine is one place with where it stands.
type capLine struct {
	namedPlace
	ledger.Standing
}

func (s *Server) capsPage(v *visit) error {
	view := capsView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("AI spend caps", inUsage), capsBody(view))
}

func (c *capsView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	standings, err := c.readFunds(ctx, tx)
	if err != nil {
		return err
	}
	if err := c.readPlaces(ctx, tx, standings); err != nil {
		return err
	}
	if c.Stopped, c.Total, err = c.v.s.Engine.StoppedRuns(ctx, tx, engine.StoppedFilter{}); err != nil {
		return err
	}
	if c.Settings, err = ledger.SettingsOf(ctx, tx); err != nil {
		return err
	}
	return c.readRequests(ctx, tx)
}

// readFunds chooses the kind of dollars: the one asked for, else real dollars where
// there are any.
func (c *capsView) readFunds(ctx context.Context, tx tenants.Tx) ([]ledger.PlaceStanding, error) {
	found := map[ledger.Funds][]ledger.PlaceStanding{}
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		all, err := ledger.ListStandings(ctx, tx, funds)
		if err != nil {
			return nil, err
		}
		found[funds] = all
	}
	c.Both = len(found[ledger.Pretend]) > 0
	c.Funds = c.v.fundsParam(len(found[ledger.Real]) > 0, c.Both)
	return found[c.Funds], nil
}

// fundsParam reads which kind of dollars a page is about.
func (v *visit) fundsParam(real, pretend bool) ledger.Funds {
	asked := ledger.Funds(v.FormValue(fundsName))
	if asked == ledger.Pretend || asked == "" && !real && pretend {
		return ledger.Pretend
	}
	return ledger.Real
}

// readPlaces lists every place that has a cap, was used, or can be given one.
func (c *capsView) readPlaces(ctx context.Context, tx tenants.Tx, standings []ledger.PlaceStanding) error {
	pipelines, err := pipeline.List(ctx, tx)
	if err != nil {
		return err
	}
	keys, err := tenants.ProviderKeys(ctx, tx)
	if err != nil {
		return err
	}
	places := []namedPlace{
		{Place: ledger.OfTenant(tx.Tenant), Name: "Workspace"}, {Place: ledger.OfTenantDay(tx.Tenant), Name: "Workspace"},
	}
	for _, one := range pipelines {
		places = append(places, namedPlace{Place: ledger.OfPipeline(ledger.PipelineID(one.ID)), Name: one.Name})
	}
	for _, key := range keys {
		if key.RemovedAt == nil {
			places = append(places, namedPlace{Place: ledger.OfKey(ledger.KeyID(key.ID)), Name: keyName(key)})
		}
	}
	for _, one := range standings {
		if one.Scope == ledger.ScopeCostCentre {
			places = append(places, namedPlace{Place: one.Place, Name: one.ID})
		}
	}
	places = append(places, namedPlace{Place: ledger.OfTests(tx.Tenant), Name: "Tests by builders"})
	for _, place := range places {
		line := capLine{namedPlace: place}
		if i := slices.IndexFunc(standings, func(s ledger.PlaceStanding) bool { return s.Place == place.Place }); i >= 0 {
			line.Standing = standings[i].Standing
		}
		c.Places = append(c.Places, line)
	}
	return nil
}

// readRequests reads who asks for what, with the names of places and people.
func (c *capsView) readRequests(ctx context.Context, tx tenants.Tx) error {
	var err error
	if c.Requests, err = ledger.OpenRequests(ctx, tx); err != nil {
		return err
	}
	c.Asked = map[ledger.RequestID]namedPlace{}
	var ids []tenants.UserID
	for _, request := range c.Requests {
		ids = append(ids, request.AskedBy)
		if request.Change.Cap == nil {
			continue
		}
		if c.Asked[request.ID], err = c.v.nameOf(ctx, tx, request.Change.Cap.Place); err != nil {
			return err
		}
	}
	c.Names, err = tenants.Names(ctx, tx, ids)
	return err
}

// nameOf finds what a place is called, also where its thing is gone.
func (v *visit) nameOf(ctx context.Context, tx tenants.Tx, place ledger.Place) (namedPlace, error) {
	named := namedPlace{Place: place, Name: place.ID}
	var err error
	switch place.Scope {
	case ledger.ScopeTenant, ledger.ScopeTenantDay:
		named.Name = "Workspace"
	case ledger.ScopeTest:
		named.Name = "Tests by builders"
	case ledger.ScopePipeline:
		named, err = pipelinePlace(ctx, tx, place.ID)
	case ledger.ScopeRun:
		named, err = runPlace(ctx, tx, place.ID)
	case ledger.ScopeKey:
		named, err = keyPlace(ctx, tx, place.ID)
	}
	return named, err
}

// fundsName carries the kind of dollars in forms and addresses.
const fundsName = "funds"

// capAddress is the page of a place's cap.
func (v *visit) capAddress(place ledger.Place, funds ledger.Funds, more ...string) string {
	path := v.path(append([]string{"caps", placeName(place)}, more...)...)
	if funds == ledger.Pretend {
		path += queryOf(fundsName, string(funds))
	}
	return path
}

// fundsFilter chooses the kind of dollars on a page that has both.
func fundsFilter(here ledger.Funds, address func(ledger.Funds) string) ui.Filters {
	return ui.Filters{Label: "Kind of dollars", Items: []ui.Filter{
		{Text: "Real dollars", Href: address(ledger.Real), Here: here == ledger.Real},
		{Text: "Pretend dollars", Href: address(ledger.Pretend), Here: here == ledger.Pretend},
	}}
}
