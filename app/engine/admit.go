package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// entry is how a run begins its life.
type entry struct {
	state   RunState
	failure *Failure // why it is over at once
	endedBy string
}

// endedAt is when a run that is over at once ended.
func (e entry) endedAt(now time.Time) *time.Time {
	if !e.state.Final() {
		return nil
	}
	return &now
}

// skippedBy is shown as who ended a run that its pipeline did not take.
const skippedBy = "the pipeline's limit of runs at once"

// admit says how a new run of a pipeline begins, by the limit that the pipeline has. The
// caller holds the pipeline's row, so that starts are counted one after the other.
func (e *Engine) admit(ctx context.Context, tx tenants.Tx, id pipeline.ID, limit *pipeline.Concurrency) (entry, error) {
	if limit == nil {
		return entry{state: RunRunning}, nil
	}
	open, queued, err := openRunsOf(ctx, tx, id, limit.Limit)
	switch {
	case err != nil:
		return entry{}, err
	case open < limit.Limit && !queued:
		return entry{state: RunRunning}, nil
	case limit.Policy == pipeline.ConcurrencySkip:
		return entry{state: RunCancelled, endedBy: skippedBy, failure: skipped(limit.Limit)}, nil
	case limit.Policy == pipeline.ConcurrencyCancelOldest:
		return entry{state: RunRunning}, e.cancelOldest(ctx, tx, id, limit.Limit)
	}
	return entry{state: RunQueued}, nil
}

func skipped(limit int) *Failure {
	runs := "another run"
	if limit > 1 {
		runs = fmt.Sprintf("%d runs", limit)
	}
	return &Failure{Class: ClassSkipped, Message: "This start was skipped: " + runs + " of the pipeline had not ended, and it takes no more at once."}
}

// openRunsOf counts the pipeline's runs that have begun and not ended, up to limit, and
// tells whether any is queued.
func openRunsOf(ctx context.Context, tx tenants.Tx, id pipeline.ID, limit int) (open int, queued bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant_id = $1 AND pipeline_id = $2 AND ended_at IS NULL AND state <> 'queued' LIMIT $3) open),
			EXISTS (SELECT 1 FROM runs WHERE tenant_id = $1 AND pipeline_id = $2 AND state = 'queued')`,
		tx.Tenant, id, limit).Scan(&open, &queued)
	if err != nil {
		return 0, false, fmt.Errorf("count a pipeline's runs: %w", err)
	}
	return open, queued, nil
}

// cancelOldest makes room for one more run by cancelling the oldest.
func (e *Engine) cancelOldest(ctx context.Context, tx tenants.Tx, id pipeline.ID, limit int) error {
	rows, _ := tx.Query(ctx, `
		SELECT id FROM runs WHERE tenant_id = $1 AND pipeline_id = $2 AND ended_at IS NULL ORDER BY id DESC OFFSET $3`,
		tx.Tenant, id, limit-1)
	old, err := pgx.CollectRows(rows, pgx.RowTo[RunID])
	if err != nil {
		return fmt.Errorf("look for a pipeline's oldest runs: %w", err)
	}
	_, err = each(old, "make room for a run", func(run RunID) error {
		if err := e.Cancel(ctx, tx, run, "a newer run"); err != ErrEnded {
			return err
		}
		return errStale // it has ended by itself
	})
	return err
}

// lockPipeline makes whoever admits runs of the pipeline wait for each other.
func lockPipeline(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	if _, err := tx.Exec(ctx, `SELECT 1 FROM pipelines WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tx.Tenant, id); err != nil {
		return fmt.Errorf("lock a pipeline: %w", err)
	}
	return nil
}

// pipelineOf names a pipeline across tenants.
type pipelineOf struct {
	Tenant   tenants.ID
	Pipeline pipeline.ID
}

// AdmitQueued starts queued runs of pipelines that have room, each pipeline's in the
// order in which they came, and returns how many. Whatever a crash left undone it finds.
func (e *Engine) AdmitQueued(ctx context.Context) (int, error) {
	var waiting []pipelineOf
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `
			WITH RECURSIVE waiting AS (
				(SELECT tenant_id, pipeline_id FROM runs WHERE state = 'queued' ORDER BY tenant_id, pipeline_id LIMIT 1)
				UNION ALL
				SELECT n.* FROM waiting w CROSS JOIN LATERAL (
					SELECT r.tenant_id, r.pipeline_id FROM runs r
					WHERE r.state = 'queued' AND (r.tenant_id, r.pipeline_id) > (w.tenant_id, w.pipeline_id)
					ORDER BY r.tenant_id, r.pipeline_id LIMIT 1) n
			)
			SELECT tenant_id, pipeline_id FROM waiting`)
		var err error
		waiting, err = pgx.CollectRows(rows, pgx.RowToStructByPos[pipelineOf])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for queued runs: %w", err)
	}
	admitted := 0
	_, err = each(waiting, "start queued runs", func(one pipelineOf) error {
		n, err := e.admitOf(ctx, one)
		admitted += n
		return err
	})
	return admitted, err
}

// admitMost bounds how many runs one transaction starts; the next look goes on.
const admitMost = 100

// admitOf starts as many queued runs of a pipeline as its live version has room for.
func (e *Engine) admitOf(ctx context.Context, one pipelineOf) (int, error) {
	admitted := 0
	err := e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		if err := lockPipeline(ctx, tx, one.Pipeline); err != nil {
			return err
		}
		room, err := e.roomOf(ctx, tx, one.Pipeline)
		if err != nil || room <= 0 {
			return err
		}
		admitted, err = e.startQueued(ctx, tx, one.Pipeline, room)
		return err
	})
	return admitted, err
}

// roomOf is how many more runs of a pipeline may begin, within what one look starts.
func (e *Engine) roomOf(ctx context.Context, tx tenants.Tx, id pipeline.ID) (int, error) {
	owner, err := pipeline.ByID(ctx, tx, id)
	if err != nil {
		return 0, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, id, owner.Live)
	if err != nil {
		return 0, err
	}
	limit := version.Document.Concurrency
	if limit == nil {
		return admitMost, nil
	}
	open, _, err := openRunsOf(ctx, tx, id, limit.Limit)
	return min(limit.Limit-open, admitMost), err
}

// startQueued starts the oldest of a pipeline's queued runs. One that is being cancelled
// right now is left out.
func (e *Engine) startQueued(ctx context.Context, tx tenants.Tx, id pipeline.ID, most int) (int, error) {
	rows, _ := tx.Query(ctx, `
		WITH next AS MATERIALIZED (
			SELECT r.id, `+semanticsOf+` AS semantics FROM runs r
			WHERE r.tenant_id = $1 AND r.pipeline_id = $2 AND r.state = 'queued' ORDER BY r.id LIMIT $3 FOR UPDATE
		)
		UPDATE runs r SET state = 'running', changed = pg_current_xact_id() FROM next
		WHERE r.tenant_id = $1 AND r.id = next.id
		RETURNING r.id, r.priority, next.semantics, r.reopened > 0 OR r.origin_run IS NOT NULL`, tx.Tenant, id, most)
	var born []slice
	var goOn []RunID
	s, begun := slice{}, false
	tag, err := pgx.ForEachRow(rows, []any{&s.run, &s.priority, &s.semantics, &begun}, func() error {
		if s.id = tenants.NewID[slice](); begun {
			goOn = append(goOn, s.run)
		} else {
			born = append(born, s)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("start queued runs: %w", err)
	}
	if err := e.releaseSlices(ctx, tx, goOn); err != nil {
		return 0, err
	}
	return int(tag.RowsAffected()), e.addSlices(ctx, tx, born...)
}

// releaseSlices lets the slices go that queued runs have already: their runs do not begin
// at the beginning.
func (e *Engine) releaseSlices(ctx context.Context, tx tenants.Tx, runs []RunID) error {
	if len(runs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE slices SET state = 'ready', ready_at = now() WHERE tenant_id = $1 AND run_id = ANY ($2) AND state = 'paused'`, tx.Tenant, runs)
	if err != nil {
		return fmt.Errorf("let the slices of queued runs go: %w", err)
	}
	tx.AfterCommit(e.nudge)
	return nil
}

// nudgeQueue tells that a run ended for which another may be queued.
func (e *Engine) nudgeQueue() {
	select {
	case e.ends <- struct{}{}:
	default:
	}
}

// admitEvery is how often a working process looks for what nobody told it of.
const admitEvery = 500 * time.Millisecond

// keepAdmitting starts queued runs, and settles pauses, until ctx ends.
func (e *Engine) keepAdmitting(ctx context.Context, looks bool) {
	tick := time.NewTicker(admitEvery)
	defer tick.Stop()
	if !looks {
		tick.Stop()
	}
	for {
		settle := false
		select {
		case <-ctx.Done():
			return
		case <-e.ends:
		case <-tick.C:
			settle = true
		}
		if err := e.admitAndSettle(ctx, settle); err != nil && ctx.Err() == nil {
			e.Log.Error("queued runs could not be started", slog.String("error", err.Error()))
		}
	}
}

func (e *Engine) admitAndSettle(ctx context.Context, settle bool) error {
	ctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	_, trouble := e.FollowChildren(ctx) // which must not keep others from starting
	if _, err := e.AdmitQueued(ctx); err != nil || !settle {
		return errors.Join(trouble, err)
	}
	_, err := e.SettlePauses(ctx)
	return errors.Join(trouble, err)
}
