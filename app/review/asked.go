package review

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Asked is an open question of a run, with those who can still answer it.
type Asked struct {
	Review   ID
	StepRun  [16]byte
	Title    string
	OpenedAt time.Time
	DueAt    *time.Time
	Names    []string         // of the open seats, in the order in which they were asked
	Users    []tenants.UserID // beside Names; zero for somebody from outside
}

// Asks tells whether a member is among those who can still answer.
func (a Asked) Asks(user tenants.UserID) bool {
	for _, asked := range a.Users {
		if asked == user && !user.IsZero() {
			return true
		}
	}
	return false
}

// mostAsked is how many questions of one run are read: people can be told of no more.
const mostAsked = 20

// OpenOfRuns reads the open questions of some runs, by run: those that ask a member
// first, then the oldest, and not all where a run has very many.
func (r *Room) OpenOfRuns(ctx context.Context, tx tenants.Tx, runs [][16]byte, member tenants.UserID) (map[[16]byte][]Asked, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	return readAsked(ctx, tx, `
		SELECT v.tenant_id, v.id, v.step_run_id, v.title, v.opened_at, v.due_at, bool_or(c.mine) AS mine, v.run_id AS group_id
		FROM unnest($2::uuid[]) r (id) CROSS JOIN LATERAL (
			(SELECT s.review_id AS id, true AS mine FROM seats s JOIN reviews m ON m.tenant_id = s.tenant_id AND m.id = s.review_id
				WHERE s.tenant_id = $1 AND s.user_id = $3 AND s.state = 'open' AND m.run_id = r.id AND m.state = 'open' LIMIT $4)
			UNION ALL
			(SELECT o.id, false FROM reviews o WHERE o.tenant_id = $1 AND o.run_id = r.id AND o.state = 'open' ORDER BY o.id LIMIT $4)
		) c JOIN reviews v ON v.tenant_id = $1 AND v.id = c.id
		GROUP BY v.tenant_id, v.id`, tx.Tenant, runs, member, mostAsked)
}

// OpenOfSteps reads the open questions of some step runs, by step run.
func (r *Room) OpenOfSteps(ctx context.Context, tx tenants.Tx, steps [][16]byte) (map[[16]byte][]Asked, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	return readAsked(ctx, tx, `
		SELECT v.tenant_id, v.id, v.step_run_id, v.title, v.opened_at, v.due_at, false AS mine, v.step_run_id AS group_id
		FROM reviews v WHERE v.tenant_id = $1 AND v.step_run_id = ANY ($2) AND v.state = 'open'`, tx.Tenant, steps)
}

// readAsked completes open reviews, which a query gives with what they are grouped by,
// with those who can still answer.
func readAsked(ctx context.Context, tx tenants.Tx, reviews string, args ...any) (map[[16]byte][]Asked, error) {
	rows, _ := tx.Query(ctx, `
		SELECT v.group_id, v.id, v.step_run_id, v.title, v.opened_at, v.due_at,
			array_agg(s.name ORDER BY s.id), array_agg(coalesce(s.user_id, '00000000-0000-0000-0000-000000000000') ORDER BY s.id)
		FROM (`+reviews+`) v JOIN seats s ON s.tenant_id = v.tenant_id AND s.review_id = v.id AND s.state = 'open'
		GROUP BY v.tenant_id, v.group_id, v.id, v.step_run_id, v.title, v.opened_at, v.due_at, v.mine ORDER BY v.mine DESC, v.id`, args...)
	all := map[[16]byte][]Asked{}
	var group [16]byte
	var a Asked
	_, err := pgx.ForEachRow(rows, []any{&group, &a.Review, &a.StepRun, &a.Title, &a.OpenedAt, &a.DueAt, &a.Names, &a.Users}, func() error {
		all[group] = append(all[group], a)
		a.DueAt, a.Names, a.Users = nil, nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what runs ask: %w", err)
	}
	return all, nil
}
