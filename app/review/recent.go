package review

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Given is one answer of a member, for a list of what she decided.
type Given struct {
	Review  ID
	Title   string
	Verdict Verdict
	At      time.Time
}

// Given lists the newest answers that were given from a member's seats, newest first.
func (r *Room) Given(ctx context.Context, tx tenants.Tx, user tenants.UserID, limit int) ([]Given, error) {
	rows, _ := tx.Query(ctx, `
		SELECT r.id, r.title, d.verdict, d.decided_at
		FROM seats s
		JOIN decisions d ON d.tenant_id = s.tenant_id AND d.seat_id = s.id
		JOIN reviews r ON r.tenant_id = s.tenant_id AND r.id = s.review_id
		WHERE s.tenant_id = $1 AND s.user_id = $2 AND s.state = 'answered'
		ORDER BY s.closed_at DESC, s.id DESC LIMIT $3`, tx.Tenant, user, limit)
	given, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Given])
	if err != nil {
		return nil, fmt.Errorf("list the answers of a member: %w", err)
	}
	return given, nil
}
