package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// WorkerID identifies a working process.
type WorkerID = tenants.IDOf[Worker]

// Beats and leases. A worker that has been silent for leaseTime is taken to be dead.
const (
	BeatEvery = 2 * time.Second
	leaseTime = 10 * time.Second
)

// Worker is this process as one that drives slices.
type Worker struct {
	*Engine
	ID   WorkerID
	name string

	draining atomic.Bool
	mu       sync.Mutex
	active   map[SliceID]context.CancelFunc // slices that this process drives now
	watch    watchSeries
}

// NewWorker makes a worker under a name that operators recognise, such as host and
// process number. It counts as alive from its first beat.
func (e *Engine) NewWorker(name string) *Worker {
	return &Worker{Engine: e, ID: tenants.NewID[Worker](), name: name, active: map[SliceID]context.CancelFunc{}}
}

// enter notes that the slice is driven here. Its context ends when the slice is taken
// away, as by a cancel of its run.
func (w *Worker) enter(ctx context.Context, id SliceID) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[id] = cancel
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.active, id)
		cancel()
	}
}

// Beat tells that this worker lives, compares the clocks, and stops what was taken
// away: slices that it drives and that are not its own any more.
func (w *Worker) Beat(ctx context.Context) error {
	sent := time.Now()
	var theirs []SliceID
	var clock time.Time
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO workers (id, name, semantics) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), stopped_at = NULL
			RETURNING clock_timestamp()`, w.ID, w.name, Semantics).Scan(&clock)
		if err != nil {
			return fmt.Errorf("beat: %w", err)
		}
		rows, _ := tx.Query(ctx, `SELECT id FROM slices WHERE worker_id = $1 AND state = 'running'`, w.ID)
		theirs, err = pgx.CollectRows(rows, pgx.RowTo[SliceID])
		return err
	})
	if err != nil {
		return err
	}
	middle := sent.Add(time.Since(sent) / 2)
	w.clockOffset.Store(int64(clock.Sub(middle)))
	w.stopLost(theirs, w.activeBefore(sent))
	return nil
}

// activeBefore lists what is driven here; a slice that was claimed after the beat's
// question cannot be in its answer, so it is asked about next time.
func (w *Worker) activeBefore(time.Time) []SliceID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]SliceID, 0, len(w.active))
	for id := range w.active {
		ids = append(ids, id)
	}
	return ids
}

func (w *Worker) stopLost(theirs, driven []SliceID) {
	ours := map[SliceID]bool{}
	for _, id := range theirs {
		ours[id] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range driven {
		if cancel := w.active[id]; cancel != nil && !ours[id] {
			cancel()
		}
	}
}

// Drain lets slices end behind the step they are at; other workers carry them on.
func (w *Worker) Drain() { w.draining.Store(true) }

// Retire says goodbye: nobody needs to wait for this worker's silence.
func (w *Worker) Retire(ctx context.Context) error {
	return w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		_, err := tx.Exec(ctx, `UPDATE workers SET stopped_at = clock_timestamp() WHERE id = $1`, w.ID)
		return err
	})
}
