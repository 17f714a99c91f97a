package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// The kinds of rows that groups hold for each of their turns.
const (
	KindRound pipeline.Kind = "round" // of a loop
	KindItem  pipeline.Kind = "item"  // of a list
	KindLane  pipeline.Kind = "lane"  // a branch side by side with others
)

// IsPart tells whether rows of the kind stand for a turn of a group and not for a step.
func IsPart(kind pipeline.Kind) bool {
	return kind == KindRound || kind == KindItem || kind == KindLane
}

// IsGroup tells whether steps of the kind have parts.
func IsGroup(kind pipeline.Kind) bool {
	return kind == pipeline.KindRepeat || kind == pipeline.KindEach || kind == pipeline.KindParallel
}

// groupKinds are the kinds of rows that do nothing themselves, for queries.
const groupKinds = `('branch', 'each', 'repeat', 'parallel', 'round', 'item', 'lane')`

// GroupSize says how the parts of a group stand.
type GroupSize struct {
	Parts  int
	By     map[StandingState]int
	Strip  []StandingState // at most StripCells, in the order of the parts; the worst of each cell
	Causes []Cause         // why parts failed, the most frequent first
}

// StripCells is how many cells a strip has at most.
const StripCells = 50

// Cause is a reason why parts failed, and how many did.
type Cause struct {
	Message string
	Parts   int
}

// mostCauses is how many causes a group tells.
const mostCauses = 3

// partStandings gives for every part of the groups $3 how it stands: by its own state,
// or by the worst that anything inside it waits for. It begins at the open waits, of
// which a run has as many as branches that wait, and goes up to the parts.
const partStandings = `
	WITH RECURSIVE up AS (
		SELECT s.parent_id AS at, s.id, w.kind FROM waits w
		JOIN step_runs s ON s.tenant_id = w.tenant_id AND s.id = w.step_run_id
		WHERE w.tenant_id = $1 AND w.run_id = $2 AND w.state = 'open'
		UNION ALL
		SELECT p.parent_id, p.id, up.kind FROM up
		JOIN step_runs p ON p.tenant_id = $1 AND p.id = up.at
		WHERE up.at <> ALL ($3)
	), waiting AS (
		SELECT id, (ARRAY['capped', 'person', 'retrying', 'waiting'])[min(coalesce(array_position(ARRAY['cap', 'review', 'retry'], kind), 4))] AS standing
		FROM up WHERE at = ANY ($3) GROUP BY id
	), parts AS (
		SELECT m.id, m.parent_id, m.turn, m.state, CASE
				WHEN m.state = 'done' THEN 'completed'
				WHEN m.state IN ('cancelled', 'skipped') THEN 'cancelled'
				WHEN m.state IN ('queued', 'failed') THEN m.state
				ELSE coalesce(w.standing, 'running')
			END AS standing
		FROM step_runs m LEFT JOIN waiting w ON w.id = m.id
		WHERE m.tenant_id = $1 AND m.parent_id = ANY ($3) AND m.` + onlyParts + `
	)`

// groupSizes counts how the parts of groups stand, and why some failed.
func groupSizes(ctx context.Context, tx tenants.Tx, run RunID, groups []StepRunID) (map[StepRunID]GroupSize, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	sizes, err := countParts(ctx, tx, run, groups)
	if err != nil {
		return nil, err
	}
	var failed []StepRunID
	for id, size := range sizes {
		if size.By[StandingFailed] > 0 {
			failed = append(failed, id)
		}
	}
	return sizes, nameCauses(ctx, tx, sizes, failed)
}

func countParts(ctx context.Context, tx tenants.Tx, run RunID, groups []StepRunID) (map[StepRunID]GroupSize, error) {
	rows, _ := tx.Query(ctx, partStandings+`, cells AS (
			SELECT parent_id, standing, turn::bigint * least($4, count(*) OVER whole) / count(*) OVER whole AS cell
			FROM parts WINDOW whole AS (PARTITION BY parent_id)
		)
		SELECT parent_id, cell, standing, count(*) FROM cells GROUP BY 1, 2, 3 ORDER BY 1, 2`, tx.Tenant, run, groups, StripCells)
	sizes := map[StepRunID]GroupSize{}
	var group StepRunID
	var cell, n int
	var standing StandingState
	_, err := pgx.ForEachRow(rows, []any{&group, &cell, &standing, &n}, func() error {
		sizes[group] = sizes[group].with(cell, standing, n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the parts of groups: %w", err)
	}
	return sizes, nil
}

// with adds parts that stand alike and belong to one cell of the strip.
func (g GroupSize) with(cell int, standing StandingState, n int) GroupSize {
	if g.By == nil {
		g.By = map[StandingState]int{}
	}
	g.Parts += n
	g.By[standing] += n
	for cell < StripCells && len(g.Strip) <= cell {
		g.Strip = append(g.Strip, StandingCompleted)
	}
	if at := min(cell, len(g.Strip)-1); urgency[standing] > urgency[g.Strip[at]] {
		g.Strip[at] = standing
	}
	return g
}

// urgency says which of two standings a cell of a strip shows.
var urgency = map[StandingState]int{
	StandingFailed: 9, StandingCapped: 8, StandingPerson: 7, StandingRetrying: 6, StandingWaiting: 5,
	StandingRunning: 4, StandingQueued: 3, StandingCancelled: 2, StandingCompleted: 1,
}

// nameCauses adds to sizes why parts failed.
func nameCauses(ctx context.Context, tx tenants.Tx, sizes map[StepRunID]GroupSize, groups []StepRunID) error {
	if len(groups) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, `
		SELECT g.id, c.message, c.n FROM unnest($2::uuid[]) g (id) CROSS JOIN LATERAL (
			SELECT coalesce(failure ->> 'message', '') AS message, count(*) AS n FROM step_runs
			WHERE tenant_id = $1 AND parent_id = g.id AND state = 'failed' AND `+onlyParts+` GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $3
		) c ORDER BY c.n DESC, c.message`, tx.Tenant, groups, mostCauses)
	var group StepRunID
	var cause Cause
	_, err := pgx.ForEachRow(rows, []any{&group, &cause.Message, &cause.Parts}, func() error {
		size := sizes[group]
		size.Causes = append(size.Causes, cause)
		sizes[group] = size
		return nil
	})
	if err != nil {
		return fmt.Errorf("read why parts failed: %w", err)
	}
	return nil
}
