package ledger

import (
	"context"
	"errors"
	"fmt"

	"tollgate/tenants"
)

// Scope is what a cap and a balance are of.
type Scope string

// The scopes there are, in the order in which a hold goes through them.
const (
	ScopeRun      Scope = "run"      // once and for all
	ScopePipeline Scope = "pipeline" // by calendar month
	ScopeTenant   Scope = "tenant"   // by calendar month
)

// period is the kind of time that a scope counts in.
func (s Scope) period() string {
	if s == ScopeRun {
		return "once"
	}
	return "month"
}

// Place is one thing that a cap or a balance belongs to.
type Place struct {
	Scope Scope
	ID    string
}

// OfRun is the place of one run.
func OfRun(id RunID) Place { return Place{Scope: ScopeRun, ID: id.String()} }

// OfPipeline is the place of all runs of one pipeline.
func OfPipeline(id PipelineID) Place { return Place{Scope: ScopePipeline, ID: id.String()} }

// OfTenant is the place of everything a tenant does.
func OfTenant(id tenants.ID) Place { return Place{Scope: ScopeTenant, ID: id.String()} }

// Cap is the most a place may spend of some funds in a period. A nil Limit is no cap,
// a limit of 0 allows nothing.
type Cap struct {
	Place
	Funds Funds
	Limit *Micros
	By    tenants.UserID // who set it; zero for the system
}

// ErrBadCap refuses a cap that is below 0 or above MaxMicros, or of no known scope or
// funds.
var ErrBadCap = errors.New("the cap is not valid")

func (c Cap) check() error {
	switch {
	case c.Limit != nil && *c.Limit < 0:
		return fmt.Errorf("%w: it is below 0", ErrBadCap)
	case c.Limit != nil && *c.Limit > MaxMicros:
		return fmt.Errorf("%w: it is above %v", ErrBadCap, MaxMicros)
	case c.Funds != Real && c.Funds != Pretend:
		return fmt.Errorf("%w: there are no %q funds", ErrBadCap, c.Funds)
	case c.Scope != ScopeRun && c.Scope != ScopePipeline && c.Scope != ScopeTenant:
		return fmt.Errorf("%w: there is no scope %q", ErrBadCap, c.Scope)
	}
	return nil
}

// SetCap sets or lifts a cap at once. What is spent and held already stays; a cap below
// it only stops further holds. It fails with ErrBadCap.
func SetCap(ctx context.Context, tx tenants.Tx, c Cap) error {
	var b tenants.Batch
	if err := QueueCap(&b, c); err != nil {
		return err
	}
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("set a cap: %w", err)
	}
	return nil
}

// QueueCap is SetCap as a part of a batch: the cap of a run is set with its start.
func QueueCap(b *tenants.Batch, c Cap) error {
	if err := c.check(); err != nil {
		return err
	}
	b.Queue(`
		INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros, set_by)
		VALUES (ledger_tenant(), $1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, scope, scope_id, funds, period)
		DO UPDATE SET limit_micros = excluded.limit_micros, set_by = excluded.set_by, set_at = now()`,
		c.Scope, c.ID, c.Funds, c.Scope.period(), c.Limit, c.By)
	return nil
}
