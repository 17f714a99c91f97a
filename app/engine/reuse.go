package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// earlier is a result of a step that was asked the same, and may be taken again.
type earlier struct {
	step   StepRunID
	output []byte
}

// earlierLook is what was found when somebody looked for one.
type earlierLook struct {
	found *earlier // nil where there is none
	fresh bool     // the run takes none
}

// reuseKey is what two calls have in common whose answers are interchangeable: the kind
// of step and all that it is given, its settings, model and data among it.
func reuseKey(kind pipeline.Kind, input []byte) Digest {
	return DigestOf(append([]byte("asked\x00"+string(kind)+"\x00"), input...))
}

// earlierOf looks for a result that a step takes instead of being done; nil for a step
// that takes none, and where there is none.
func (d *decider) earlierOf(node *pipeline.Node, input []byte) (*earlier, error) {
	if node.Reuse == 0 {
		return nil, nil
	}
	key := reuseKey(node.Kind(), input)
	look, ok := d.scope.earlier[key]
	switch {
	case !ok:
		return nil, d.ask(want{kind: wantEarlier, digest: key, within: node.Reuse})
	case look.found == nil && !look.fresh:
		return d.made[key], nil
	}
	return look.found, nil
}

// takeOver writes down a step that is done at once by an earlier result: without a call,
// without money, and with the name of where it comes from.
func (d *decider) takeOver(node *pipeline.Node, group *frame, input []byte, from *earlier) error {
	row := d.newRow(node, group, StepDone)
	row.ReusedFrom = from.step
	d.add(insertStep{row: row, input: input, output: from.output})
	d.know(place{frame: group.id(), step: node.ID()}, foundRow(row, value{bytes: from.output}))
	return d.after(node, group)
}

// keepResult lets others take what the step run gave.
type keepResult struct {
	key  Digest
	step StepRunID
	long time.Duration
}

func (keepResult) isChange() {}

// keepOutput notes a result for those that will be asked the same. Only what a call gave is
// kept: neither what was itself taken over, nor what a person said.
func (d *decider) keepOutput() {
	node := d.program.Node(d.step.StepID)
	if node.Reuse == 0 || len(d.scope.callInput) == 0 || len(d.outcome.files) > 0 {
		return
	}
	key := reuseKey(node.Kind(), d.scope.callInput)
	d.add(keepResult{key: key, step: d.step.ID, long: node.Reuse})
	d.made = map[Digest]*earlier{key: {d.step.ID, d.outcome.output}}
}

// keptResults are results to keep, in columns.
type keptResults struct {
	keys  [][]byte
	steps []StepRunID
	long  []time.Duration
}

func (k *keptResults) add(one keepResult) {
	k.keys, k.steps, k.long = append(k.keys, one.key.bytes()), append(k.steps, one.step), append(k.long, one.long)
}

func (k *keptResults) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(k.keys) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO step_results (tenant_id, key, step_run_id, expires_at)
		SELECT $1, k.key, k.step, now() + k.long FROM unnest($2::bytea[], $3::uuid[], $4::interval[]) AS k (key, step, long)`,
		tenant, k.keys, k.steps, k.long)
}

// lookForEarlier finds the newest result that is not older than it may be, for its keeper
// and for who takes it; none for a run that takes none.
func (d *drive) lookForEarlier(ctx context.Context, tx tenants.Tx, w want) (earlierLook, error) {
	var look earlierLook
	var step StepRunID
	var output []byte
	err := tx.QueryRow(ctx, `
		SELECT f.fresh, e.id, e.output_digest
		FROM (SELECT EXISTS (SELECT 1 FROM fresh_runs WHERE tenant_id = $1 AND run_id = $4) AS fresh) f
		LEFT JOIN LATERAL (
			SELECT s.id, s.output_digest FROM step_results k CROSS JOIN LATERAL (
				SELECT s.id, s.output_digest FROM step_runs s
				WHERE s.tenant_id = k.tenant_id AND s.id = k.step_run_id AND s.state = 'done' AND s.output_digest IS NOT NULL OFFSET 0) s
			WHERE NOT f.fresh AND k.tenant_id = $1 AND k.key = $2 AND k.expires_at > now() AND k.kept_at > now() - $3::interval
			ORDER BY k.kept_at DESC, k.step_run_id DESC LIMIT 1) e ON true`,
		tx.Tenant, w.digest.bytes(), w.within, d.run.ID).Scan(&look.fresh, &step, &output)
	if err != nil {
		return look, fmt.Errorf("look for an earlier result: %w", err)
	}
	if step.IsZero() {
		return look, nil
	}
	content, err := Value(ctx, tx, digestFrom(output))
	if errors.Is(err, ErrNoValue) { // it was cleaned up
		return look, nil
	}
	look.found = &earlier{step, content.Bytes}
	return look, err
}

// queueFresh lets a run take no earlier results.
func queueFresh(b *tenants.Batch, tenant tenants.ID, run RunID) {
	b.Queue(`INSERT INTO fresh_runs (tenant_id, run_id) VALUES ($1, $2)`, tenant, run)
}

// inheritFresh lets a run that another has started take no earlier results, if that one
// takes none.
func inheritFresh(ctx context.Context, tx tenants.Tx, from, to RunID) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO fresh_runs (tenant_id, run_id) SELECT tenant_id, $3 FROM fresh_runs WHERE tenant_id = $1 AND run_id = $2`, tx.Tenant, from, to)
	if err != nil {
		return fmt.Errorf("let a run take no earlier results: %w", err)
	}
	return nil
}

// PruneResults forgets the results that nobody may take any more, and returns how many
// those were.
func (e *Engine) PruneResults(ctx context.Context) (int, error) {
	var owners []tenants.ID
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM step_results WHERE expires_at < now()`)
		var err error
		owners, err = pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for old results: %w", err)
	}
	gone := 0
	_, err = each(owners, "prune a tenant's results", func(tenant tenants.ID) error {
		for {
			n, err := e.pruneResults(ctx, tenant)
			gone += n
			if n < prunedAtOnce || err != nil {
				return err
			}
		}
	})
	return gone, err
}

func (e *Engine) pruneResults(ctx context.Context, tenant tenants.ID) (int, error) {
	gone := 0
	err := e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM step_results WHERE tenant_id = $1 AND (key, step_run_id) IN (
				SELECT key, step_run_id FROM step_results WHERE tenant_id = $1 AND expires_at < now() ORDER BY expires_at LIMIT $2)`,
			tenant, prunedAtOnce)
		gone = int(tag.RowsAffected())
		return err
	})
	return gone, err
}
