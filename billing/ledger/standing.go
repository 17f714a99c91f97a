package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Standing is where a place stands with one kind of funds.
type Standing struct {
	Limit   *Micros // nil: no cap
	Spent   Micros
	Held    Micros // reserved for calls that are under way
	Overrun Micros // the part of Spent by which calls cost more than was reserved
}

// Left is how much more can be held; false where there is no cap. It is never below 0.
func (s Standing) Left() (Micros, bool) {
	if s.Limit == nil {
		return 0, false
	}
	return max(0, *s.Limit-s.Spent-s.Held), true
}

// Standings are a place's standings by funds.
type Standings struct {
	Real, Pretend Standing
}

// Of picks the standing with the given funds.
func (s Standings) Of(funds Funds) Standing {
	if funds == Pretend {
		return s.Pretend
	}
	return s.Real
}

// MonthStatus is a place's current month, which begins and ends at midnight in the
// tenant's zone.
type MonthStatus struct {
	Zone     string
	From, To time.Time // To is exclusive
	Standings
}

// Month is where the tenant stands in its current month.
func Month(ctx context.Context, tx tenants.Tx) (MonthStatus, error) {
	return monthOf(ctx, tx, OfTenant(tx.Tenant))
}

// MonthOfPipeline is where one pipeline stands in the current month.
func MonthOfPipeline(ctx context.Context, tx tenants.Tx, id PipelineID) (MonthStatus, error) {
	return monthOf(ctx, tx, OfPipeline(id))
}

func monthOf(ctx context.Context, tx tenants.Tx, place Place) (MonthStatus, error) {
	const query = `
		SELECT zone, ledger_month($2, zone),
			(date_trunc('month', $2::timestamptz AT TIME ZONE zone) + interval '1 month') AT TIME ZONE zone
		FROM tenants WHERE id = $1`
	var month MonthStatus
	if err := tx.QueryRow(ctx, query, tx.Tenant, tx.Now).Scan(&month.Zone, &month.From, &month.To); err != nil {
		return MonthStatus{}, fmt.Errorf("find the tenant's month: %w", err)
	}
	month.From, month.To = month.From.UTC(), month.To.UTC()
	standings, err := standingsOf(ctx, tx, place, month.From)
	if err != nil {
		return MonthStatus{}, err
	}
	month.Standings = standings
	return month, nil
}

// RunCost is what a run has spent and holds, and its own cap.
func RunCost(ctx context.Context, tx tenants.Tx, id RunID) (Standings, error) {
	return standingsOf(ctx, tx, OfRun(id), time.Unix(0, 0))
}

func standingsOf(ctx context.Context, tx tenants.Tx, place Place, start time.Time) (Standings, error) {
	const query = `
		SELECT f.funds, c.limit_micros::bigint, coalesce(b.spent_micros, 0), coalesce(b.held_micros, 0), coalesce(b.overrun_micros, 0)
		FROM (VALUES ('real'), ('pretend')) f (funds)
		LEFT JOIN caps c ON c.tenant_id = $1 AND c.scope = $2 AND c.scope_id = $3 AND c.funds = f.funds AND c.period = $4
		LEFT JOIN balances b ON b.tenant_id = $1 AND b.scope = $2 AND b.scope_id = $3 AND b.funds = f.funds
			AND b.period = $4 AND b.period_start = $5`
	rows, err := tx.Query(ctx, query, tx.Tenant, place.Scope, place.ID, place.Scope.period(), start)
	if err != nil {
		return Standings{}, fmt.Errorf("read balances: %w", err)
	}
	var all Standings
	var funds Funds
	var one Standing
	_, err = pgx.ForEachRow(rows, []any{&funds, &one.Limit, &one.Spent, &one.Held, &one.Overrun}, func() error {
		if funds == Pretend {
			all.Pretend = one
		} else {
			all.Real = one
		}
		one.Limit = nil
		return nil
	})
	if err != nil {
		return Standings{}, fmt.Errorf("read balances: %w", err)
	}
	return all, nil
}
