package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"tollgate/tenants"
)

// usageLines are the lines of tenant $1, month $2 up to $4 and funds $3: days that were
// summed up already, and each charge and correction of the later ones.
const usageLines = `
	WITH until AS (SELECT coalesce((SELECT day_start FROM usage_until WHERE tenant_id = $1), '-infinity') AS at)
	SELECT * FROM usage_days WHERE tenant_id = $1 AND month_start = $2 AND funds = $3
	UNION ALL
	SELECT l.* FROM ledger_usage(greatest($2, (SELECT at FROM until)), $4) l WHERE l.month_start = $2 AND l.funds = $3`

// RollUsage sums up the days that are over, of all tenants, so that usage of a month is
// read from few rows. It returns how many days that were.
func RollUsage(ctx context.Context, db *tenants.DB) (int, error) {
	var all []tenants.ID
	err := db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT id FROM tenants`)
		found, err := pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		all = found
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("list tenants: %w", err)
	}
	days := 0
	var failures []error
	for _, tenant := range all {
		for more := true; more; {
			more = false
			err := db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
				rolled, err := rollDay(ctx, tx)
				more = rolled
				return err
			})
			if err != nil {
				failures = append(failures, fmt.Errorf("sum up usage of %v: %w", tenant, err))
				break
			}
			if more {
				days++
			}
		}
	}
	return days, errors.Join(failures...)
}

// rollDay sums up the oldest day that is over, has lines, and was not yet; false if there
// is none. A day with a call under way is not over, and neither are those behind it.
func rollDay(ctx context.Context, tx tenants.Tx) (bool, error) {
	if _, err := tx.Exec(ctx, `INSERT INTO usage_until (tenant_id, day_start) VALUES ($1, '-infinity') ON CONFLICT DO NOTHING`, tx.Tenant); err != nil {
		return false, err
	}
	var until pgtype.Timestamptz // may be the beginning of time
	if err := tx.QueryRow(ctx, `SELECT day_start FROM usage_until WHERE tenant_id = $1 FOR UPDATE`, tx.Tenant).Scan(&until); err != nil {
		return false, err
	}
	var day, next *time.Time
	err := tx.QueryRow(ctx, `
		WITH oldest AS (
			SELECT least((SELECT min(day_start) FROM charges WHERE tenant_id = $1 AND day_start >= $2),
				(SELECT min(day_start) FROM corrections WHERE tenant_id = $1 AND day_start >= $2)) AS day
		), span AS (
			SELECT o.day, ledger_day(o.day + interval '36 hours', t.zone) AS next FROM oldest o JOIN tenants t ON t.id = $1
		)
		SELECT s.day, s.next FROM span s
		WHERE s.next + $3::interval < $4 AND NOT EXISTS (
			SELECT FROM holds h WHERE h.tenant_id = $1 AND h.state = 'open' AND h.day_start < s.next)`,
		tx.Tenant, until, settling, tx.Now).Scan(&day, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO usage_days (tenant_id, day_start, month_start, funds, run_id, pipeline_id, model, payer, kind, key_id, member_id,
			cost_centre, calls, estimated, input, output, cost, overrun, correction)
		SELECT tenant_id, day_start, month_start, funds, run_id, pipeline_id, model, payer, kind, key_id, member_id, cost_centre,
			sum(calls), sum(estimated), sum(input), sum(output), sum(cost), sum(overrun), sum(correction)
		FROM ledger_usage($1, $2) GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12`, day, next)
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE usage_until SET day_start = $2 WHERE tenant_id = $1`, tx.Tenant, next)
	return err == nil, err
}
