package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// partCosts sums what the steps inside some rounds, items or branches cost, in
// micro-USD. It reads all that is inside them, so it is for the few of one page.
func partCosts(ctx context.Context, tx tenants.Tx, parts []StepRunID) (map[StepRunID]int64, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE down AS (
			SELECT s.parent_id AS part, s.id, s.kind, s.cost_micros, s.chosen FROM step_runs s WHERE s.tenant_id = $1 AND s.parent_id = ANY ($2)
			UNION ALL
			SELECT d.part, s.id, s.kind, s.cost_micros, s.chosen FROM down d JOIN step_runs s ON s.tenant_id = $1 AND s.parent_id = d.id
			WHERE d.kind IN `+groupKinds+` OR d.`+caughtRow+`
		)
		SELECT part, sum(cost_micros)::bigint FROM down WHERE kind NOT IN `+groupKinds+` GROUP BY part`, tx.Tenant, parts)
	costs := map[StepRunID]int64{}
	var part StepRunID
	var cost int64
	_, err := pgx.ForEachRow(rows, []any{&part, &cost}, func() error {
		costs[part] = cost
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sum what parts cost: %w", err)
	}
	return costs, nil
}
