package ledger

import "tollgate/tenants"

// Scope is what a cap and a balance are of.
type Scope string

// The scopes there are, in the order in which a hold goes through them. Runs, pipelines
// and the tenant's month are always counted, the others from their first cap on.
const (
	ScopeStep       Scope = "step"        // once and for all: a step run and what is inside it
	ScopeRun        Scope = "run"         // once and for all: a run and the runs it starts
	ScopePipeline   Scope = "pipeline"    // by calendar month
	ScopeCostCentre Scope = "cost_centre" // by calendar month
	ScopeKey        Scope = "key"         // by calendar month: one of the tenant's provider keys
	ScopeTest       Scope = "test"        // by calendar month: holds of kind Test
	ScopeTenantDay  Scope = "tenant_day"  // by calendar day: everything a tenant does
	ScopeTenant     Scope = "tenant"      // by calendar month: everything a tenant does
)

// periods is the kind of time that each scope counts in. Months and days are those of
// the tenant's zone.
var periods = map[Scope]string{
	ScopeStep: "once", ScopeRun: "once",
	ScopePipeline: "month", ScopeCostCentre: "month", ScopeKey: "month", ScopeTest: "month",
	ScopeTenantDay: "day", ScopeTenant: "month",
}

// period is the kind of time that a scope counts in: "once", "day" or "month".
func (s Scope) period() string { return periods[s] }

// Place is one thing that a cap or a balance belongs to.
type Place struct {
	Scope Scope
	ID    string
}

// OfStep is the place of one step run that holds others, or of one that may try often.
func OfStep(id StepRunID) Place { return Place{Scope: ScopeStep, ID: id.String()} }

// OfRun is the place of one run and of the runs it starts.
func OfRun(id RunID) Place { return Place{Scope: ScopeRun, ID: id.String()} }

// OfPipeline is the place of all runs of one pipeline.
func OfPipeline(id PipelineID) Place { return Place{Scope: ScopePipeline, ID: id.String()} }

// OfCostCentre is the place of all calls for one cost centre.
func OfCostCentre(name string) Place { return Place{Scope: ScopeCostCentre, ID: name} }

// OfKey is the place of all calls that one provider key of the tenant pays for.
func OfKey(id KeyID) Place { return Place{Scope: ScopeKey, ID: id.String()} }

// OfTests is the place of all tests of a tenant: its test budget.
func OfTests(id tenants.ID) Place { return Place{Scope: ScopeTest, ID: id.String()} }

// OfTenantDay is the place of everything a tenant does in a day.
func OfTenantDay(id tenants.ID) Place { return Place{Scope: ScopeTenantDay, ID: id.String()} }

// OfTenant is the place of everything a tenant does in a month.
func OfTenant(id tenants.ID) Place { return Place{Scope: ScopeTenant, ID: id.String()} }
