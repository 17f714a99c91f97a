package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"tollgate/tenants"
)

// watchSeries remembers since when this reaper has looked without a gap. Silence is
// counted from there at the earliest, so that a pause of the database, in which nobody
// could beat, kills nobody.
type watchSeries struct {
	began, last time.Time
}

// maxGap is the longest pause between two looks that still counts as watching.
const maxGap = 3 * time.Second

func (s *watchSeries) look(now time.Time) time.Time {
	if now.Sub(s.last) > maxGap {
		s.began = now
	}
	s.last = now
	return s.began
}

// lostSlice is a slice whose worker is gone.
type lostSlice struct {
	Tenant tenants.ID
	ID     SliceID
	Fence  int64
	Job    *int64
}

// findLost finds the slices that dead workers ($1) drive, and those whose job they had
// fetched but not begun.
const findLost = `
	SELECT s.tenant_id, s.id, s.fence, s.job_id FROM slices s
	WHERE s.state = 'running' AND s.worker_id = ANY ($1)
	UNION
	SELECT s.tenant_id, s.id, s.fence, j.id FROM river.river_job j
	JOIN slices s ON s.tenant_id = (j.args ->> 'tenant_id')::uuid AND s.id = (j.args ->> 'slice_id')::uuid
		AND s.fence = (j.args ->> 'fence')::bigint AND s.state = 'dispatched'
	WHERE j.state = 'running' AND j.kind = 'drive_slice' AND j.attempted_by[cardinality(j.attempted_by)] = ANY ($1::uuid[]::text[])
	LIMIT 500`

// Dead lists the workers that are gone: they said goodbye, or were silent for the
// lease. Nothing is too old to be listed, since all of a system may have been off for
// days; ForgetWorkers shortens the list.
func (w *Worker) Dead(ctx context.Context, tx tenants.SystemTx) ([]WorkerID, error) {
	w.mu.Lock()
	since := w.watch.look(tx.Now)
	w.mu.Unlock()
	rows, _ := tx.Query(ctx, `
		SELECT id FROM workers WHERE stopped_at IS NOT NULL
			OR greatest(beat_at, pg_postmaster_start_time(), $1) < clock_timestamp() - $2::interval`, since, leaseTime)
	dead, err := pgx.CollectRows(rows, pgx.RowTo[WorkerID])
	if err != nil {
		return nil, fmt.Errorf("look for dead workers: %w", err)
	}
	return dead, nil
}

// ForgetWorkers removes workers that have been silent for days and have nothing left to
// take over. It trusts only a process that has been looking for a while itself: after a
// long standstill of everything, what the dead left must be found first.
func (w *Worker) ForgetWorkers(ctx context.Context, tx tenants.SystemTx) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM workers w
		WHERE w.beat_at < clock_timestamp() - interval '3 days'
			AND EXISTS (SELECT 1 FROM workers me WHERE me.id = $1 AND me.started_at < clock_timestamp() - interval '5 minutes')
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.worker_id = w.id AND s.state = 'running')`, w.ID)
	if err != nil {
		return fmt.Errorf("forget workers: %w", err)
	}
	return nil
}

// Reap takes over the slices of workers that fell silent and returns how many. It runs
// in every worker, at least once a second.
func (w *Worker) Reap(ctx context.Context) (int, error) {
	var lost []lostSlice
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		dead, err := w.Dead(ctx, tx)
		if err != nil || len(dead) == 0 {
			return err
		}
		rows, _ := tx.Query(ctx, findLost, dead)
		lost, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lostSlice])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for lost slices: %w", err)
	}
	return each(lost, "take over a slice", func(l lostSlice) error { return w.takeOver(ctx, l) })
}

// each does one thing after the other, so that one that cannot be done stops no other,
// and returns how many were done. What somebody else had done before is no error.
func each[One any](all []One, what string, do func(One) error) (int, error) {
	done := 0
	var failures []error
	for _, one := range all {
		err := do(one)
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errStale) && !errors.Is(err, ErrNotWaiting):
			failures = append(failures, fmt.Errorf("%s: %w", what, err))
		}
	}
	return done, errors.Join(failures...)
}

// takeOverPatience is how long one lost slice may keep the others waiting. A worker that
// froze in the middle of a transaction holds its rows until the server ends that; the
// next tick tries again.
const takeOverPatience = "1s"

// takeOver makes a lost slice ready for another slot under the next fence; its old job,
// should it still be somewhere, finds the fence outdated.
func (e *Engine) takeOver(ctx context.Context, l lostSlice) error {
	return e.DB.InTx(ctx, l.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, takeOverPatience); err != nil {
			return fmt.Errorf("bound the wait for a lock: %w", err)
		}
		if err := e.handOver(ctx, tx, l.ID, l.Fence, nil); err != nil {
			return err
		}
		return e.endJob(ctx, tx, l.Job)
	})
}

// endJob ends a job that lost its slice: where a worker is at it, that one is told, and
// River's row does not wait for its end, which may never come. A job that River has
// removed is fine.
func (e *Engine) endJob(ctx context.Context, tx tenants.Tx, job *int64) error {
	if job == nil {
		return nil
	}
	row, err := e.Jobs.JobCancelTx(ctx, tx.Tx, *job)
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("cancel a job: %w", err)
	case row.State != rivertype.JobStateRunning:
		return nil
	}
	return e.Jobs.FinishTx(ctx, tx.Tx, *job)
}

// BuryOthers marks all workers but this one as stopped. Only a process that knows that
// it is alone may call it, as local mode does by the lock on its data folder; its runs
// then go on at once instead of after a silence.
func (w *Worker) BuryOthers(ctx context.Context) error {
	return w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		_, err := tx.Exec(ctx, `UPDATE workers SET stopped_at = clock_timestamp() WHERE id <> $1 AND stopped_at IS NULL`, w.ID)
		return err
	})
}
