package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// prunedAtOnce is how many events one transaction removes at most.
const prunedAtOnce = 1000

// PruneEvents removes the events that are older than EventsKept, but for those that an
// open wait could still use, and returns how many those were.
func (e *Engine) PruneEvents(ctx context.Context) (int, error) {
	var owners []tenants.ID
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM events WHERE sent_at < now() - $1::interval`, EventsKept)
		var err error
		owners, err = pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for old events: %w", err)
	}
	gone := 0
	_, err = each(owners, "prune a tenant's events", func(tenant tenants.ID) error {
		for {
			n, err := e.pruneEvents(ctx, tenant)
			gone += n
			if n < prunedAtOnce || err != nil {
				return err
			}
		}
	})
	return gone, err
}

func (e *Engine) pruneEvents(ctx context.Context, tenant tenants.ID) (int, error) {
	gone := 0
	err := e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM events WHERE tenant_id = $1 AND id IN (
				SELECT e.id FROM events e
				WHERE e.tenant_id = $1 AND e.sent_at < now() - $2::interval AND NOT EXISTS (
					SELECT 1 FROM waits w JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id
					WHERE w.tenant_id = $1 AND w.event_name = e.name AND w.event_key = e.key AND w.state = 'open' AND w.kind = 'event'
						AND r.created_at <= e.sent_at AND (w.due_at IS NULL OR e.sent_at < w.due_at)
						AND NOT EXISTS (SELECT 1 FROM event_uses u WHERE u.tenant_id = $1 AND u.event_id = e.id AND u.run_id = w.run_id))
				ORDER BY e.sent_at LIMIT $3)`, tenant, EventsKept, prunedAtOnce)
		gone = int(tag.RowsAffected())
		return err
	})
	return gone, err
}
