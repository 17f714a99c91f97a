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

// Jobs adds and cancels River jobs; River's client is one.
type Jobs interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
	JobCancelTx(ctx context.Context, tx pgx.Tx, id int64) (*rivertype.JobRow, error)
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
	Log        *slog.Logger
}

// Engine changes runs. Everything that sets a run going or stops it goes through here.
type Engine struct {
	Config
	clockOffset atomic.Int64 // nanoseconds to add to this machine's clock
}

// New makes an engine.
func New(config Config) *Engine { return &Engine{Config: config} }

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

// insertJob adds the job for a slice and returns its number.
func (e *Engine) insertJob(ctx context.Context, tx tenants.Tx, slice SliceID, fence int64, semantics int, priority int16) (int64, error) {
	metadata, err := json.Marshal(map[string]string{"tenant_id": tx.Tenant.String()})
	if err != nil {
		return 0, err
	}
	inserted, err := e.Jobs.InsertTx(ctx, tx.Tx, DriveSlice{tx.Tenant, slice, fence}, &river.InsertOpts{
		Queue: Queue(semantics), Priority: int(priority), MaxAttempts: maxJobTries, Metadata: metadata,
	})
	if err != nil {
		return 0, fmt.Errorf("insert a slice's job: %w", err)
	}
	return inserted.Job.ID, nil
}
