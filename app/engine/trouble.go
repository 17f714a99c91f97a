package engine

import (
	"context"
	"fmt"
	"time"

	"tollgate/tenants"
)

// Pauses between tries while the database is away.
const (
	firstTroublePause   = 50 * time.Millisecond
	longestTroublePause = time.Second
)

// patiently tries again while the database is away, as long as ctx lasts: what came out
// of a call is in our hands only, and would be asked and paid for a second time.
func patiently(ctx context.Context, try func() error) error {
	for pause := firstTroublePause; ; pause = min(2*pause, longestTroublePause) {
		err := try()
		if !tenants.IsTrouble(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// write commits a decision, patiently. A connection that breaks leaves open whether the
// commit took effect; then the rows are asked before it is sent again, and once more
// where that is refused, since the first may have been on its way still.
func (d *drive) write(ctx context.Context, decided decision) error {
	doubtful := false
	return patiently(ctx, func() error {
		if doubtful {
			if written, err := d.written(ctx, decided); written || err != nil {
				return err
			}
		}
		err := d.tryWrite(ctx, decided)
		if err == nil || !doubtful {
			doubtful = tenants.IsTrouble(err)
			return err
		}
		if written, lookErr := d.written(ctx, decided); written || lookErr != nil {
			return lookErr
		}
		return err
	})
}

// written tells whether a decision has been committed. One that goes on shows in the
// row of its next step, one that stays at a group in a row that it changes, one that ends
// the slice in that it is gone; should somebody
// else have ended it, the money is still ours to book.
func (d *drive) written(ctx context.Context, decided decision) (bool, error) {
	if next := decided.next; next != nil {
		return d.holds(ctx, `
			EXISTS (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2
				AND state = 'running' AND attempt = $3 AND slice_id = $4 AND fence = $5)`,
			d.tenant, next.row.ID, next.row.Attempt, d.slice.id, d.slice.fence)
	}
	if decided.stand != nil {
		return d.writtenRow(ctx, decided)
	}
	gone, err := d.holds(ctx, `NOT EXISTS (SELECT 1 FROM slices WHERE tenant_id = $1 AND id = $2 AND fence = $3)`,
		d.tenant, d.slice.id, d.slice.fence)
	if !gone || err != nil {
		return false, err
	}
	return true, d.payAnyway(ctx)
}

// writtenRow tells by a row that the decision changes whether it has been committed.
func (d *drive) writtenRow(ctx context.Context, decided decision) (bool, error) {
	for _, entry := range decided.changes {
		switch entry := entry.(type) {
		case insertStep:
			return d.holds(ctx, `EXISTS (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2)`, d.tenant, entry.row.ID)
		case moveStep:
			return d.holds(ctx, `EXISTS (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2 AND state = $3)`, d.tenant, entry.id, string(entry.to))
		}
	}
	return false, nil
}

// holds asks the database whether a condition holds.
func (d *drive) holds(ctx context.Context, condition string, args ...any) (bool, error) {
	var yes bool
	err := patiently(ctx, func() error {
		return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
			return tx.QueryRow(ctx, `SELECT `+condition, args...).Scan(&yes)
		})
	})
	if err != nil {
		return false, fmt.Errorf("look at a slice: %w", err)
	}
	return yes, nil
}
