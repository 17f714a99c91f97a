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

// atList takes on items of a list, joins it once all have ended, or leaves it. Where too
// many have failed, or items were taken on before, there is nothing to look for.
func (d *drive) atList(ctx context.Context, tx tenants.Tx) (arrival, error) {
	list := d.program.Node(d.step.StepID).Each()
	var err error
	if d.outcome.lost, err = lostIn(ctx, tx, d.step.ID, list.MaxFailed); err != nil {
		return stays, err
	}
	if d.outcome.lost.count > list.MaxFailed || len(d.block) > 0 {
		return stays, nil
	}
	if tooMany, err := d.surplus(ctx, tx, list.AtOnce); tooMany || err != nil {
		return leaves, err
	}
	if err := d.takeItems(ctx, tx, list.AtOnce); err != nil || len(d.block) > 0 {
		return stays, err
	}
	return d.leaveList(ctx, tx)
}

// lostIn counts the items that failed, up to one more than may, and reads the first.
func lostIn(ctx context.Context, tx tenants.Tx, list StepRunID, may int) (lostItems, error) {
	var lost lostItems
	var failure []byte
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' LIMIT $3) lost), turn, failure
		FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'failed' ORDER BY turn LIMIT 1`,
		tx.Tenant, list, may+1).Scan(&lost.count, &lost.first, &failure)
	if errors.Is(err, pgx.ErrNoRows) {
		return lost, nil
	}
	if err != nil {
		return lost, fmt.Errorf("count the items that failed: %w", err)
	}
	lost.why, err = failureFrom(failure)
	return lost, err
}

// inWindow counts the slices of a list's window.
const inWindow = `SELECT count(*) FROM slices WHERE tenant_id = $1 AND window_id = $2`

// surplus ends the slice where the list has more than may go at once: others were woken
// behind waits, and come first. The lock keeps two from leaving for each other.
func (d *drive) surplus(ctx context.Context, tx tenants.Tx, atOnce int) (bool, error) {
	for _, lock := range []bool{false, true} {
		if lock {
			if _, err := d.lockGroup(ctx, tx); err != nil {
				return false, err
			}
		}
		var n int
		if err := tx.QueryRow(ctx, inWindow, tx.Tenant, d.step.ID).Scan(&n); err != nil {
			return false, fmt.Errorf("count a list's slices: %w", err)
		}
		if n <= atOnce {
			return false, nil
		}
	}
	return true, d.dropSlice(ctx, tx)
}

// lockGroup makes the slices that leave a group do so one after the other.
func (d *drive) lockGroup(ctx context.Context, tx tenants.Tx) (StepState, error) {
	var state StepState
	err := tx.QueryRow(ctx, `
		SELECT state FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tx.Tenant, d.step.ID).Scan(&state)
	if err != nil {
		return "", fmt.Errorf("lock a group: %w", err)
	}
	return state, nil
}

// leaveList joins a list in which nothing is open any more. Otherwise the slice goes: to
// the list around, if it is the last here, so that the items there have somebody.
func (d *drive) leaveList(ctx context.Context, tx tenants.Tx) (arrival, error) {
	state, err := d.lockGroup(ctx, tx)
	if err != nil {
		return stays, err
	}
	if state != StepRunning {
		return leaves, d.dropSlice(ctx, tx)
	}
	var open bool
	var others int
	err = tx.QueryRow(ctx, `SELECT `+openInside+`, (`+inWindow+` AND id <> $4)`, tx.Tenant, d.step.ID, d.run.ID, d.slice.id).Scan(&open, &others)
	if err != nil {
		return stays, fmt.Errorf("look at a list: %w", err)
	}
	switch {
	case !open:
		return stays, nil
	case others > 0 || d.outerWindow() < 0:
		return leaves, d.dropSlice(ctx, tx)
	}
	gone, err := d.departWhile(ctx, tx, always)
	if err == nil && !gone {
		err = errStale
	}
	return movesUp, err
}

// A slice takes on as many items as it ended in blockTime, so that none of them waits
// long for it while others are idle, and never more than maxBlock.
const (
	blockTime = 50 * time.Millisecond
	maxBlock  = 16
)

// blockSize is how many items the slice may take on, by how fast it ended the last ones.
func (d *drive) blockSize() int {
	taken, since := d.taken, time.Since(d.tookOn)
	d.tookOn = time.Now()
	if taken == 0 || since <= 0 {
		return 1
	}
	return max(1, min(maxBlock, int(blockTime*time.Duration(taken)/since)))
}

// takeItems takes on the next queued items: in order, and no more than half of what is
// left for each of those that may go at once.
func (d *drive) takeItems(ctx context.Context, tx tenants.Tx, atOnce int) error {
	rows, _ := tx.Query(ctx, `
		WITH next AS (
			SELECT id FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL
			ORDER BY turn LIMIT greatest(1, least($4, (
				(SELECT max(turn) + 1 FROM step_runs WHERE tenant_id = $1 AND parent_id = $2) -
				(SELECT turn FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'queued' AND slice_id IS NULL ORDER BY turn LIMIT 1)
			) / (2 * $5))) FOR UPDATE SKIP LOCKED
		), taken AS (
			UPDATE step_runs s SET slice_id = $3 FROM next n WHERE s.tenant_id = $1 AND s.id = n.id RETURNING s.id, s.turn, s.input_digest
		)
		SELECT t.id, t.turn, t.input_digest, v.content FROM taken t
		LEFT JOIN stored_values v ON v.tenant_id = $1 AND v.digest = t.input_digest ORDER BY t.turn`,
		tx.Tenant, d.step.ID, d.slice.id, d.blockSize(), atOnce)
	block, err := d.scanItems(rows)
	if err != nil {
		return err
	}
	if len(block) == 0 {
		return nil
	}
	d.block, d.taken = block, len(block)
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
	d.block, err = stepRuns(ctx, tx, `tenant_id = $1 AND slice_id = $2 AND state = 'queued' ORDER BY turn`, tx.Tenant, d.slice.id)
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
const releaseQuery = `UPDATE step_runs SET slice_id = NULL WHERE tenant_id = $1 AND slice_id = ANY ($2) AND state = 'queued'`
