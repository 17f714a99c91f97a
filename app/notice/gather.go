package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Bounds of one look.
const (
	window     = 24 * time.Hour // how long ago a run came into trouble that is still taken up
	mostTaken  = 5000           // runs of one tenant
	settle     = 20 * time.Second
	mostInPass = 100 // tenants
)

// troubles are the times at which runs came into trouble lately. Samples are looked at by
// whoever starts them, and what a limit of a pipeline skipped was meant to be.
const troubles = `
	SELECT r.tenant_id, r.pipeline_id, 'failed' AS kind, r.failure ->> 'class' AS class, coalesce(r.failure ->> 'step_id', '') AS step_id, r.id AS run_id, r.ended_at AS since
	FROM runs r
	WHERE r.state = 'failed' AND r.created_at IS NOT NULL AND r.ended_at > now() - $1::interval AND NOT r.sample AND r.failure ->> 'class' <> 'skipped'
	UNION ALL
	SELECT r.tenant_id, r.pipeline_id, CASE WHEN w.kind = 'cap' THEN 'capped' ELSE 'exception' END,
		CASE WHEN w.kind = 'cap' THEN '' ELSE coalesce(s.failure ->> 'class', '') END, CASE WHEN w.kind = 'cap' THEN '' ELSE s.step_id END, r.id, w.opened_at
	FROM waits w
	JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id
	JOIN step_runs s ON s.tenant_id = w.tenant_id AND s.id = w.step_run_id
	WHERE w.state = 'open' AND w.kind IN ('cap', 'review') AND w.opened_at > now() - $1::interval AND NOT r.sample AND (w.kind = 'cap' OR s.failure IS NOT NULL)
	UNION ALL
	SELECT r.tenant_id, r.pipeline_id, 'stuck', f.kind, '', r.id, f.first_at
	FROM watch_findings f JOIN runs r ON r.tenant_id = f.tenant_id AND r.id = f.run_id
	WHERE NOT f.repaired AND f.last_at > now() - $1::interval AND r.ended_at IS NULL`

// fresh are those of them that no notice has taken up.
const fresh = `
	SELECT t.* FROM (` + troubles + `) t
	WHERE NOT EXISTS (SELECT FROM notice_runs n WHERE n.tenant_id = t.tenant_id AND n.run_id = t.run_id AND n.kind = t.kind AND n.since = t.since)`

// Look takes up what came about, and tells what is to be told, for every tenant. It returns
// the number of tenants for which there was something to do.
func (r *Room) Look(ctx context.Context) (int, error) {
	var with []tenants.ID
	err := r.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `
			SELECT tenant_id FROM (
				SELECT f.tenant_id FROM (`+fresh+`) f UNION SELECT n.tenant_id FROM notices n WHERE n.ended_at IS NULL AND n.look_at <= now()) t
			LIMIT $2`, window, mostInPass)
		var err error
		if with, err = pgx.CollectRows(rows, pgx.RowTo[tenants.ID]); err != nil {
			return fmt.Errorf("look for runs in trouble: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, tenant := range with {
		if err := r.DB.InTx(ctx, tenant, r.lookAt); err != nil {
			return 0, err
		}
	}
	return len(with), nil
}

// lookAt is Look for one tenant. Processes that come at the same time leave it to the first.
func (r *Room) lookAt(ctx context.Context, tx tenants.Tx) error {
	var first bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('notices ' || $1, 0))`, tx.Tenant.String()).Scan(&first); err != nil || !first {
		return err
	}
	if err := gather(ctx, tx); err != nil {
		return err
	}
	return r.tell(ctx, tx)
}

// trouble is a run that came into it.
type trouble struct {
	Tenant   tenants.ID
	Pipeline pipeline.ID
	Kind     Kind
	Class    string
	StepID   string
	Run      [16]byte
	Since    time.Time
}

// cause is what the runs of one notice have in common.
type cause struct {
	Pipeline      pipeline.ID
	Kind          Kind
	Class, StepID string
}

func (t trouble) cause() cause { return cause{t.Pipeline, t.Kind, t.Class, t.StepID} }

// gather takes up what came about since the last look.
func gather(ctx context.Context, tx tenants.Tx) error {
	rows, _ := tx.Query(ctx, fresh+` ORDER BY t.since, t.run_id LIMIT $2`, window, mostTaken)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[trouble])
	if err != nil || len(found) == 0 {
		return err
	}
	var order []cause
	of := map[cause][]trouble{}
	for _, one := range found {
		if of[one.cause()] == nil {
			order = append(order, one.cause())
		}
		of[one.cause()] = append(of[one.cause()], one)
	}
	for _, cause := range order {
		if err := takeUp(ctx, tx, cause, of[cause]); err != nil {
			return fmt.Errorf("take up runs in trouble: %w", err)
		}
	}
	return nil
}

// takeUp adds runs to the lasting notice of their cause, or begins one.
func takeUp(ctx context.Context, tx tenants.Tx, of cause, found []trouble) error {
	var id ID
	err := tx.QueryRow(ctx, `
		INSERT INTO notices AS n (tenant_id, id, pipeline_id, kind, class, step_id, sample_run, runs, first_at, last_at, look_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11::interval)
		ON CONFLICT (tenant_id, pipeline_id, kind, class, step_id) WHERE ended_at IS NULL
		DO UPDATE SET runs = n.runs + $8, last_at = greatest(n.last_at, $10), sample_run = $7 RETURNING id`,
		tx.Tenant, tenants.NewID[Notice](), of.Pipeline, of.Kind, of.Class, of.StepID, found[len(found)-1].Run, len(found),
		found[0].Since, found[len(found)-1].Since, settle).Scan(&id)
	if err != nil {
		return err
	}
	runs, since := make([][16]byte, len(found)), make([]time.Time, len(found))
	for i, one := range found {
		runs[i], since[i] = one.Run, one.Since
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO notice_runs (tenant_id, run_id, kind, since, notice_id)
		SELECT $1, n.run_id, $4, n.since, $5 FROM unnest($2::uuid[], $3::timestamptz[]) AS n (run_id, since) ON CONFLICT DO NOTHING`,
		tx.Tenant, runs, since, of.Kind, id)
	return err
}
