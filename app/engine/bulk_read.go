package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// bulkQuery reads bulks with how far they have come.
const bulkQuery = `
	SELECT b.id, b.action, b.filter, b.state, b.total, b.by_user, b.by_name, b.created_at, b.ended_at, n.done, n.refused, n.left_alone
	FROM bulk_jobs b CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'refused') AS refused,
			count(*) FILTER (WHERE state = 'left') AS left_alone
		FROM bulk_runs i WHERE i.tenant_id = b.tenant_id AND i.job_id = b.id) n
	WHERE b.tenant_id = $1`

// BulkByID reads a bulk. It returns ErrNoBulk where the tenant has none of that id.
func BulkByID(ctx context.Context, tx tenants.Tx, id BulkID) (Bulk, error) {
	rows, _ := tx.Query(ctx, bulkQuery+` AND b.id = $2`, tx.Tenant, id)
	bulk, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Bulk])
	if errors.Is(err, pgx.ErrNoRows) {
		return bulk, ErrNoBulk
	}
	if err != nil {
		return bulk, fmt.Errorf("read a bulk: %w", err)
	}
	return bulk, nil
}

// Bulks reads the newest bulks of the tenant.
func Bulks(ctx context.Context, tx tenants.Tx) ([]Bulk, error) {
	rows, _ := tx.Query(ctx, bulkQuery+` ORDER BY b.id DESC LIMIT 50`, tx.Tenant)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Bulk])
	if err != nil {
		return nil, fmt.Errorf("read bulks: %w", err)
	}
	return found, nil
}

// BulkRefusal is a run that a bulk passed over, and why.
type BulkRefusal struct {
	Run    RunID
	Name   string
	Number int64
	Why    string // a sentence for people
}

// BulkRefusals reads the first runs that a bulk passed over.
func BulkRefusals(ctx context.Context, tx tenants.Tx, id BulkID, most int) ([]BulkRefusal, error) {
	rows, _ := tx.Query(ctx, `
		SELECT r.id, r.name, r.number, i.words FROM bulk_runs i JOIN runs r ON r.tenant_id = i.tenant_id AND r.id = i.run_id
		WHERE i.tenant_id = $1 AND i.job_id = $2 AND i.state = 'refused' ORDER BY i.run_id LIMIT $3`, tx.Tenant, id, most)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[BulkRefusal])
	if err != nil {
		return nil, fmt.Errorf("read what a bulk passed over: %w", err)
	}
	return found, nil
}
