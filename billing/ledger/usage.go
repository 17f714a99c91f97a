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
// tenant's zone, the pipeline's id, the model as asked for, or the id of the member who
// started the run; it is empty where there is none.
const (
	ByMonth    UsageBy = "month" // one line of everything
	ByDay      UsageBy = "day"
	ByPipeline UsageBy = "pipeline"
	ByModel    UsageBy = "model"
	ByMember   UsageBy = "member"
)

// usageKeys are the keys of lines in SQL, over charges c, runs r and tenants t.
var usageKeys = map[UsageBy]string{
	ByMonth:    `''`,
	ByDay:      `to_char(c.started_at AT TIME ZONE t.zone, 'YYYY-MM-DD')`,
	ByPipeline: `c.pipeline_id::text`,
	ByModel:    `c.model`,
	ByMember:   `coalesce(r.started_by::text, '')`,
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
		SELECT `+key+` AS key, count(DISTINCT c.run_id), count(*),
			coalesce(sum(c.input_tokens + c.cache_read_tokens + c.cache_write_tokens), 0)::bigint,
			coalesce(sum(c.output_tokens + c.reasoning_tokens), 0)::bigint,
			coalesce(sum(c.cost_micros::bigint), 0)::bigint AS cost,
			coalesce(sum(c.cost_micros::bigint) FILTER (WHERE c.payer = 'own'), 0)::bigint,
			count(*) FILTER (WHERE c.estimated)
		FROM charges c
		JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
		JOIN tenants t ON t.id = c.tenant_id
		WHERE c.tenant_id = $1 AND c.month_start = $2 AND c.funds = $3
		GROUP BY 1 ORDER BY `+order, tx.Tenant, month.From, funds)
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageLine])
	if err != nil {
		return nil, fmt.Errorf("sum up usage: %w", err)
	}
	return lines, nil
}

// UsageDetail is what the calls came to of one day, pipeline, model, member and payer.
type UsageDetail struct {
	Day, Pipeline, Model, Member string // as the keys of lines
	Payer                        Payer
	Calls, Estimated             int64
	Input, Output                int64
	Cost                         Micros
}

// MaxUsageDetails is the most lines that UsageDetails returns.
const MaxUsageDetails = 100_000

// UsageDetails are a month's charges in the finest sums that there are, by day.
func UsageDetails(ctx context.Context, tx tenants.Tx, month UsageMonth, funds Funds) ([]UsageDetail, error) {
	rows, _ := tx.Query(ctx, `
		SELECT `+usageKeys[ByDay]+`, `+usageKeys[ByPipeline]+`, `+usageKeys[ByModel]+`, `+usageKeys[ByMember]+`, c.payer,
			count(*), count(*) FILTER (WHERE c.estimated),
			sum(c.input_tokens + c.cache_read_tokens + c.cache_write_tokens)::bigint,
			sum(c.output_tokens + c.reasoning_tokens)::bigint, sum(c.cost_micros::bigint)::bigint
		FROM charges c
		JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
		JOIN tenants t ON t.id = c.tenant_id
		WHERE c.tenant_id = $1 AND c.month_start = $2 AND c.funds = $3
		GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 LIMIT $4`, tx.Tenant, month.From, funds, MaxUsageDetails)
	details, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageDetail])
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return details, nil
}
