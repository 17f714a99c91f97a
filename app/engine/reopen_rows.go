package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/tenants"
)

// fallenRows finds the rows of a run that fell with it, outermost first. Inside a step whose
// failure was being handled that is what handled it. Of items that
// nobody had begun there may be very many; they are counted by untakenIn.
func fallenRows(ctx context.Context, tx tenants.Tx, run RunID) ([]fallen, error) {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND id = ANY (ARRAY(
		WITH RECURSIVE fallen AS (
			SELECT id, chosen FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND parent_id IS NULL AND state IN ('failed', 'cancelled')
			UNION ALL
			SELECT s.id, s.chosen FROM fallen f CROSS JOIN LATERAL (
				SELECT id, chosen FROM step_runs i WHERE i.tenant_id = $1 AND i.parent_id = f.id AND i.state IN ('failed', 'cancelled')
					AND (f.chosen NOT LIKE 'error:%' OR i.list = f.chosen) AND NOT `+untaken+` OFFSET 0) s
		) SELECT id FROM fallen)) ORDER BY created_at, id`, tx.Tenant, run)
	if err != nil {
		return nil, err
	}
	found, ids := make([]fallen, len(rows)), make([]StepRunID, len(rows))
	place := map[StepRunID]int{}
	for i, row := range rows {
		found[i].row, ids[i], place[row.ID] = row, row.ID, i
	}
	inside, _ := tx.Query(ctx, `
		SELECT w.id, EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = $1 AND c.parent_id = w.id), (
			SELECT c.id FROM step_runs c WHERE c.tenant_id = $1 AND c.parent_id = w.id AND c.state IN ('done', 'skipped')
				AND c.kind NOT IN ('item', 'lane', 'round') ORDER BY c.created_at DESC, c.id DESC LIMIT 1)
		FROM step_runs w WHERE w.tenant_id = $1 AND w.id = ANY ($2)`, tx.Tenant, ids)
	var id, inner StepRunID
	var holds bool
	_, err = pgx.ForEachRow(inside, []any{&id, &holds, &inner}, func() error {
		f := &found[place[id]]
		f.holds, f.inner = holds, inner
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look into what fell with a run: %w", err)
	}
	return inOrder(found), nil
}

// inOrder puts outer rows before what is inside them, whatever the times of their begins.
func inOrder(rows []fallen) []fallen {
	inside := map[StepRunID][]fallen{}
	for _, f := range rows {
		inside[f.row.Parent] = append(inside[f.row.Parent], f)
	}
	out := make([]fallen, 0, len(rows))
	next := []StepRunID{{}}
	for len(next) > 0 {
		for _, f := range inside[next[0]] {
			out, next = append(out, f), append(next, f.row.ID)
		}
		next = next[1:]
	}
	return out
}

// untaken is an item i that was stopped before anybody began it.
const untaken = `(i.kind = 'item' AND i.state = 'cancelled' AND NOT EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = $1 AND c.parent_id = i.id))`

// untakenIn counts the items of lists that nobody had begun.
func untakenIn(ctx context.Context, tx tenants.Tx, lists []StepRunID) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM step_runs i WHERE i.tenant_id = $1 AND i.parent_id = ANY ($2) AND `+untaken, tx.Tenant, lists).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the items that nobody began: %w", err)
	}
	return n, nil
}

// write makes the rows go on, and gives the slices that carry them. note is kept at the
// steps that begin anew; output is that of a step that is spared.
func (r reopening) write(ctx context.Context, tx tenants.Tx, run RunID, note string, output Digest) ([]slice, error) {
	if r.whole {
		return []slice{{id: tenants.NewID[slice](), step: r.behind}}, nil
	}
	var born []slice
	m := revivalRows{}
	for _, one := range r.revivals {
		s := slice{id: tenants.NewID[slice](), step: one.at, window: one.window}
		m.add(one, s.id, note, output)
		if !one.at.IsZero() {
			born = append(born, s)
		}
	}
	if err := m.write(ctx, tx); err != nil {
		return nil, err
	}
	_, err := tx.Exec(ctx, `
		UPDATE step_runs i SET state = 'queued', ended_at = NULL, changed = pg_current_xact_id()
		WHERE i.tenant_id = $1 AND i.run_id = $2 AND i.parent_id = ANY ($3) AND `+untaken, tx.Tenant, run, r.lists)
	if err != nil {
		return nil, fmt.Errorf("put items back: %w", err)
	}
	return born, nil
}

// revivalRows are the rows that go on, in columns.
type revivalRows struct {
	ids     []StepRunID
	states  []string
	slices  []SliceID
	notes   []string
	outputs [][]byte
}

func (m *revivalRows) add(one revival, of SliceID, note string, output Digest) {
	if !one.anew {
		of = SliceID{} // a group belongs to no slice, and what is over neither
	}
	if one.to == StepRunning && !one.anew {
		note = ""
	}
	if one.to != StepSkipped {
		output = Digest{}
	}
	m.ids, m.states = append(m.ids, one.row.ID), append(m.states, string(one.to))
	m.slices, m.notes = append(m.slices, of), append(m.notes, expr.Plain(note))
	m.outputs = append(m.outputs, output.bytes())
}

func (m *revivalRows) write(ctx context.Context, tx tenants.Tx) error {
	tag, err := tx.Exec(ctx, `
		UPDATE step_runs s SET state = m.state, slice_id = m.slice, fence = CASE WHEN m.slice IS NULL THEN 0 ELSE 1 END,
			failure = CASE WHEN m.state = 'running' AND s.chosen LIKE 'error:%' THEN s.failure END, output_digest = m.output, note = m.note, changed = pg_current_xact_id(),
			chosen = CASE WHEN m.state = 'queued' THEN '' ELSE s.chosen END,
			attempt = s.attempt + CASE WHEN m.slice IS NOT NULL THEN 1 ELSE 0 END,
			earlier_tries = CASE WHEN m.slice IS NOT NULL THEN s.attempt ELSE s.earlier_tries END,
			begun_at = CASE WHEN m.slice IS NOT NULL THEN now() ELSE s.begun_at END,
			ended_at = CASE WHEN m.state = 'skipped' THEN now() END
		FROM (SELECT * FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::bytea[]) AS m (id, state, slice, note, output)) m
		WHERE s.tenant_id = $1 AND s.id = m.id AND s.state IN ('failed', 'cancelled')`,
		tx.Tenant, m.ids, m.states, m.slices, m.notes, m.outputs)
	if err != nil {
		return fmt.Errorf("let steps go on: %w", err)
	}
	if int(tag.RowsAffected()) != len(m.ids) {
		return ErrMoved
	}
	return nil
}

// lastAtTop finds the step at the top of a run that ended last; zero where none began.
func lastAtTop(ctx context.Context, tx tenants.Tx, run RunID) (StepRunID, error) {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND parent_id IS NULL ORDER BY created_at DESC, id DESC LIMIT 1`, tx.Tenant, run)
	if err != nil || len(rows) == 0 {
		return StepRunID{}, err
	}
	return rows[0].ID, nil
}
