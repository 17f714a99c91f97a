package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// The names of places in addresses; those of one thing among many go on with its id.
const (
	placeWorkspace = "workspace"
	placeDay       = "day"
	placeTests     = "tests"
	pipelinePrefix = "pipeline-"
	runPrefix      = "run-"
	keyPrefix      = "key-"
	centrePrefix   = "centre-"
)

// mostCentre bounds the name of a cost centre, in characters.
const mostCentre = 100

// placeName is how addresses name a place; empty for one that has no page.
func placeName(place ledger.Place) string {
	switch place.Scope {
	case ledger.ScopeTenant:
		return placeWorkspace
	case ledger.ScopeTenantDay:
		return placeDay
	case ledger.ScopeTest:
		return placeTests
	case ledger.ScopePipeline:
		return pipelinePrefix + place.ID
	case ledger.ScopeRun:
		return runPrefix + place.ID
	case ledger.ScopeKey:
		return keyPrefix + place.ID
	case ledger.ScopeCostCentre:
		return centrePrefix + place.ID
	}
	return ""
}

// namedPlace is a place with what people call it.
type namedPlace struct {
	ledger.Place
	Name string // of the thing: "Complaint answers"
	Run  *engine.Run
}

// placeParam reads the place that the address names. What is not in the workspace is not
// found.
func (v *visit) placeParam(ctx context.Context, tx tenants.Tx) (namedPlace, error) {
	name := v.Param("place")
	if v.Request().URL.RawPath != "" { // the router read the address as it was escaped
		plain, err := url.PathUnescape(name)
		if err != nil {
			return namedPlace{}, errNotFound
		}
		name = plain
	}
	switch name {
	case placeWorkspace:
		return namedPlace{Place: ledger.OfTenant(tx.Tenant), Name: "Workspace"}, nil
	case placeDay:
		return namedPlace{Place: ledger.OfTenantDay(tx.Tenant), Name: "Workspace"}, nil
	case placeTests:
		return namedPlace{Place: ledger.OfTests(tx.Tenant), Name: "Tests by builders"}, nil
	}
	if rest, ok := strings.CutPrefix(name, pipelinePrefix); ok {
		return pipelinePlace(ctx, tx, rest)
	}
	if rest, ok := strings.CutPrefix(name, runPrefix); ok {
		return runPlace(ctx, tx, rest)
	}
	if rest, ok := strings.CutPrefix(name, keyPrefix); ok {
		return keyPlace(ctx, tx, rest)
	}
	if rest, ok := strings.CutPrefix(name, centrePrefix); ok && rest != "" && utf8.ValidString(rest) && utf8.RuneCountInString(rest) <= mostCentre && !strings.ContainsRune(rest, 0) {
		return namedPlace{Place: ledger.OfCostCentre(rest), Name: rest}, nil
	}
	return namedPlace{}, errNotFound
}

func pipelinePlace(ctx context.Context, tx tenants.Tx, text string) (namedPlace, error) {
	id, err := tenants.ParseID[pipeline.Pipeline](text)
	if err != nil {
		return namedPlace{}, errNotFound
	}
	found, err := pipeline.ByID(ctx, tx, id)
	return namedPlace{Place: ledger.OfPipeline(ledger.PipelineID(id)), Name: found.Name}, err
}

func runPlace(ctx context.Context, tx tenants.Tx, text string) (namedPlace, error) {
	id, err := tenants.ParseID[engine.Run](text)
	if err != nil {
		return namedPlace{}, errNotFound
	}
	run, err := engine.RunByID(ctx, tx, id)
	return namedPlace{Place: ledger.OfRun(ledger.RunID(id)), Name: run.Name, Run: &run}, err
}

func keyPlace(ctx context.Context, tx tenants.Tx, text string) (namedPlace, error) {
	id, err := tenants.ParseID[tenants.ProviderKey](text)
	if err != nil {
		return namedPlace{}, errNotFound
	}
	key, err := tenants.ProviderKeyByID(ctx, tx, id)
	if errors.Is(err, tenants.ErrNoProviderKey) {
		err = errNotFound
	}
	return namedPlace{Place: ledger.OfKey(ledger.KeyID(id)), Name: keyName(key)}, err
}

// keyName is how a provider key is called on pages about money.
func keyName(key tenants.ProviderKey) string {
	if key.Hint == "" {
		return "Key of " + key.Provider
	}
	return "Key of " + key.Provider + ", ends " + key.Hint
}

// title is the place with its period, as a line of a table: "Complaint answers, month".
func (p namedPlace) title() string {
	switch p.Scope {
	case ledger.ScopeTenantDay:
		return "Workspace, day"
	case ledger.ScopeRun:
		return p.Name
	case ledger.ScopeCostCentre:
		return "Cost centre " + p.Name + ", month"
	}
	return p.Name + ", month"
}

// inText is the place inside a sentence: "the workspace", "“Complaint answers”".
func (p namedPlace) inText() string {
	switch p.Scope {
	case ledger.ScopeTenant, ledger.ScopeTenantDay:
		return "the workspace"
	case ledger.ScopeTest:
		return "tests by builders"
	case ledger.ScopeRun:
		return "the run “" + p.Name + "”"
	case ledger.ScopeCostCentre:
		return "the cost centre “" + p.Name + "”"
	}
	return "“" + p.Name + "”"
}

// perWords says how often the cap begins anew: " a month", " a day", or nothing.
func perWords(place ledger.Place) string {
	switch place.Scope {
	case ledger.ScopeTenantDay:
		return " a day"
	case ledger.ScopeRun, ledger.ScopeStep:
		return ""
	}
	return " a month"
}

// runsOf are the stopped runs that a cap of the place can have stopped, as far as that
// can be told by the place.
func (p namedPlace) runsOf() engine.StoppedFilter {
	filter := engine.StoppedFilter{}
	switch p.Scope {
	case ledger.ScopePipeline:
		filter.Pipeline, _ = tenants.ParseID[pipeline.Pipeline](p.ID)
	case ledger.ScopeRun:
		filter.Run, _ = tenants.ParseID[engine.Run](p.ID)
	}
	return filter
}
