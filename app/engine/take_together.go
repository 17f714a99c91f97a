package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// taker is a slice that has come to its list and wants items of it, and what it finds.
type taker struct {
	list    StepRunID
	slice   SliceID
	fence   int64
	want    int // how many items; 0 only looks
	behind  int // those up to this turn were taken before
	atOnce  int // most slices of the list
	mayFail int // most items that may fail

	ours  bool // the slice still is the one that came
	there int  // slices of the list
	lost  lostItems
	items []givenItem
}

// givenItem is an item that a slice took on; its content is nil where the value is not kept
// in one piece.
type givenItem struct {
	id      StepRunID
	turn    int
	digest  Digest
	content []byte
}

// refused tells that the list gives no items to anybody.
func (t *taker) refused() bool { return t.lost.count > t.mayFail || t.there > t.atOnce }

// takeTogether gives items to the slices that come to lists at the same time, each list's
// in one statement. Should a crash undo it, the items are taken again: what the slices do
// with them is guarded by their being theirs.
func (e *Engine) takeTogether(ctx context.Context, tenant tenants.ID, all []*taker) error {
	lists := map[StepRunID][]*taker{}
	var order []StepRunID
	for _, one := range all {
		if _, met := lists[one.list]; !met {
			order = append(order, one.list)
		}
		lists[one.list] = append(lists[one.list], one)
	}
	batch := &tenants.Batch{ByKey: true, Unhurried: true}
	for _, list := range order {
		queueTake(batch, tenant, list, lists[list])
	}
	if err := e.DB.Send(ctx, tenant, batch); err != nil {
		return fmt.Errorf("take on items: %w", err)
	}
	return nil
}

// takeItemsQuery gives untaken items, in their order, to the slices $3 that still are under
// their fences $4, to each as many as it wants and no more than half of what is left for
// each that may go at once; to none while too many items have failed, or the list has more
// slices than may go at once.
const takeItemsQuery = `
	WITH looked AS MATERIALIZED (
		SELECT (SELECT count(*) FROM slices WHERE window_id = $2 AND tenant_id = $1)::int AS there,
			(SELECT count(*) FROM (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' LIMIT $8 + 1) f)::int AS lost,
			greatest(1, (
				(SELECT max(turn) + 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2) -
				(SELECT turn FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL AND kind = 'item' AND turn > $6 ORDER BY turn LIMIT 1)
			) / (2 * $7)) AS most
	), ours AS MATERIALIZED (
		SELECT g.id, g.want, g.place FROM unnest($3::uuid[], $4::bigint[], $5::int[]) WITH ORDINALITY AS g (id, fence, want, place)
		CROSS JOIN LATERAL (
			SELECT 1 FROM slices s WHERE s.tenant_id = $1 AND s.id = g.id AND s.fence = g.fence AND s.` + stateByKey + ` = 'running' FOR SHARE OFFSET 0) s
	), shares AS (
		SELECT o.id, least(o.want, l.most) AS n, sum(least(o.want, l.most)) OVER (ORDER BY o.place) AS upto
		FROM ours o CROSS JOIN looked l WHERE l.there <= $7 AND l.lost <= $8 AND l.most IS NOT NULL
	), free AS MATERIALIZED (
		SELECT id, turn FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL AND kind = 'item' AND turn > $6
		ORDER BY turn LIMIT (SELECT coalesce(max(upto), 0) FROM shares) FOR UPDATE SKIP LOCKED
	), given AS (
		SELECT f.id, s.id AS slice_id FROM (SELECT id, row_number() OVER (ORDER BY turn) AS place FROM free) f
		JOIN shares s ON f.place > s.upto - s.n AND f.place <= s.upto
	), taken AS (
		UPDATE step_runs r SET slice_id = g.slice_id FROM given g WHERE r.tenant_id = $1 AND r.id = g.id
		RETURNING r.id, r.turn, r.input_digest, r.slice_id
	)
	SELECT o.id, l.there, l.lost, f.turn, f.failure, t.id, t.turn, t.input_digest, ` + contentOf + `t.input_digest)
	FROM ours o CROSS JOIN looked l
	LEFT JOIN LATERAL (
		SELECT turn, failure FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' ORDER BY turn LIMIT 1) f ON l.lost > 0
	LEFT JOIN taken t ON t.slice_id = o.id ORDER BY t.turn`

func queueTake(b *tenants.Batch, tenant tenants.ID, list StepRunID, takers []*taker) {
	byID := map[SliceID]*taker{}
	var ids []SliceID
	var fences []int64
	var wants []int
	behind := -1
	for _, one := range takers {
		byID[one.slice] = one
		ids, fences, wants = append(ids, one.slice), append(fences, one.fence), append(wants, one.want)
		behind = max(behind, one.behind)
	}
	first := takers[0]
	b.Queue(takeItemsQuery, tenant, list, ids, fences, wants, behind, first.atOnce, first.mayFail).Query(func(rows pgx.Rows) error {
		for _, one := range takers {
			one.ours, one.items = false, nil
		}
		for rows.Next() {
			if err := scanTaken(rows, byID, behind); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// scanTaken reads what one slice found, and one of the items that it was given, if any.
func scanTaken(rows pgx.Rows, takers map[SliceID]*taker, behind int) error {
	var id SliceID
	var there, lost int
	var lostTurn, turn *int
	var failure, digest []byte
	var item givenItem
	if err := rows.Scan(&id, &there, &lost, &lostTurn, &failure, &item.id, &turn, &digest, &item.content); err != nil {
		return err
	}
	t := takers[id]
	t.ours, t.there, t.behind, t.lost = true, there, behind, lostItems{count: lost}
	if lostTurn != nil {
		t.lost.first = *lostTurn
		var err error
		if t.lost.why, err = failureFrom(failure); err != nil {
			return err
		}
	}
	if turn != nil {
		item.turn, item.digest = *turn, digestFrom(digest)
		t.items = append(t.items, item)
	}
	return nil
}
