package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// PlaceStanding is where one place stands in its current period.
type PlaceStanding struct {
	Place
	Standing
}

// ListStandings are the places of the tenant that count by month or day, with where they
// stand with some funds in their current period: those that have a cap, and those that
// are counted and were used. Runs and steps, which count once, are not among them.
func ListStandings(ctx context.Context, tx tenants.Tx, funds Funds) ([]PlaceStanding, error) {
	var scopes []Scope
	for scope, period := range periods {
		if period != "once" {
			scopes = append(scopes, scope)
		}
	}
	rows, _ := tx.Query(ctx, `
		WITH starts (period, start) AS (
			SELECT p, date_trunc(p, $3::timestamptz AT TIME ZONE t.zone) AT TIME ZONE t.zone
			FROM tenants t CROSS JOIN unnest(ARRAY['day', 'month']) p WHERE t.id = $1
		), places AS (
			SELECT scope, scope_id, period FROM caps WHERE tenant_id = $1 AND scope = ANY($4) AND funds = $2
			UNION
			SELECT b.scope, b.scope_id, b.period FROM balances b JOIN starts s ON s.period = b.period AND s.start = b.period_start
			WHERE b.tenant_id = $1 AND b.scope = ANY($4) AND b.funds = $2
		)
		SELECT p.scope, p.scope_id, c.limit_micros::bigint, c.mode = 'alert', c.limit_until, c.limit_after::bigint,
			coalesce(b.spent_micros, 0), coalesce(b.held_micros, 0), coalesce(b.overrun_micros, 0)
		FROM places p
		JOIN starts s ON s.period = p.period
		LEFT JOIN caps c ON c.tenant_id = $1 AND c.scope = p.scope AND c.scope_id = p.scope_id AND c.funds = $2 AND c.period = p.period
		LEFT JOIN balances b ON b.tenant_id = $1 AND b.scope = p.scope AND b.scope_id = p.scope_id AND b.funds = $2
			AND b.period = p.period AND b.period_start = s.start
		ORDER BY coalesce(b.spent_micros, 0) DESC, p.scope, p.scope_id`, tx.Tenant, funds, tx.Now, scopes)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (PlaceStanding, error) {
		var one PlaceStanding
		var alertOnly *bool
		var until *time.Time
		err := row.Scan(&one.Scope, &one.ID, &one.Limit, &alertOnly, &until, &one.After, &one.Spent, &one.Held, &one.Overrun)
		one.expire(alertOnly, until, tx.Now)
		return one, err
	})
	if err != nil {
		return nil, fmt.Errorf("list where places stand: %w", err)
	}
	return found, nil
}
