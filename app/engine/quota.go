package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tollgate/tenants"
)

// TooManyRuns tells that the tenant has as many open runs, queued ones among them, as
// its quota allows. Nothing was started.
type TooManyRuns struct{ Quota int }

func (e *TooManyRuns) Error() string {
	return fmt.Sprintf("the workspace has %d open runs, as many as it may", e.Quota)
}

// openRuns remembers, for a moment, which tenants are far from their quota, so that not
// every start counts thousands of runs. Near the quota each start counts, one after the
// other, and the quota is exact.
type openRuns struct {
	mu  sync.Mutex
	far map[tenants.ID]time.Time // until when a tenant is known to be far from its quota
}

// farBy is how many runs a tenant must be short of its quota to be far from it: more than
// all processes together could start in farFor.
const (
	farBy  = 10_000
	farFor = time.Second
)

func (o *openRuns) isFar(tenant tenants.ID, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Before(o.far[tenant])
}

func (o *openRuns) noteFar(tenant tenants.ID, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.far == nil || len(o.far) > 10_000 {
		o.far = map[tenants.ID]time.Time{}
	}
	o.far[tenant] = until
}

// checkOpenRuns refuses a start beyond the tenant's quota of open runs, with a
// *TooManyRuns.
func (e *Engine) checkOpenRuns(ctx context.Context, tx tenants.Tx) error {
	now := time.Now()
	if e.openRuns.isFar(tx.Tenant, now) {
		return nil
	}
	quotas, err := tenants.QuotasOf(ctx, tx)
	if err != nil {
		return err
	}
	open, err := countOpenRuns(ctx, tx, quotas.OpenRuns-farBy)
	if err != nil {
		return err
	}
	if open < quotas.OpenRuns-farBy {
		e.openRuns.noteFar(tx.Tenant, now.Add(farFor))
		return nil
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('open runs ' || $1, 0))`, tx.Tenant.String()); err != nil {
		return fmt.Errorf("lock the count of open runs: %w", err)
	}
	if open, err = countOpenRuns(ctx, tx, quotas.OpenRuns); err != nil || open < quotas.OpenRuns {
		return err
	}
	return &TooManyRuns{quotas.OpenRuns}
}

// countOpenRuns counts the tenant's open runs up to most.
func countOpenRuns(ctx context.Context, tx tenants.Tx, most int) (int, error) {
	var open int
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant_id = $1 AND ended_at IS NULL LIMIT $2) open`, tx.Tenant, max(most, 0)).Scan(&open)
	if err != nil {
		return 0, fmt.Errorf("count the open runs: %w", err)
	}
	return open, nil
}
