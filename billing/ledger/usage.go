package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// UsageBy is what usage is summed up by.
type UsageBy string

// What usage can be summed up by. Each line's Key is the day as 2006-01-02 in the
// tenant's zone, the pipeline's id, the model as asked for, the id of the provider key or of
// the member who started the run, or the cost centre; it is empty where there is none, and
// for a key where the platform's was used.
const (
	ByMonth      UsageBy = "month" // one line of everything
	ByDay        UsageBy = "day"
	ByPipeline   UsageBy = "pipeline"
	ByModel      UsageBy = "model"
	ByMember     UsageBy = "member"
	ByKey        UsageBy = "key"
	ByCostCentre UsageBy = "cost_centre"
)

// usageKeys are the keys of lines in SQL, over usageLines u and tenants t.
var usageKeys = map[UsageBy]string{
	ByMonth:      `''`,
	ByDay:        `to_char(u.day_start AT TIME ZONE t.zone, 'YYYY-MM-DD')`,
	ByPipeline:   `u.pipeline_id::text`,
	ByModel:      `u.model`,
	ByMember:     `coalesce(u.member_id::text, '')`,
	ByKey:        `coalesce(u.key_id::text, '')`,
	ByCostCentre: `u.cost_centre`,
}

// UsageLine is what the calls of one day, pipeline, model or member came to.
type UsageLine struct {
	Key           string
	Runs, Calls   int64
	Input, Output int64 // tokens, those of caches and of thinking among them
	Cost          Micros
	Own           Micros // the part of Cost that the tenant's own keys paid for
	Estimated     int64  // calls whose figures the provider did not tell in full
}

// UsageMonth is a calendar month in the tenant's zone. To is exclusive.
type UsageMonth struct{ From, To time.Time }

// MonthAt is the tenant's month around an instant.
func MonthAt(ctx context.Context, tx tenants.Tx, at time.Time) (UsageMonth, error) {
	var month UsageMonth
	err := tx.QueryRow(ctx, `
		SELECT ledger_month($2, zone), (date_trunc('month', $2::timestamptz AT TIME ZONE zone) + interval '1 month') AT TIME ZONE zone
		FROM tenants WHERE id = $1`, tx.Tenant, at).Scan(&month.From, &month.To)
	if err != nil {
		return UsageMonth{}, fmt.Errorf("find a month of the tenant: %w", err)
	}
	return UsageMonth{From: month.From.UTC(), To: month.To.UTC()}, nil
}

// UsageOf sums up a month's charges of some funds, the dearest line first, days in
// their order. A month without charges has no lines.
func UsageOf(ctx context.Context, tx tenants.Tx, month UsageMonth, funds Funds, by UsageBy) ([]UsageLine, error) {
	key, known := usageKeys[by]
	if !known {
		return nil, fmt.Errorf("usage cannot be summed up by %q", by)
	}
	order := `cost DESC, key`
	if by == ByDay {
		order = `key`
	}
	rows, _ := tx.Query(ctx, `
		SELECT `+key+` AS key, count(DISTINCT u.run_id), sum(u.calls)::bigint, sum(u.input)::bigint, sum(u.output)::bigint,
			sum(u.cost)::bigint AS cost, coalesce(sum(u.cost) FILTER (WHERE u.payer = 'own'), 0)::bigint, sum(u.estimated)::bigint
		FROM (`+usageLines+`) u CROSS JOIN (SELECT zone FROM tenants WHERE id = $1) t
		GROUP BY 1 ORDER BY `+order, tx.Tenant, month.From, funds, month.To)
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageLine])
	if err != nil {
		return nil, fmt.Errorf("sum up usage: %w", err)
	}
	return lines, nil
}

// UsageDetail is what the calls came to of one day, pipeline, model, member, key, cost
// centre and payer.
type UsageDetail struct {
	Day, Pipeline, Model, Member, Key, CostCentre string // as the keys of lines

	Payer            Payer
	Calls, Estimated int64
	Input, Output    int64
	Cost             Micros
}

// MaxUsageDetails is the most lines that UsageDetails returns.
const MaxUsageDetails = 100_000

// UsageDetails are a month's charges in the finest sums that there are, by day.
func UsageDetails(ctx context.Context, tx tenants.Tx, month UsageMonth, funds Funds) ([]UsageDetail, error) {
	rows, _ := tx.Query(ctx, `
		SELECT `+usageKeys[ByDay]+`, `+usageKeys[ByPipeline]+`, `+usageKeys[ByModel]+`, `+usageKeys[ByMember]+`,
			`+usageKeys[ByKey]+`, `+usageKeys[ByCostCentre]+`, u.payer,
			sum(u.calls)::bigint, sum(u.estimated)::bigint, sum(u.input)::bigint, sum(u.output)::bigint, sum(u.cost)::bigint
		FROM (`+usageLines+`) u CROSS JOIN (SELECT zone FROM tenants WHERE id = $1) t
		GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7 LIMIT $5`, tx.Tenant, month.From, funds, month.To, MaxUsageDetails)
	details, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageDetail])
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return details, nil
}
