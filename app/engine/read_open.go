package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Branches counts the open branches of a run by what they do. A run without groups has
// one at most.
type Branches struct {
	Capped   int // stopped by the cap
	Person   int // wait for a person
	Retrying int // wait for their next try
	Waiting  int // wait for a time, an event, or another run
	Running  int // are driven by a worker
	Ready    int // could go forward and wait for a worker
}

// Count is how many there are in all.
func (b Branches) Count() int {
	return b.Capped + b.Person + b.Retrying + b.Waiting + b.Running + b.Ready
}

// branchQuery counts branches of the run r: those that wait by their open waits, of
// which there is an index, the others by their slices, of which a run has few.
const branchQuery = `
	SELECT
		count(*) FILTER (WHERE o.kind = 'cap')::integer AS capped, count(*) FILTER (WHERE o.kind = 'review')::integer AS person,
		count(*) FILTER (WHERE o.kind = 'retry')::integer AS retrying,
		count(*) FILTER (WHERE o.kind NOT IN ('cap', 'review', 'retry', 'running', 'ready'))::integer AS waiting,
		count(*) FILTER (WHERE o.kind = 'running')::integer AS running, count(*) FILTER (WHERE o.kind = 'ready')::integer AS ready
	FROM (
		SELECT w.kind FROM waits w WHERE w.tenant_id = r.tenant_id AND w.run_id = r.id AND w.state = 'open'
		UNION ALL
		SELECT CASE s.state WHEN 'running' THEN 'running' ELSE 'ready' END FROM slices s WHERE s.tenant_id = r.tenant_id AND s.run_id = r.id
	) o`

// branchesOf counts the open branches of a run.
func branchesOf(ctx context.Context, tx tenants.Tx, run RunID) (Branches, error) {
	rows, _ := tx.Query(ctx, `SELECT b.* FROM runs r CROSS JOIN LATERAL (`+branchQuery+`) b WHERE r.tenant_id = $1 AND r.id = $2`, tx.Tenant, run)
	b, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Branches])
	if err != nil {
		return b, fmt.Errorf("count the branches of a run: %w", err)
	}
	return b, nil
}
