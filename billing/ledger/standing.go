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
	Limit     *Micros   // nil: no cap
	AlertOnly bool      // Limit stops nothing
	Until     time.Time // when After takes the place of Limit; zero: never
	After     *Micros
	Spent     Micros
	Held      Micros // reserved for calls that are under way
	Overrun   Micros // the part of Spent by which calls cost more than was reserved
}

// Left is how much more can be held; false where no cap stops anything. It is never
// below 0.
func (s Standing) Left() (Micros, bool) {
	if s.Limit == nil || s.AlertOnly {
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

// PeriodStatus is a place's current period. Months and days begin and end at midnight in
// the tenant's zone.
type PeriodStatus struct {
	Zone     string
	From, To time.Time // To is exclusive
	Standings
}

// MonthStatus is a PeriodStatus of a month.
type MonthStatus = PeriodStatus

// Month is where the tenant stands in its current month.
func Month(ctx context.Context, tx tenants.Tx) (MonthStatus, error) {
	return Stand(ctx, tx, OfTenant(tx.Tenant))
}

// MonthOfPipeline is where one pipeline stands in the current month.
func MonthOfPipeline(ctx context.Context, tx tenants.Tx, id PipelineID) (MonthStatus, error) {
	return Stand(ctx, tx, OfPipeline(id))
}

// Stand is where a place stands in its current period. Of a run and a step, which count
// once and for all, From and To are zero. A place that never had a cap and is not always
// counted stands at zero: Spent of it says nothing.
func Stand(ctx context.Context, tx tenants.Tx, place Place) (PeriodStatus, error) {
	status, err := periodOf(ctx, tx, place.Scope.period())
	if err != nil {
		return PeriodStatus{}, err
	}
	start := status.From
	if start.IsZero() {
		start = time.Unix(0, 0)
	}
	status.Standings, err = standingsOf(ctx, tx, place, start)
	return status, err
}

func periodOf(ctx context.Context, tx tenants.Tx, period string) (PeriodStatus, error) {
	const query = `
		SELECT zone, date_trunc($3, $2::timestamptz AT TIME ZONE zone) AT TIME ZONE zone,
			(date_trunc($3, $2::timestamptz AT TIME ZONE zone) + ('1 ' || $3)::interval) AT TIME ZONE zone
		FROM tenants WHERE id = $1`
	var status PeriodStatus
	if period == "once" {
		return status, nil
	}
	if err := tx.QueryRow(ctx, query, tx.Tenant, tx.Now, period).Scan(&status.Zone, &status.From, &status.To); err != nil {
		return PeriodStatus{}, fmt.Errorf("find the tenant's %s: %w", period, err)
	}
	status.From, status.To = status.From.UTC(), status.To.UTC()
	return status, nil
}

// RunCost is what a run and the runs it started have spent and hold, and its own cap.
func RunCost(ctx context.Context, tx tenants.Tx, id RunID) (Standings, error) {
	return standingsOf(ctx, tx, OfRun(id), time.Unix(0, 0))
}

func standingsOf(ctx context.Context, tx tenants.Tx, place Place, start time.Time) (Standings, error) {
	const query = `
		SELECT f.funds, c.limit_micros::bigint, c.mode = 'alert', c.limit_until, c.limit_after::bigint, coalesce(b.spent_micros, 0), coalesce(b.held_micros, 0), coalesce(b.overrun_micros, 0)
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
	var alertOnly *bool
	var until *time.Time
	_, err = pgx.ForEachRow(rows, []any{&funds, &one.Limit, &alertOnly, &until, &one.After, &one.Spent, &one.Held, &one.Overrun}, func() error {
		one.expire(alertOnly, until, tx.Now)
		if funds == Pretend {
			all.Pretend = one
		} else {
			all.Real = one
		}
		one = Standing{}
		return nil
	})
	if err != nil {
		return Standings{}, fmt.Errorf("read balances: %w", err)
	}
	return all, nil
}

// expire lets what follows a limit take its place, as ledger_limit does.
func (s *Standing) expire(alertOnly *bool, until *time.Time, now time.Time) {
	s.AlertOnly = alertOnly != nil && *alertOnly
	switch {
	case until == nil:
	case until.After(now):
		s.Until = until.UTC()
	default:
		s.Limit, s.After = s.After, nil
	}
}
