package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Quotas are how much of the installation a tenant may use at once.
type Quotas struct {
	ParallelSlices int // branches of runs that are worked on at the same time
	OpenRuns       int // runs that have not ended, queued ones among them
	// ModelCalls bounds what is sent to models in a minute, over all keys and models.
	ModelCalls RateLimit
}

// DefaultQuotas hold for a tenant that was given none of its own. As many parallel
// slices as one working process drives let a lone tenant use all of a small
// installation; the open runs are more than people start by hand and fewer than what a
// mistake in a loop could pile up over a night.
var DefaultQuotas = Quotas{ParallelSlices: 100, OpenRuns: 20_000}

// QuotasOf reads the tenant's quotas.
func QuotasOf(ctx context.Context, tx Tx) (Quotas, error) {
	q := DefaultQuotas
	err := tx.QueryRow(ctx, `SELECT parallel_slices, open_runs, requests_per_minute, tokens_per_minute FROM tenant_quotas WHERE tenant_id = $1`, tx.Tenant).
		Scan(&q.ParallelSlices, &q.OpenRuns, &q.ModelCalls.Requests, &q.ModelCalls.Tokens)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return q, fmt.Errorf("read the workspace's quotas: %w", err)
	}
	return q, nil
}

// SetQuotas gives the tenant quotas of its own. Those of slices and runs must be positive.
func SetQuotas(ctx context.Context, tx Tx, q Quotas) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO tenant_quotas (tenant_id, parallel_slices, open_runs, requests_per_minute, tokens_per_minute) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id) DO UPDATE SET parallel_slices = $2, open_runs = $3, requests_per_minute = $4, tokens_per_minute = $5, changed_at = now()`,
		tx.Tenant, q.ParallelSlices, q.OpenRuns, q.ModelCalls.Requests, q.ModelCalls.Tokens)
	if err != nil {
		return fmt.Errorf("set the workspace's quotas: %w", err)
	}
	return nil
}
