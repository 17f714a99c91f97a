package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// StuckKind is one way in which a run could stand still with nothing left to wake it.
type StuckKind string

// The kinds of stuck that the watchdog knows.
const (
	// StuckJobGone: a slice was dispatched, and River has no live job for it.
	StuckJobGone StuckKind = "job_gone"
	// StuckUndriven: this worker holds a slice that it does not drive.
	StuckUndriven StuckKind = "undriven"
	// StuckNoSlice: a step run counts as running, and no slice carries it.
	StuckNoSlice StuckKind = "no_slice"
	// StuckNoWait: a step run waits, and no wait is open for it.
	StuckNoWait StuckKind = "no_wait"
	// StuckNoStep: a run is open, and no slice of it, nor any step run but groups.
	StuckNoStep StuckKind = "no_step"
	// StuckNoWaker: a wait is open, and nothing would ever close it.
	StuckNoWaker StuckKind = "no_waker"
	// StuckLostChild: a step waits for a run that is over, or was never there.
	StuckLostChild StuckKind = "lost_child"
	// StuckSlotLeaked: a slice counts as under way, with no worker or no open run behind it.
	StuckSlotLeaked StuckKind = "slot_leaked"
	// StuckJobOrphaned: a job counts as running, and its slice has moved on without it.
	StuckJobOrphaned StuckKind = "job_orphaned"
	// StuckUnserved: a slice is ready and there is room for it, and the pump passes it over.
	StuckUnserved StuckKind = "unserved"
	// StuckLeftPaused: a slice is paused, and its run is not.
	StuckLeftPaused StuckKind = "left_paused"
	// StuckLostJoin: all that is in a list or in branches side by side has ended, and
	// nobody goes on behind them.
	StuckLostJoin StuckKind = "lost_join"
	// StuckLostPart: a round, item or branch is open, and nothing in it is.
	StuckLostPart StuckKind = "lost_part"
	// StuckLostItems: items of a list wait, and nobody will take them.
	StuckLostItems StuckKind = "lost_items"
)

// Stuck is one finding.
type Stuck struct {
	Kind     StuckKind
	Tenant   tenants.ID
	Run      RunID
	Slice    SliceID
	Fence    int64
	Job      *int64
	Step     StepRunID
	Repaired bool
	trouble  error // of a repair that did not work
}

// stuckAfter is how old a state must be before it can be wrong: longer than any commit
// takes, so that nothing in motion is touched.
const stuckAfter = 10 * time.Second

// Watch looks for runs that nothing would wake, repairs what it can, and reports all.
// A finding is a defect somewhere else; it is logged as one.
func (w *Worker) Watch(ctx context.Context) ([]Stuck, error) {
	findings, err := w.findStuck(ctx)
	if err == nil {
		findings, err = w.unserved(ctx, findings)
	}
	if err != nil {
		return nil, fmt.Errorf("look for stuck runs: %w", err)
	}
	var failures []error
	for i := range findings {
		f := &findings[i]
		err := w.repair(ctx, *f)
		f.Repaired = err == nil
		switch {
		case errors.Is(err, errStale), errors.Is(err, ErrNotWaiting): // it went on by itself
		case err != nil:
			f.trouble = err
			failures = append(failures, fmt.Errorf("repair a stuck run: %w", err))
		}
		w.Log.Error("a run was stuck", slog.String("kind", string(f.Kind)), slog.String("run", f.Run.String()),
			slog.String("tenant", f.Tenant.String()), slog.Bool("repaired", f.Repaired))
	}
	return findings, errors.Join(append(failures, w.record(ctx, findings))...)
}

func (w *Worker) findStuck(ctx context.Context) ([]Stuck, error) {
	var all []Stuck
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		all = nil
		for _, look := range stuckQueries {
			rows, _ := tx.Query(ctx, look.query+` LIMIT 100`, stuckAfter, w.ID)
			found, err := pgx.CollectRows(rows, scanStuck(look.kind))
			if err != nil {
				return fmt.Errorf("%s: %w", look.kind, err)
			}
			all = append(all, found...)
		}
		return nil
	})
	return w.withoutDriven(all), err
}

func scanStuck(kind StuckKind) pgx.RowToFunc[Stuck] {
	return func(row pgx.CollectableRow) (Stuck, error) {
		s := Stuck{Kind: kind}
		return s, row.Scan(&s.Tenant, &s.Run, &s.Slice, &s.Fence, &s.Job, &s.Step)
	}
}

// withoutDriven drops the slices that this process is driving right now.
func (w *Worker) withoutDriven(found []Stuck) []Stuck {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := found[:0]
	for _, f := range found {
		if w.active[driven{f.Slice, f.Fence}] == nil || f.Kind != StuckUndriven {
			kept = append(kept, f)
		}
	}
	return kept
}

// repair sets a stuck run going again from where its rows say it stands, or frees what
// is held for nothing.
func (w *Worker) repair(ctx context.Context, f Stuck) error {
	switch f.Kind {
	case StuckJobGone, StuckUndriven:
		return w.takeOver(ctx, lostSlice{f.Tenant, f.Slice, f.Fence, f.Job})
	case StuckSlotLeaked:
		return w.freeSlot(ctx, f)
	case StuckUnserved, StuckLeftPaused:
		return w.serve(ctx, f)
	case StuckJobOrphaned:
		return w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error { return w.endJob(ctx, tx, f.Job) })
	case StuckLostChild:
		return w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error { return w.tellAgain(ctx, tx, f.Step) })
	case StuckNoWaker:
		return w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error { return w.wakeLost(ctx, tx, f) })
	}
	return w.DB.InTx(ctx, f.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		s, err := w.lockStuck(ctx, tx, f)
		if err != nil {
			return err
		}
		if f.Kind == StuckLostJoin || f.Kind == StuckLostItems {
			return w.standAtGroup(ctx, tx, s)
		}
		return w.reviveAt(ctx, tx, f, s)
	})
}

// reviveAt makes a slice for a branch that lost its own: at the step run found, or at
// the run's beginning where it has none yet. A step that waits without a wait first
// gets one that is over.
func (e *Engine) reviveAt(ctx context.Context, tx tenants.Tx, f Stuck, s slice) error {
	s.id = tenants.NewID[slice]()
	if f.Kind == StuckNoWait {
		if waitsOn, err := e.mendWait(ctx, tx, &s); waitsOn || err != nil {
			return err
		}
	}
	if !s.step.IsZero() {
		_, err := tx.Exec(ctx, `
			UPDATE step_runs SET slice_id = $3, fence = 1 WHERE tenant_id = $1 AND id = $2 AND state IN ('running', 'waiting') AND kind NOT IN `+groupKinds,
			tx.Tenant, s.step, s.id)
		if err != nil {
			return fmt.Errorf("revive a step: %w", err)
		}
	}
	return e.addSlices(ctx, tx, s)
}

// reopenReviewWait lets a step go on waiting for its review, where that is still open.
func reopenReviewWait(ctx context.Context, tx tenants.Tx, step StepRunID) (bool, error) {
	tag, err := tx.Exec(ctx, `
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, due_at)
		SELECT tenant_id, $3, run_id, step_run_id, 'review', due_at FROM reviews
		WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open'`, tx.Tenant, step, tenants.NewID[Wait]())
	if err != nil {
		return false, fmt.Errorf("replace a review's lost wait: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// lockStuck locks the stuck run and gives the slice that should carry it. It looks
// again under the lock: of two watchdogs only the first repairs.
func (w *Worker) lockStuck(ctx context.Context, tx tenants.Tx, f Stuck) (slice, error) {
	s := slice{run: f.Run, step: f.Step}
	err := tx.QueryRow(ctx, `
		SELECT r.priority, `+semanticsOf+`, (SELECT `+windowAround+` FROM step_runs s WHERE s.tenant_id = $1 AND s.id = $3) FROM runs r
		WHERE r.tenant_id = $1 AND r.id = $2 AND r.state = 'running' FOR UPDATE`,
		tx.Tenant, f.Run, f.Step).Scan(&s.priority, &s.semantics, &s.window)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrNotWaiting
	}
	if err != nil {
		return s, fmt.Errorf("lock a stuck run: %w", err)
	}
	return s, w.recheck(ctx, tx, f)
}

// recheck returns errStale where the finding does not hold any more.
func (w *Worker) recheck(ctx context.Context, tx tenants.Tx, f Stuck) error {
	for _, look := range stuckQueries {
		if look.kind != f.Kind {
			continue
		}
		var still bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM (`+look.query+`) found (tenant, run, slice, fence, job, step)
			WHERE found.run = $3 AND found.step IS NOT DISTINCT FROM $4)`, stuckAfter, w.ID, f.Run, f.Step).Scan(&still)
		if err != nil {
			return fmt.Errorf("look again at a stuck run: %w", err)
		}
		if still {
			return nil
		}
	}
	return errStale
}
