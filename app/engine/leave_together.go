package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// leaver is a slice for which its list has no items left. It is for lists that no other
// list is around.
type leaver struct {
	list  StepRunID
	run   RunID
	slice SliceID
	fence int64

	gone  bool // the slice has ended; others go on
	joins bool // it is the last one, and nothing is open in the list any more
}

// leaveTogether ends the slices that leave lists at the same time. The lock of the list
// makes those who leave it in different transactions do so one after the other, so that
// one of them is the last.
func (e *Engine) leaveTogether(ctx context.Context, tenant tenants.ID, all []*leaver) error {
	ordered := slices.SortedStableFunc(slices.Values(all), func(x, y *leaver) int { return compareIDs(x.list, y.list) })
	batch := &tenants.Batch{ByKey: true}
	for len(ordered) > 0 {
		list := ordered[0].list
		n := slices.IndexFunc(ordered, func(one *leaver) bool { return one.list != list })
		if n < 0 {
			n = len(ordered)
		}
		queueLeavers(batch, tenant, ordered[:n])
		ordered = ordered[n:]
	}
	if err := e.DB.Send(ctx, tenant, batch); err != nil {
		return fmt.Errorf("leave a list: %w", err)
	}
	return nil
}

// leaveQuery ends the slices $4 that still are under their fences $5, but for one that
// joins the list.
const leaveQuery = `
	WITH looked AS MATERIALIZED (
		SELECT (SELECT state FROM step_runs WHERE tenant_id = $1 AND id = $2) = 'running' AND NOT ` + openInside + ` AND NOT EXISTS (
			SELECT 1 FROM slices WHERE window_id = $2 AND tenant_id = $1 AND id <> ALL ($4)) AS over
	), ours AS MATERIALIZED (
		SELECT g.id FROM unnest($4::uuid[], $5::bigint[]) AS g (id, fence) CROSS JOIN LATERAL (
			SELECT 1 FROM slices s WHERE s.tenant_id = $1 AND s.id = g.id AND s.fence = g.fence FOR UPDATE OFFSET 0) s
	), joins AS MATERIALIZED (
		SELECT o.id FROM ours o CROSS JOIN looked l WHERE l.over ORDER BY o.id LIMIT 1
	), gone AS (
		DELETE FROM slices WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM ours EXCEPT SELECT id FROM joins)) RETURNING id
	)
	SELECT id, false FROM gone UNION ALL SELECT id, true FROM joins`

func queueLeavers(b *tenants.Batch, tenant tenants.ID, leavers []*leaver) {
	byID := map[SliceID]*leaver{}
	var ids []SliceID
	var fences []int64
	for _, one := range leavers {
		byID[one.slice] = one
		ids, fences = append(ids, one.slice), append(fences, one.fence)
	}
	first := leavers[0]
	b.Queue(`SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tenant, first.list)
	b.Queue(leaveQuery, tenant, first.list, first.run, ids, fences).Query(func(rows pgx.Rows) error {
		for _, one := range leavers {
			one.gone, one.joins = false, false
		}
		var id SliceID
		var joins bool
		_, err := pgx.ForEachRow(rows, []any{&id, &joins}, func() error {
			byID[id].joins, byID[id].gone = joins, !joins
			return nil
		})
		return err
	})
}
