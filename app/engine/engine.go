package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Semantics is the newest meaning of a document that this build's decide knows. Slices
// are queued by it, so that an older worker never takes what it does not understand.
const Semantics = pipeline.Semantics

// Queue is the River queue of slices with the given semantics.
func Queue(semantics int) string { return fmt.Sprintf("slices_%d", semantics) }

// Queues are those of all semantics that were ever published; every worker serves them.
func Queues() []string {
	var all []string
	for number := 1; number <= Semantics; number++ {
		all = append(all, Queue(number))
	}
	return all
}

// Jobs adds and cancels River jobs; the jobs room's inserter is one.
type Jobs interface {
	InsertManyTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobCancelTx(ctx context.Context, tx pgx.Tx, id int64) (*rivertype.JobRow, error)
	// FinishTx marks a running job done in the name of a worker that will not.
	FinishTx(ctx context.Context, tx pgx.Tx, id int64) error
	// Announce tells the processes that work a queue that there are new jobs in it.
	Announce(ctx context.Context, queue string) error
}

// Reviews opens and decides reviews; *review.Room is one.
type Reviews interface {
	Open(ctx context.Context, tx tenants.Tx, q review.Question) (review.ID, error)
	Decide(ctx context.Context, tx tenants.Tx, d review.Decision) (review.Result, error)
	Close(ctx context.Context, tx tenants.Tx, id review.ID, why review.Outcome) (bool, error)
	ByID(ctx context.Context, tx tenants.Tx, id review.ID) (review.Detail, error)
}

// Config is what an engine works with. All fields are required.
type Config struct {
	DB      *tenants.DB
	Jobs    Jobs
	Reviews Reviews
	Callers map[pipeline.Kind]Caller // outside calls, by kind of step
	// InputBound is the most input tokens that a model can be charged for an input.
	InputBound func(AIInput) int64
	// MaxOutput is the most tokens that a model can answer with, 0 where that is not known.
	// It may be nil.
	MaxOutput func(model string) int
	Callbacks Callbacks // the addresses at which other systems answer
	Log       *slog.Logger
}

// Engine changes runs. Everything that sets a run going or stops it goes through here.
type Engine struct {
	Config
	clockOffset atomic.Int64  // nanoseconds to add to this machine's clock
	nudges      chan struct{} // tells the pump that there may be something to do
	ends        chan struct{} // tells that a run ended for which another may be queued
	waiting     atomic.Pointer[waiters]
	openRuns    openRuns
	starts      *joiner[*starting]
	prices      recentPrices
}

// New makes an engine.
func New(config Config) *Engine {
	e := &Engine{Config: config, nudges: make(chan struct{}, 1), ends: make(chan struct{}, 1)}
	e.starts = newJoiner(e.startTogether, startsTogether)
	e.waiting.Store(&waiters{})
	return e
}

// now is the database's clock, as last compared, so that processes on machines with
// different clocks write one order of times.
func (e *Engine) now() time.Time {
	return time.Now().Add(time.Duration(e.clockOffset.Load())).UTC()
}

// DriveSlice is the River job that drives one slice. The fence tells an outdated job
// from the current one.
type DriveSlice struct {
	Tenant tenants.ID `json:"tenant_id"`
	Slice  SliceID    `json:"slice_id"`
	Fence  int64      `json:"fence"`
}

// Kind names the job in River's table.
func (DriveSlice) Kind() string { return "drive_slice" }

// maxJobTries lets River try a slice's job as often as it takes: tries of steps are
// ours to count.
const maxJobTries = 30000

// params are how the job is put into River's table.
func (job DriveSlice) params(semantics, priority int) (river.InsertManyParams, error) {
	metadata, err := json.Marshal(map[string]string{"tenant_id": job.Tenant.String()})
	return river.InsertManyParams{Args: job, InsertOpts: &river.InsertOpts{
		Queue: Queue(semantics), Priority: priority, MaxAttempts: maxJobTries, Metadata: metadata,
	}}, err
}
