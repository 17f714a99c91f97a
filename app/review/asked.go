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

// OpenOfRuns reads the open questions of some runs, by run, oldest first.
func (r *Room) OpenOfRuns(ctx context.Context, tx tenants.Tx, runs [][16]byte) (map[[16]byte][]Asked, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `
		SELECT v.run_id, v.id, v.step_run_id, v.title, v.opened_at, v.due_at,
			array_agg(s.name ORDER BY s.id), array_agg(coalesce(s.user_id, '00000000-0000-0000-0000-000000000000') ORDER BY s.id)
		FROM reviews v JOIN seats s ON s.tenant_id = v.tenant_id AND s.review_id = v.id AND s.state = 'open'
		WHERE v.tenant_id = $1 AND v.run_id = ANY($2) AND v.state = 'open'
		GROUP BY v.tenant_id, v.id ORDER BY v.id`, tx.Tenant, runs)
	all := map[[16]byte][]Asked{}
	var run [16]byte
	var a Asked
	_, err := pgx.ForEachRow(rows, []any{&run, &a.Review, &a.StepRun, &a.Title, &a.OpenedAt, &a.DueAt, &a.Names, &a.Users}, func() error {
		all[run] = append(all[run], a)
		a.DueAt, a.Names, a.Users = nil, nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what runs ask: %w", err)
	}
	return all, nil
}
