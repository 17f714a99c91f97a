package engine

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// QuotaUse is what a tenant may do at once, and what it does.
type QuotaUse struct {
	Quotas   tenants.Quotas
	Slices   int // branches that have a slot
	Ready    int // branches that wait for one
	OpenRuns int // up to one more than the quota
	Queued   int // open runs that wait for their pipeline, up to MaxCounted
}

// QuotaUseOf reads the quotas of the tenant and how far they are used.
func QuotaUseOf(ctx context.Context, tx tenants.Tx) (QuotaUse, error) {
	var u QuotaUse
	var err error
	if u.Quotas, err = tenants.QuotasOf(ctx, tx); err != nil {
		return u, err
	}
	if u.OpenRuns, err = countOpenRuns(ctx, tx, u.Quotas.OpenRuns+1); err != nil {
		return u, err
	}
	err = tx.QueryRow(ctx, `
		SELECT
			(SELECT count(*) FROM slices WHERE tenant_id = $1 AND state IN ('dispatched', 'running')),
			(SELECT count(*) FROM slices WHERE tenant_id = $1 AND state = 'ready'),
			(SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant_id = $1 AND state = 'queued' LIMIT $2) queued)`,
		tx.Tenant, MaxCounted).Scan(&u.Slices, &u.Ready, &u.Queued)
	if err != nil {
		return u, fmt.Errorf("read how far quotas are used: %w", err)
	}
	return u, nil
}
