package engine

import (
	"context"
	"fmt"
	"slices"
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
	ID    WorkerID
	Slots int // how many slices it drives at once; set before the first beat
	name  string

	draining atomic.Bool
	commits  *committer
	claims   *joiner[*claim]
	takers   *joiner[*taker]
	leavers  *joiner[*leaver]
	mu       sync.Mutex
	active   map[driven]*driving // what this process drives now
	watch    watchSeries

	transactions map[holder]time.Time // since when those open in the database were seen
}

// NewWorker makes a worker under a name that operators recognise, such as host and
// process number. It counts as alive from its first beat.
func (e *Engine) NewWorker(name string) *Worker {
	return &Worker{Engine: e, ID: tenants.NewID[Worker](), name: name,
		commits: newCommitter(e.sendAll), claims: newJoiner(e.claimAll, asManyAsJoin[*claim]), takers: newJoiner(e.takeTogether, asManyAsJoin[*taker]),
		leavers: newJoiner(e.leaveTogether, asManyAsJoin[*leaver]), active: map[driven]*driving{}}
}

// driven names one drive of a slice. The fence is part of the name: a slice that was
// taken from this process while it hung may come back to it before it notices.
type driven struct {
	Slice SliceID
	Fence int64
}

// driving is a drive under way.
type driving struct {
	cancel  context.CancelFunc
	claimed time.Time // by this machine's clock; zero until the claim is committed
}

// enter notes that the slice is driven here. Its context ends when the slice is taken
// away, as by a cancel of its run.
func (w *Worker) enter(ctx context.Context, name driven) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[name] = &driving{cancel: cancel}
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.active, name)
		cancel()
	}
}

// noteClaim tells that the slice counts as this worker's in the database from now on.
func (w *Worker) noteClaim(name driven) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if drive := w.active[name]; drive != nil {
		drive.claimed = time.Now()
	}
}

// Beat tells that this worker lives, compares the clocks, and stops what was taken
// away: slices that it drives and that are not its own any more.
func (w *Worker) Beat(ctx context.Context) error {
	sent := time.Now()
	var ours []driven
	var clock time.Time
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO workers (id, name, semantics, slots) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), stopped_at = NULL, slots = $4
			RETURNING clock_timestamp()`, w.ID, w.name, Semantics, w.slots()).Scan(&clock)
		if err != nil {
			return fmt.Errorf("beat: %w", err)
		}
		rows, _ := tx.Query(ctx, `SELECT id, fence FROM slices WHERE worker_id = $1 AND state = 'running'`, w.ID)
		ours, err = pgx.CollectRows(rows, pgx.RowToStructByPos[driven])
		return err
	})
	if err != nil {
		return err
	}
	middle := sent.Add(time.Since(sent) / 2)
	w.clockOffset.Store(int64(clock.Sub(middle)))
	w.stopLost(ours, sent)
	return nil
}

// stopLost stops what is driven here and was not in the beat's answer. What was claimed
// only after the beat's question cannot be in it, and is asked about next time.
func (w *Worker) stopLost(ours []driven, asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, drive := range w.active {
		if !drive.claimed.IsZero() && drive.claimed.Before(asked) && !slices.Contains(ours, name) {
			drive.cancel()
		}
	}
}

// slots is how many slices may be given to this worker. One that stops takes none.
func (w *Worker) slots() int {
	if w.draining.Load() {
		return 0
	}
	return w.Slots
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
