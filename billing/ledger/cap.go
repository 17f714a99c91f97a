package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/tenants"
)

// Cap is the most a place may spend of some funds in a period. A nil Limit is no cap,
// a limit of 0 allows nothing.
type Cap struct {
	Place
	Funds Funds
	Limit *Micros
	// AlertOnly lets calls go on beyond the limit: people are told, nothing is stopped.
	AlertOnly bool
	// Until ends Limit at an instant, from which on After is the limit: a raise that
	// expires. Zero means that Limit holds until somebody sets another.
	Until time.Time
	After *Micros
	By    tenants.UserID // who set it; zero for the system
}

// ErrBadCap refuses a cap that is below 0 or above MaxMicros, or of no known place or
// funds.
var ErrBadCap = errors.New("the cap is not valid")

func (c Cap) check() error {
	for _, limit := range []*Micros{c.Limit, c.After} {
		switch {
		case limit != nil && *limit < 0:
			return fmt.Errorf("%w: it is below 0", ErrBadCap)
		case limit != nil && *limit > MaxMicros:
			return fmt.Errorf("%w: it is above %v", ErrBadCap, MaxMicros)
		}
	}
	switch {
	case c.Funds != Real && c.Funds != Pretend:
		return fmt.Errorf("%w: there are no %q funds", ErrBadCap, c.Funds)
	case c.Scope.period() == "":
		return fmt.Errorf("%w: there is no scope %q", ErrBadCap, c.Scope)
	case c.ID == "":
		return fmt.Errorf("%w: it is of nothing", ErrBadCap)
	case c.After != nil && c.Until.IsZero():
		return fmt.Errorf("%w: what follows it has no beginning", ErrBadCap)
	}
	return nil
}

// document has the column names of table caps.
func (c Cap) document() capDocument {
	mode := "stop"
	if c.AlertOnly {
		mode = "alert"
	}
	return capDocument{
		Scope: c.Scope, ID: c.ID, Funds: c.Funds, Period: c.Scope.period(), Limit: c.Limit,
		Mode: mode, Until: c.Until, After: c.After, By: c.By,
	}
}

type capDocument struct {
	Scope  Scope          `json:"scope"`
	ID     string         `json:"scope_id"`
	Funds  Funds          `json:"funds"`
	Period string         `json:"period"`
	Limit  *Micros        `json:"limit_micros"`
	Mode   string         `json:"mode"`
	Until  time.Time      `json:"limit_until,omitzero"`
	After  *Micros        `json:"limit_after"`
	By     tenants.UserID `json:"set_by,omitzero"`
}

// SetCap sets or lifts a cap at once: no hold that comes later passes it unseen. What is
// spent and held already stays; a cap below it only stops further holds. A place that was
// not counted before begins with what its lines add up to. It fails with ErrBadCap.
//
// Until the transaction ends, the tenant's money stands still. So it is a short one, and
// locks no run after this: what was stopped is woken in transactions that follow.
func SetCap(ctx context.Context, tx tenants.Tx, c Cap) error {
	if err := c.check(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `SELECT ledger_cap(jsonb_populate_record(NULL::caps, $1))`, c.document())
	if err != nil {
		return fmt.Errorf("set a cap: %w", err)
	}
	return nil
}

// QueueRunCap gives a run that starts in this batch its cap. Nothing is held for it yet,
// so nothing need stand still. It fails with ErrBadCap.
func QueueRunCap(b *tenants.Batch, run RunID, funds Funds, limit Micros) error {
	c := Cap{Place: OfRun(run), Funds: funds, Limit: &limit}
	if err := c.check(); err != nil {
		return err
	}
	b.Queue(`
		INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros)
		VALUES (ledger_tenant(), $1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, c.Scope, c.ID, c.Funds, c.Scope.period(), c.Limit)
	return nil
}
