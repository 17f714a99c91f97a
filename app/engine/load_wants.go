package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/tenants"
)

// load reads what a decision asks for.
func (d *drive) load(ctx context.Context, wants []want) error {
	return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		if err := d.loadRows(ctx, tx, wants); err != nil {
			return err
		}
		for _, w := range wants {
			if err := d.loadOne(ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *drive) loadOne(ctx context.Context, tx tenants.Tx, w want) error {
	var err error
	switch w.kind {
	case wantValue:
		d.scope.values[w.digest], err = decodedValue(ctx, tx, w.digest)
	case wantItem:
		d.scope.items[w.row], err = decodedValue(ctx, tx, w.digest)
	case wantSpent:
		d.scope.spent[w.row], err = spentInside(ctx, tx, w.row)
	case wantTurns:
		d.scope.turns[w.row], err = turnsOf(ctx, tx, w.row)
	case wantLast:
		d.scope.last[w.row], err = lastTurn(ctx, tx, w.row)
	case wantEarlier:
		d.scope.earlier[w.digest], err = d.lookForEarlier(ctx, tx, w)
	case wantPrices:
		d.scope.prices, err = d.pricesOf(ctx, tx)
	case wantAbove:
		d.scope.above, err = runsAbove(ctx, tx, d.run)
	case wantKeys:
		d.scope.keys, err = tenants.KeysInUse(ctx, tx)
	case wantZone:
		d.scope.zone, err = zoneOf(ctx, tx)
	}
	return err
}

func decodedValue(ctx context.Context, tx tenants.Tx, digest Digest) (any, error) {
	content, err := Value(ctx, tx, digest)
	if err != nil {
		return nil, fmt.Errorf("read a value of a run: %w", err)
	}
	return expr.DecodeJSON(content.Bytes)
}

// loadRows looks up all places at once. A place where nothing stands counts as looked up.
func (d *drive) loadRows(ctx context.Context, tx tenants.Tx, wants []want) error {
	var frames []StepRunID
	var steps, top []string
	var turns []int
	for _, w := range wants {
		switch {
		case w.kind != wantRow:
			continue
		case w.place.frame.IsZero():
			top = append(top, w.place.step)
		default:
			frames, steps, turns = append(frames, w.place.frame), append(steps, w.place.step), append(turns, w.place.turn)
		}
		d.scope.found[w.place] = &found{}
	}
	if len(top) > 0 {
		err := d.scanPlaces(ctx, tx, `
			SELECT `+placeColumns+` FROM step_runs s
			WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.step_id = ANY ($3) AND s.parent_id IS NULL`, tx.Tenant, d.run.ID, top)
		if err != nil {
			return err
		}
	}
	if len(frames) == 0 {
		return nil
	}
	return d.scanPlaces(ctx, tx, `
		SELECT `+placeColumns+` FROM unnest($3::uuid[], $4::text[], $5::integer[]) AS w (frame, step, turn) CROSS JOIN LATERAL (
			SELECT * FROM step_runs s
			WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.step_id = w.step AND s.parent_id = w.frame AND s.turn = w.turn LIMIT 1) s`,
		tx.Tenant, d.run.ID, frames, steps, turns)
}

// The outputs that are kept in one piece come along; larger ones are read when needed.
const placeColumns = `s.id, s.parent_id, s.step_id, s.turn, s.state, s.chosen, s.output_digest, ` + contentOf + `s.output_digest)`

// contentOf is a value that is kept in one piece. Asked for row by row it is always found
// by its key; joined, all values of the tenant might be read.
const contentOf = `(SELECT v.content FROM stored_values v WHERE v.tenant_id = $1 AND v.digest = `

func (d *drive) scanPlaces(ctx context.Context, tx tenants.Tx, query string, args ...any) error {
	rows, _ := tx.Query(ctx, query, args...)
	var p place
	var f found
	var digest, content []byte
	_, err := pgx.ForEachRow(rows, []any{&f.id, &p.frame, &p.step, &p.turn, &f.state, &f.chosen, &digest, &content}, func() error {
		one := f
		one.output.digest = digestFrom(digest)
		d.scope.found[p] = &one
		if content == nil {
			return nil
		}
		var err error
		d.scope.values[one.output.digest], err = expr.DecodeJSON(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("look steps up: %w", err)
	}
	return nil
}

// spentInside is what the calls inside a row have cost. Groups are left out: what they
// show is the sum of what is inside them.
func spentInside(ctx context.Context, tx tenants.Tx, row StepRunID) (int64, error) {
	var spent int64
	err := tx.QueryRow(ctx, `
		WITH RECURSIVE inside AS (
			SELECT id, kind, cost_micros FROM step_runs WHERE tenant_id = $1 AND parent_id = $2
			UNION ALL
			SELECT s.* FROM inside i CROSS JOIN LATERAL (
				SELECT id, kind, cost_micros FROM step_runs WHERE tenant_id = $1 AND parent_id = i.id OFFSET 0) s
		) SELECT coalesce(sum(cost_micros) FILTER (WHERE kind <> ALL ($3)), 0)::bigint FROM inside`, tx.Tenant, row, groups).Scan(&spent)
	if err != nil {
		return 0, fmt.Errorf("sum up what a round has cost: %w", err)
	}
	return spent, nil
}

// turnsOf reads what the items of a list, or the branches side by side, gave.
func turnsOf(ctx context.Context, tx tenants.Tx, group StepRunID) ([]turn, error) {
	rows, _ := tx.Query(ctx, `
		SELECT s.turn, s.list, s.state, s.score, s.failure, s.output_digest, `+contentOf+`s.output_digest) FROM step_runs s
		WHERE s.tenant_id = $1 AND s.parent_id = $2 ORDER BY s.turn`, tx.Tenant, group)
	var large []Digest // of the outputs that are not kept in one piece; zero for the others
	turns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (turn, error) {
		var t turn
		var failure, digest []byte
		if err := row.Scan(&t.index, &t.list, &t.state, &t.score, &failure, &digest, &t.output); err != nil {
			return t, err
		}
		if t.output != nil {
			digest = nil
		}
		large = append(large, digestFrom(digest))
		var err error
		t.failure, err = failureFrom(failure)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what a group's parts gave: %w", err)
	}
	return turns, readLarge(ctx, tx, turns, large)
}

func readLarge(ctx context.Context, tx tenants.Tx, turns []turn, digests []Digest) error {
	for i, digest := range digests {
		if digest.IsZero() {
			continue
		}
		content, err := Value(ctx, tx, digest)
		if err != nil {
			return fmt.Errorf("read what a group's part gave: %w", err)
		}
		turns[i].output = content.Bytes
	}
	return nil
}

func lastTurn(ctx context.Context, tx tenants.Tx, group StepRunID) (int, error) {
	var last int
	err := tx.QueryRow(ctx, `
		SELECT coalesce(max(turn), 0) FROM step_runs WHERE tenant_id = $1 AND parent_id = $2`, tx.Tenant, group).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("find a loop's last round: %w", err)
	}
	return last, nil
}

func zoneOf(ctx context.Context, tx tenants.Tx) (*time.Location, error) {
	tenant, err := tenants.TenantOf(ctx, tx)
	if err != nil {
		return nil, err
	}
	return time.LoadLocation(tenant.Zone)
}
