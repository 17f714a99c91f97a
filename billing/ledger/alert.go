package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// AlertKind is what people are told about a cap.
type AlertKind string

// The alerts there are. Each is told once for a cap's place and period.
const (
	AlertHalf     AlertKind = "half"      // 50 % is spent
	AlertMost     AlertKind = "most"      // 80 %
	AlertAll      AlertKind = "all"       // 100 %
	AlertOnCourse AlertKind = "on_course" // if things go on so, the period passes it
	AlertStopped  AlertKind = "stopped"   // it has stopped the first run of the period
)

// percents are the alerts that tell how much is gone.
var percents = []struct {
	kind AlertKind
	of   Micros // in a hundred
}{{AlertHalf, 50}, {AlertMost, 80}, {AlertAll, 100}}

// Alert is one of them, with the figures of the moment in which it became due.
type Alert struct {
	Place
	Funds       Funds
	PeriodStart time.Time
	Kind        AlertKind
	Limit       Micros
	Spent       Micros
	Forecast    Micros // of AlertOnCourse
	Run         RunID  // of AlertStopped
	At          time.Time
	Told        bool
}

// FindAlerts writes down the alerts that have become due, of all tenants, and returns how
// many. Running it twice, or in two processes at once, finds none twice.
func FindAlerts(ctx context.Context, db *tenants.DB) (int, error) {
	var capped []tenants.ID
	err := db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM caps WHERE period <> 'once'`)
		found, err := pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		capped = found
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("list who has caps: %w", err)
	}
	found := 0
	var failures []error
	for _, tenant := range capped {
		err := db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
			n, err := findAlerts(ctx, tx)
			found += n
			return err
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("look for alerts of %v: %w", tenant, err))
		}
	}
	return found, errors.Join(failures...)
}

// capStanding is a cap with where its place stands in the current period.
type capStanding struct {
	Alert
	forecastable bool
}

func findAlerts(ctx context.Context, tx tenants.Tx) (int, error) {
	caps, err := capStandings(ctx, tx)
	if err != nil {
		return 0, err
	}
	found := 0
	for _, c := range caps {
		for _, kind := range c.due() {
			written, err := writeAlert(ctx, tx, c.Alert, kind)
			if err != nil {
				return found, err
			}
			found += written
		}
		if !c.forecastable || c.Spent >= c.Limit {
			continue
		}
		forecast, err := ForecastOf(ctx, tx, c.Place, c.Funds, &c.Limit)
		if err != nil {
			return found, err
		}
		if forecast.Known && forecast.Total > c.Limit {
			c.Forecast = forecast.Total
			written, err := writeAlert(ctx, tx, c.Alert, AlertOnCourse)
			if err != nil {
				return found, err
			}
			found += written
		}
	}
	return found, nil
}

// due are the alerts that tell how much is gone. A cap of 0 has none: nothing is spent
// under it.
func (c capStanding) due() []AlertKind {
	var due []AlertKind
	for _, p := range percents {
		if c.Limit > 0 && c.Spent*100 >= c.Limit*p.of {
			due = append(due, p.kind)
		}
	}
	return due
}

// capStandings are the tenant's caps by period that have a limit and something spent.
// Whether things will go on as they do is only asked where that was not told yet.
func capStandings(ctx context.Context, tx tenants.Tx) ([]capStanding, error) {
	rows, _ := tx.Query(ctx, `
		SELECT c.scope, c.scope_id, c.funds, b.period_start, coalesce(l.most, 0), b.spent_micros,
			c.period = 'month' AND NOT EXISTS (SELECT FROM cap_alerts a WHERE a.tenant_id = c.tenant_id AND a.scope = c.scope
				AND a.scope_id = c.scope_id AND a.funds = c.funds AND a.period_start = b.period_start AND a.kind = 'on_course')
		FROM caps c
		JOIN tenants t ON t.id = c.tenant_id
		CROSS JOIN LATERAL (SELECT CASE WHEN c.limit_until <= $2 THEN c.limit_after ELSE c.limit_micros END::bigint AS most) l
		JOIN balances b ON b.tenant_id = c.tenant_id AND b.scope = c.scope AND b.scope_id = c.scope_id AND b.funds = c.funds
			AND b.period = c.period AND b.period_start = CASE c.period WHEN 'day' THEN ledger_day($2, t.zone) ELSE ledger_month($2, t.zone) END
		WHERE c.tenant_id = $1 AND c.period <> 'once' AND l.most IS NOT NULL AND b.spent_micros > 0
		ORDER BY c.scope, c.scope_id, c.funds`, tx.Tenant, tx.Now)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (capStanding, error) {
		var c capStanding
		err := row.Scan(&c.Scope, &c.ID, &c.Funds, &c.PeriodStart, &c.Limit, &c.Spent, &c.forecastable)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read caps: %w", err)
	}
	return found, nil
}

func writeAlert(ctx context.Context, tx tenants.Tx, a Alert, kind AlertKind) (int, error) {
	var forecast *Micros
	if kind == AlertOnCourse {
		forecast = &a.Forecast
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO cap_alerts (tenant_id, scope, scope_id, funds, period_start, kind, limit_micros, spent_micros, forecast_micros)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		tx.Tenant, a.Scope, a.ID, a.Funds, a.PeriodStart, kind, a.Limit, a.Spent, forecast)
	if err != nil {
		return 0, fmt.Errorf("write an alert: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// QueueStopped writes down that a cap has stopped a run, for whom it is the first of the
// cap's period. It belongs to the commit in which the run begins to wait.
func QueueStopped(b *tenants.Batch, reached CapReached, run RunID) {
	if reached.PeriodStart.IsZero() {
		reached.PeriodStart = time.Unix(0, 0)
	}
	b.Queue(`
		INSERT INTO cap_alerts (tenant_id, scope, scope_id, funds, period_start, kind, limit_micros, spent_micros, run_id)
		SELECT ledger_tenant(), $1, $2, $3, $4, 'stopped', $5::bigint, $5::bigint - $6::bigint, $7
		WHERE NOT EXISTS (SELECT FROM cap_alerts a WHERE a.tenant_id = ledger_tenant() AND a.scope = $1 AND a.scope_id = $2
			AND a.funds = $3 AND a.period_start = $4 AND a.kind = 'stopped')
		ON CONFLICT DO NOTHING`,
		reached.Scope, reached.ID, reached.Funds, reached.PeriodStart, reached.Limit, reached.Available, run)
}

const alertColumns = `scope, scope_id, funds, period_start, kind, limit_micros::bigint, spent_micros, coalesce(forecast_micros, 0), run_id, at, told_at IS NOT NULL`

func scanAlert(row pgx.CollectableRow) (Alert, error) {
	var a Alert
	err := row.Scan(&a.Scope, &a.ID, &a.Funds, &a.PeriodStart, &a.Kind, &a.Limit, &a.Spent, &a.Forecast, &a.Run, &a.At, &a.Told)
	a.PeriodStart, a.At = a.PeriodStart.UTC(), a.At.UTC()
	return a, err
}

// AlertsSince are the tenant's alerts since an instant, the newest first.
func AlertsSince(ctx context.Context, tx tenants.Tx, since time.Time) ([]Alert, error) {
	rows, _ := tx.Query(ctx, `SELECT `+alertColumns+` FROM cap_alerts WHERE tenant_id = $1 AND at >= $2 ORDER BY at DESC, kind, scope, scope_id LIMIT 200`, tx.Tenant, since)
	alerts, err := pgx.CollectRows(rows, scanAlert)
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return alerts, nil
}

// UntoldAlerts are who has alerts that nobody was told of.
func UntoldAlerts(ctx context.Context, tx tenants.SystemTx) ([]tenants.ID, error) {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM cap_alerts WHERE told_at IS NULL`)
	found, err := pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
	if err != nil {
		return nil, fmt.Errorf("list who has alerts: %w", err)
	}
	return found, nil
}

// TakeAlerts marks the tenant's alerts as told and returns them, for whoever writes the
// mails in the same transaction: each is taken once.
func TakeAlerts(ctx context.Context, tx tenants.Tx) ([]Alert, error) {
	rows, _ := tx.Query(ctx, `UPDATE cap_alerts SET told_at = now() WHERE tenant_id = $1 AND told_at IS NULL RETURNING `+alertColumns, tx.Tenant)
	taken, err := pgx.CollectRows(rows, scanAlert)
	if err != nil {
		return nil, fmt.Errorf("take alerts: %w", err)
	}
	return taken, nil
}
