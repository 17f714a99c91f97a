package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Charge is the ledger's line of what one call cost. It is never changed.
type Charge struct {
	Hold           HoldID
	Run            RunID
	StepRun        StepRunID
	Attempt        int
	Pipeline       PipelineID
	Funds          Funds
	Payer          Payer
	Kind           Kind
	Key            KeyID
	Member         tenants.UserID
	CostCentre     string
	Model          string // as asked for
	ModelBilled    string // as the provider named it; empty if it never answered
	Tokens         Tokens // Estimated as of the whole line
	Price          PriceID
	Input          Rate // the rates that were used
	Output         Rate
	CacheRead      Rate
	CacheWrite     Rate
	CacheWriteLong Rate
	Reserved       Micros
	Cost           Micros
	Overrun        Micros // of Cost beyond Reserved
	RequestID      string
	Finish         string
	Latency        time.Duration
	StartedAt      time.Time
	BookedAt       time.Time
}

const chargeColumns = `
	hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id, cost_centre, model, model_billed,
	input_tokens, cache_read_tokens, cache_write_tokens, cache_write_long_tokens, output_tokens, reasoning_tokens, estimated,
	price_input::bigint, price_output::bigint, price_cache_read::bigint, price_cache_write::bigint, price_cache_write_long::bigint, price_id,
	reserved_micros::bigint, cost_micros::bigint, overrun_micros, request_id, finish, latency_ms, started_at, created_at`

// ChargesOfStep are the charges of one step run over all its attempts, oldest first.
func ChargesOfStep(ctx context.Context, tx tenants.Tx, id StepRunID) ([]Charge, error) {
	return charges(ctx, tx, `SELECT`+chargeColumns+`
		FROM charges WHERE tenant_id = $1 AND step_run_id = $2 ORDER BY created_at, hold_id`, tx.Tenant, id)
}

// MaxCharges is the most lines that ChargesOfRun returns at once.
const MaxCharges = 1000

// ChargesOfRun are the charges of a run, oldest first, MaxCharges at most. after is the
// hold of the last line seen, zero for the first page.
func ChargesOfRun(ctx context.Context, tx tenants.Tx, id RunID, after HoldID) ([]Charge, error) {
	return charges(ctx, tx, `SELECT`+chargeColumns+`
		FROM charges
		WHERE tenant_id = $1 AND run_id = $2 AND ($3::uuid IS NULL OR (created_at, hold_id) >
			(SELECT seen.created_at, seen.hold_id FROM charges seen WHERE seen.tenant_id = $1 AND seen.hold_id = $3))
		ORDER BY created_at, hold_id LIMIT $4`, tx.Tenant, id, after, MaxCharges)
}

func charges(ctx context.Context, tx tenants.Tx, query string, args ...any) ([]Charge, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read charges: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanCharge)
	if err != nil {
		return nil, fmt.Errorf("read charges: %w", err)
	}
	return found, nil
}

func scanCharge(row pgx.CollectableRow) (Charge, error) {
	var c Charge
	var price priceColumns
	var latency int64
	err := row.Scan(&c.Hold, &c.Run, &c.StepRun, &c.Attempt, &c.Pipeline, &c.Funds, &c.Payer,
		&c.Kind, &c.Key, &c.Member, &c.CostCentre, &c.Model, &c.ModelBilled, &c.Tokens.Input, &c.Tokens.CacheRead,
		&c.Tokens.CacheWrite, &c.Tokens.CacheWriteLong, &c.Tokens.Output, &c.Tokens.Reasoning, &c.Tokens.Estimated,
		&price.Input, &price.Output, &price.CacheRead, &price.CacheWrite, &price.CacheWriteLong, &c.Price,
		&c.Reserved, &c.Cost, &c.Overrun, &c.RequestID, &c.Finish, &latency, &c.StartedAt, &c.BookedAt)
	if err != nil {
		return Charge{}, err
	}
	c.Input, c.Output = rateOf(price.Input), rateOf(price.Output)
	c.CacheRead, c.CacheWrite, c.CacheWriteLong = rateOf(price.CacheRead), rateOf(price.CacheWrite), rateOf(price.CacheWriteLong)
	c.Latency = time.Duration(latency) * time.Millisecond
	c.StartedAt, c.BookedAt = c.StartedAt.UTC(), c.BookedAt.UTC()
	return c, nil
}
