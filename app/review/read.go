package review

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// maxInbox bounds a list of reviews that wait for one member.
const maxInbox = 200

// Waiting is one line of a member's inbox.
type Waiting struct {
	Review       ID
	RunID        [16]byte
	Title        string
	OpenedAt     time.Time
	DueAt        *time.Time
	PipelineName string
	RunName      string
}

// ByID reads a review of the workspace, for its members.
func (r *Room) ByID(ctx context.Context, tx tenants.Tx, id ID) (Detail, error) {
	return r.load(ctx, tx, id)
}

// ByStepRun reads the newest review that a step run opened.
func (r *Room) ByStepRun(ctx context.Context, tx tenants.Tx, stepRun [16]byte) (Detail, error) {
	const query = `SELECT id FROM reviews WHERE tenant_id = $1 AND step_run_id = $2 ORDER BY round DESC LIMIT 1`
	var id ID
	err := tx.QueryRow(ctx, query, tx.Tenant, stepRun).Scan(&id)
	if err := found(err, "find the review of a step"); err != nil {
		return Detail{}, err
	}
	return r.load(ctx, tx, id)
}

const openSeats = `
	FROM seats s
	JOIN reviews r ON r.tenant_id = s.tenant_id AND r.id = s.review_id
	JOIN members m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
	WHERE s.tenant_id = $1 AND s.user_id = $2 AND s.state = 'open' AND r.state = 'open'
		AND (r.due_at IS NULL OR r.due_at > clock_timestamp())`

// Inbox lists what waits for a member, the nearest deadline first.
func (r *Room) Inbox(ctx context.Context, tx tenants.Tx, user tenants.UserID) ([]Waiting, error) {
	query := `SELECT r.id, r.run_id, r.title, r.opened_at, r.due_at, r.content::jsonb->>'pipeline', r.content::jsonb->>'run'` + openSeats + ` ORDER BY r.due_at, r.id LIMIT $3`
	rows, _ := tx.Query(ctx, query, tx.Tenant, user, maxInbox)
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Waiting])
	if err != nil {
		return nil, fmt.Errorf("list the reviews of a member: %w", err)
	}
	return waiting, nil
}

// OpenCount tells how many reviews wait for a member.
func (r *Room) OpenCount(ctx context.Context, tx tenants.Tx, user tenants.UserID) (int, error) {
	var n int
	if err := tx.QueryRow(ctx, `SELECT count(*)`+openSeats, tx.Tenant, user).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the reviews of a member: %w", err)
	}
	return n, nil
}
