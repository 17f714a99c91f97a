package engine

import (
	"context"
	"fmt"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// A slice takes on as many items as it ended in blockTime, so that none of them waits
// long for it while others are idle, and never more than maxBlock.
const (
	blockTime = 50 * time.Millisecond
	maxBlock  = 16
)

// taking is how a slice took on items of a list last.
type taking struct {
	list  StepRunID
	n     int       // how many
	last  int       // the last of them, from 0
	at    time.Time // when
	fresh bool      // that was at this arrival
}

// size is how many items the slice may take on now, by how fast it ended the last ones.
func (t taking) size() int {
	since := time.Since(t.at)
	if t.n == 0 || since <= 0 {
		return 1
	}
	return max(1, min(maxBlock, int(blockTime*time.Duration(t.n)/since)))
}

// takeItems takes on the next queued items, in order, unless some were taken on before,
// and tells how many slices the list has. It begins behind those that it took on last, so
// as not to go through all that were taken before; what others gave back meanwhile comes
// when there is nothing else.
func (d *drive) takeItems(ctx context.Context, list *pipeline.CompiledEach) (there int, err error) {
	if d.took.list != d.step.ID {
		d.took = taking{list: d.step.ID, last: -1}
	}
	d.took.fresh = false
	for {
		wants := &taker{list: d.step.ID, slice: d.slice.id, fence: d.slice.fence, behind: d.took.last, atOnce: list.AtOnce, mayFail: list.MaxFailed}
		if len(d.block) == 0 {
			wants.want = d.took.size()
		}
		if err := patiently(ctx, func() error { return d.worker.takers.do(d.tenant, wants) }); err != nil {
			return 0, err
		}
		if !wants.ours {
			return 0, errStale
		}
		d.outcome.lost = wants.lost
		if len(wants.items) > 0 {
			return wants.there, d.takeOn(wants.items)
		}
		if wants.behind < 0 || len(d.block) > 0 || wants.refused() {
			return wants.there, nil
		}
		d.took.last = -1
	}
}

// takeOn keeps items that the slice was given, with their values as far as those are kept
// in one piece.
func (d *drive) takeOn(items []givenItem) error {
	for _, item := range items {
		d.block = append(d.block, StepRun{
			ID: item.id, Parent: d.step.ID, StepID: d.step.StepID, Kind: KindItem, List: pipeline.ListSteps, State: StepQueued,
			Attempt: 1, Slice: d.slice.id, Turn: item.turn, Input: item.digest,
		})
		if item.content == nil {
			continue
		}
		var err error
		if d.scope.items[item.id], err = expr.DecodeJSON(item.content); err != nil {
			return err
		}
	}
	d.took.n, d.took.last, d.took.at, d.took.fresh = len(items), items[len(items)-1].turn, time.Now(), true
	return nil
}

// loadBlock reads the items that the slice has taken on and not begun.
func (d *drive) loadBlock(ctx context.Context, tx tenants.Tx) error {
	if d.slice.window.IsZero() {
		return nil
	}
	var err error
	d.block, err = stepRuns(ctx, tx, `tenant_id = $1 AND slice_id = $2 AND state = 'queued' AND kind = 'item' ORDER BY turn`, tx.Tenant, d.slice.id)
	return err
}

// releaseBlock gives back the items that the slice has taken on and not begun.
func releaseBlock(ctx context.Context, tx tenants.Tx, id SliceID) error {
	_, err := tx.Exec(ctx, releaseQuery, tx.Tenant, []SliceID{id})
	if err != nil {
		return fmt.Errorf("give items back: %w", err)
	}
	return nil
}

// releaseQuery gives back the items that the slices $2 have taken on and not begun.
const releaseQuery = `UPDATE step_runs SET slice_id = NULL WHERE tenant_id = $1 AND slice_id = ANY ($2) AND state = 'queued' AND kind = 'item'`
