package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Relatives are the runs above and below one, as far as a page about it shows them.
type Relatives struct {
	Above *Run              // whose step started it; nil where nobody's did
	Below map[StepRunID]Run // which runs the shown steps started
}

// RelativesOf reads the runs above and below a run.
func RelativesOf(ctx context.Context, tx tenants.Tx, run Run, steps []StepRun) (Relatives, error) {
	out := Relatives{Below: map[StepRunID]Run{}}
	if !run.Parent.IsZero() {
		above, err := RunByID(ctx, tx, run.Parent)
		if err != nil {
			return out, err
		}
		out.Above = &above
	}
	var started []StepRunID
	for _, step := range steps {
		if step.Kind == pipeline.KindChild {
			started = append(started, step.ID)
		}
	}
	if len(started) == 0 {
		return out, nil
	}
	rows, _ := tx.Query(ctx, runQuery+`r.tenant_id = $1 AND r.parent_step_run = ANY ($2) ORDER BY r.id`, tx.Tenant, started)
	below, err := pgx.CollectRows(rows, scanRun)
	if err != nil {
		return out, fmt.Errorf("read the runs below one: %w", err)
	}
	for _, one := range below {
		out.Below[one.ParentStep] = one
	}
	return out, nil
}

// AwaitedBelow counts the runs that steps of a run wait for, which are cancelled with it.
func AwaitedBelow(ctx context.Context, tx tenants.Tx, run RunID) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM waits WHERE tenant_id = $1 AND run_id = $2 AND kind = 'child' AND state = 'open'`, tx.Tenant, run).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the runs below one: %w", err)
	}
	return n, nil
}

// mostBelow bounds how many runs below one are counted.
const mostBelow = 1000

// CountBelow counts the runs in the trees of those that no other run began, up to
// mostBelow each. Runs with none below are left out.
func CountBelow(ctx context.Context, tx tenants.Tx, lines []Line) (map[RunID]int, error) {
	ids := make([]RunID, len(lines))
	for i, line := range lines {
		ids[i] = line.Run.ID
	}
	counts := map[RunID]int{}
	rows, _ := tx.Query(ctx, `
		SELECT g.id, b.n FROM unnest($2::uuid[]) AS g (id) CROSS JOIN LATERAL (
			SELECT count(*) AS n FROM (SELECT FROM runs r WHERE r.tenant_id = $1 AND r.root_run = g.id LIMIT $3) counted) b
		WHERE b.n > 0`, tx.Tenant, ids, mostBelow)
	var id RunID
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		counts[id] = n
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count the runs below others: %w", err)
	}
	return counts, nil
}
