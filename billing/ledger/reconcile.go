package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Difference is a figure of the ledger that its lines do not bear out: an amount of a
// balance, or how many charges a hold has, where it must be one if the hold is settled
// and none otherwise.
type Difference struct {
	Place       // of the balance; for a hold, "hold" and its id
	Funds       Funds
	PeriodStart time.Time // without meaning for a run and for a hold
	Figure      string    // "held", "spent", "overrun" or "charges"
	Recorded    int64     // micros in the balance, or charges there are
	Computed    int64     // micros by holds and charges, or charges there should be
}

// reconcileQuery adds up open holds and charges by place, compares with the balances
// row by row, and looks for holds whose state and charge do not agree. It is one
// statement, so it judges one moment however busy the ledger is.
const reconcileQuery = `
	WITH lines AS (
		SELECT p.scope, p.scope_id, h.funds, p.period, p.period_start,
			CASE WHEN h.state = 'open' THEN h.amount::bigint ELSE 0 END AS held,
			coalesce(c.cost_micros::bigint, 0) AS spent, coalesce(c.overrun_micros, 0) AS overrun
		FROM holds h
		LEFT JOIN charges c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id
		CROSS JOIN LATERAL ledger_counted(h) p
		WHERE h.tenant_id = $1
		UNION ALL
		SELECT p.scope, p.scope_id, h.funds, p.period, p.period_start, 0, k.cost_micros, k.overrun_micros
		FROM corrections k
		JOIN holds o ON o.tenant_id = k.tenant_id AND o.id = k.hold_id
		CROSS JOIN LATERAL (SELECT (jsonb_populate_record(o, jsonb_build_object('month_start', k.month_start, 'day_start', k.day_start))).*) h
		CROSS JOIN LATERAL ledger_counted(h::holds) p
		WHERE k.tenant_id = $1
	), computed AS (
		SELECT scope, scope_id, funds, period, period_start,
			sum(held)::bigint AS held, sum(spent)::bigint AS spent, sum(overrun)::bigint AS overrun
		FROM lines GROUP BY scope, scope_id, funds, period, period_start
	), recorded AS (
		SELECT scope, scope_id, funds, period, period_start, held_micros, spent_micros, overrun_micros
		FROM balances WHERE tenant_id = $1
	)
	SELECT scope, scope_id, funds, period_start, f.figure, f.recorded, f.computed
	FROM recorded r FULL JOIN computed c USING (scope, scope_id, funds, period, period_start)
	CROSS JOIN LATERAL (VALUES
		('held', coalesce(r.held_micros, 0), coalesce(c.held, 0)),
		('spent', coalesce(r.spent_micros, 0), coalesce(c.spent, 0)),
		('overrun', coalesce(r.overrun_micros, 0), coalesce(c.overrun, 0))) f (figure, recorded, computed)
	WHERE f.recorded <> f.computed
	UNION ALL
	SELECT 'hold', h.id::text, h.funds, 'epoch', 'charges', count(c.hold_id), (h.state = 'settled')::int
	FROM holds h LEFT JOIN charges c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id
	WHERE h.tenant_id = $1
	GROUP BY h.tenant_id, h.id
	HAVING count(c.hold_id) <> (h.state = 'settled')::int
	ORDER BY 1, 2, 3, 4, 5`

// Reconcile computes every balance of the tenant again from its holds and charges and
// returns what differs. A sound ledger has no difference, at any moment.
func Reconcile(ctx context.Context, tx tenants.Tx) ([]Difference, error) {
	rows, err := tx.Query(ctx, reconcileQuery, tx.Tenant)
	if err != nil {
		return nil, fmt.Errorf("reconcile the ledger: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Difference, error) {
		var d Difference
		err := row.Scan(&d.Scope, &d.ID, &d.Funds, &d.PeriodStart, &d.Figure, &d.Recorded, &d.Computed)
		d.PeriodStart = d.PeriodStart.UTC()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("reconcile the ledger: %w", err)
	}
	return found, nil
}
