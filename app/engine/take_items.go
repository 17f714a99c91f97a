package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	list StepRunID
	n    int       // how many
	last int       // the last of them, from 0
	at   time.Time // when
}

// size is how many items the slice may take on now, by how fast it ended the last ones.
func (t taking) size() int {
	since := time.Since(t.at)
	if t.n == 0 || since <= 0 {
		return 1
	}
	return max(1, min(maxBlock, int(blockTime*time.Duration(t.n)/since)))
}

// takeItems takes on the next queued items, in order. It begins behind those that it took
// on last, so as not to go through all that were taken before; what others gave back
// meanwhile comes when there is nothing else.
func (d *drive) takeItems(ctx context.Context, tx tenants.Tx, atOnce int) error {
	if d.took.list != d.step.ID {
		d.took = taking{list: d.step.ID, last: -1}
	}
	size := d.took.size()
	for _, behind := range []int{d.took.last, -1} {
		if err := d.takeBehind(ctx, tx, behind, size, atOnce); err != nil || len(d.block) > 0 {
			return err
		}
	}
	return nil
}

// takeBehind takes on at most size items from behind a place in the list, and no more
// than half of what is left for each slice that may go at once.
func (d *drive) takeBehind(ctx context.Context, tx tenants.Tx, behind, size, atOnce int) error {
	rows, _ := tx.Query(ctx, `
		WITH taken AS (
			UPDATE step_runs SET slice_id = $3 WHERE tenant_id = $1 AND id = ANY (ARRAY(
				SELECT id FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL AND turn > $6
				ORDER BY turn LIMIT greatest(1, least($4, (
					(SELECT max(turn) + 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2) -
					(SELECT turn FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL AND turn > $6 ORDER BY turn LIMIT 1)
				) / (2 * $5))) FOR UPDATE SKIP LOCKED))
			RETURNING id, turn, input_digest
		)
		SELECT t.id, t.turn, t.input_digest, `+contentOf+`t.input_digest) FROM taken t ORDER BY t.turn`,
		tx.Tenant, d.step.ID, d.slice.id, size, atOnce, behind)
	block, err := d.scanItems(rows)
	if err != nil {
		return err
	}
	if len(block) == 0 {
		return nil
	}
	d.block = block
	d.took.n, d.took.last, d.took.at = len(block), block[len(block)-1].Turn, time.Now()
	return d.stillOurs(ctx, tx)
}

// scanItems reads items with their values, as far as those are kept in one piece.
func (d *drive) scanItems(rows pgx.Rows) ([]StepRun, error) {
	var block []StepRun
	one := StepRun{Parent: d.step.ID, StepID: d.step.StepID, Kind: KindItem, List: pipeline.ListSteps, State: StepQueued, Attempt: 1, Slice: d.slice.id}
	var digest, content []byte
	_, err := pgx.ForEachRow(rows, []any{&one.ID, &one.Turn, &digest, &content}, func() error {
		one.Input = digestFrom(digest)
		block = append(block, one)
		if content == nil {
			return nil
		}
		var err error
		d.scope.items[one.ID], err = expr.DecodeJSON(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take on items: %w", err)
	}
	return block, nil
}

// stillOurs makes what was taken on void where the slice has moved on without us.
func (d *drive) stillOurs(ctx context.Context, tx tenants.Tx) error {
	var ours bool
	err := tx.QueryRow(ctx, `
		SELECT true FROM slices WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND `+stateByKey+` = 'running' FOR SHARE`,
		tx.Tenant, d.slice.id, d.slice.fence).Scan(&ours)
	if errors.Is(err, pgx.ErrNoRows) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("look at a slice: %w", err)
	}
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
