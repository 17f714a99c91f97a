package ledger

import (
	"context"
	"fmt"
	"time"

	"tollgate/tenants"
)

// Forecast is what a month is likely to come to, and what that is drawn from: what was
// spent until now, and for each day that is left the average of the last days.
type Forecast struct {
	Known  bool      // false where there are too few days to tell by
	Total  Micros    // of the whole month
	Spent  Micros    // until now
	Daily  Micros    // average of a day
	Days   int       // that the average is of, the last of them yesterday
	Passes time.Time // the day on which it passes the limit if things go on so; zero: not in this month
}

// forecastDays are the days that an average is of, at most; fewer than leastDays tell
// nothing.
const forecastDays, leastDays = 7, 2

// ForecastOf is the forecast of the current month at a place that counts by month: the
// tenant, a pipeline, a cost centre, a key or the tests. limit may be nil.
func ForecastOf(ctx context.Context, tx tenants.Tx, place Place, funds Funds, limit *Micros) (Forecast, error) {
	f := Forecast{}
	var left int
	var today time.Time
	var spent, recent int64
	err := tx.QueryRow(ctx, `
		WITH calendar AS (
			SELECT t.zone, ledger_month($2, t.zone) AS month, ledger_day($2, t.zone) AS today,
				(date_trunc('month', $2::timestamptz AT TIME ZONE t.zone) + interval '1 month')::date - ($2::timestamptz AT TIME ZONE t.zone)::date AS days_left
			FROM tenants t WHERE t.id = $1
		), span AS (
			SELECT c.*, least(c.month, ledger_day(c.today - ($6 * 24 - 12) * interval '1 hour', c.zone)) AS begin FROM calendar c
		), until AS (SELECT coalesce((SELECT day_start FROM usage_until WHERE tenant_id = $1), '-infinity') AS at
		), lines AS (
			SELECT u.day_start, u.cost FROM usage_days u, span s WHERE u.tenant_id = $1 AND u.month_start >= ledger_month(s.begin, s.zone)
				AND u.day_start >= s.begin AND u.funds = $3 AND `+forecastFilter+`
			UNION ALL
			SELECT u.day_start, u.cost FROM ledger_usage(greatest((SELECT begin FROM span), (SELECT at FROM until)), 'infinity') u
			WHERE u.funds = $3 AND `+forecastFilter+`
		), first AS (
			SELECT min(l.day_start) AS at FROM lines l
		)
		SELECT s.days_left, s.today, coalesce((SELECT sum(l.cost) FROM lines l WHERE l.day_start >= s.month), 0)::bigint,
			coalesce((SELECT sum(l.cost) FROM lines l WHERE l.day_start < s.today
				AND l.day_start >= ledger_day(s.today - ($6 * 24 - 12) * interval '1 hour', s.zone)), 0)::bigint,
			least($6, coalesce((s.today AT TIME ZONE s.zone)::date - ((SELECT at FROM first) AT TIME ZONE s.zone)::date, 0))
		FROM span s`, tx.Tenant, tx.Now, funds, place.Scope, place.ID, forecastDays).Scan(&left, &today, &spent, &recent, &f.Days)
	if err != nil {
		return Forecast{}, fmt.Errorf("forecast a month: %w", err)
	}
	f.Spent = Micros(spent)
	if f.Days < leastDays {
		return f, nil
	}
	f.Known, f.Daily = true, Micros(recent)/Micros(f.Days)
	f.Total = f.Spent + f.Daily*Micros(left)
	if limit != nil && f.Daily > 0 && f.Total > *limit {
		ahead := max(0, (*limit-f.Spent)/f.Daily)
		f.Passes = today.Add(12*time.Hour).AddDate(0, 0, int(min(ahead, 31)))
	}
	return f, nil
}

const forecastFilter = `CASE $4 WHEN 'pipeline' THEN u.pipeline_id::text = $5 WHEN 'cost_centre' THEN u.cost_centre = $5
	WHEN 'key' THEN u.key_id::text = $5 WHEN 'test' THEN u.kind = 'test' ELSE true END`
