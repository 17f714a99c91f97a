package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/notice"
	"tollgate/migrations"
	"tollgate/tenants"
)

// Client is River's client on Postgres.
type Client = river.Client[pgx.Tx]

// Inserter only adds jobs, for processes that serve pages and for the rooms, which are
// made before the workers are.
type Inserter struct {
	*Client
	db *tenants.DB
}

// NewInserter makes an inserter.
func NewInserter(db *tenants.DB) (*Inserter, error) {
	client, err := river.NewClient(riverpgxv5.New(db.System()), &river.Config{
		Schema:              migrations.RiverSchema,
		SkipUnknownJobCheck: true,
		FetchCooldown:       clientCooldown,
		FetchPollInterval:   clientCooldown,
	})
	if err != nil {
		return nil, fmt.Errorf("make a client that adds jobs: %w", err)
	}
	return &Inserter{client, db}, nil
}

// Announce tells all processes that work a queue that there are jobs in it. The topic
// and the words are those that River's producers listen to. It is a transaction of its
// own, since notifying ones commit one after the other.
func (i *Inserter) Announce(ctx context.Context, queue string) error {
	_, err := i.db.System().Exec(ctx, `SELECT pg_notify($1, json_build_object('queue', $2::text)::text)`, migrations.RiverSchema+".river_insert", queue)
	if err != nil {
		return fmt.Errorf("announce jobs: %w", err)
	}
	return nil
}

// FinishTx marks a running job done in the name of a worker that will not. A job that is
// not running any more stays as it is.
func (i *Inserter) FinishTx(ctx context.Context, tx pgx.Tx, id int64) error {
	done := riverdriver.JobSetStateCompleted(id, time.Now(), nil)
	_, err := i.Driver().UnwrapExecutor(tx).JobSetStateIfRunningMany(ctx, &riverdriver.JobSetStateIfRunningManyParams{
		ID: []int64{done.ID}, Attempt: []*int{done.Attempt}, ErrData: [][]byte{done.ErrData}, FinalizedAt: []*time.Time{done.FinalizedAt},
		MetadataDoMerge: []bool{done.MetadataDoMerge}, MetadataUpdates: [][]byte{done.MetadataUpdates}, ScheduledAt: []*time.Time{done.ScheduledAt},
		State: []rivertype.JobState{done.State}, Schema: migrations.RiverSchema,
	})
	if err != nil {
		return fmt.Errorf("finish a job: %w", err)
	}
	return nil
}

// Config is what a working process works with.
type Config struct {
	DB       *tenants.DB
	Worker   *engine.Worker
	Outbox   *mail.Outbox
	Notices  *notice.Room  // nil: nobody is told of runs in trouble
	Hooks    *Hooks        // nil: no other system is
	Slices   int           // slices driven at once; 0 means 100
	Patience time.Duration // how long calls under way may go on after a stop; 0 means 60 s
	Log      *slog.Logger
}

// Defaults and settings of River. The pump announces the jobs of slices once they are
// committed, so polling only covers an announcement that got lost. The pause between
// fetches is what such a job waits where another came just before, so it is short;
// notifications inside transactions would make commits queue, so the client's cooldown
// lets next to none through.
const (
	defaultSlices   = 100
	defaultPatience = time.Minute
	mailWorkers     = 4
	clientCooldown  = time.Minute
	fetchCooldown   = time.Millisecond
	fetchPoll       = 100 * time.Millisecond
	mailPoll        = 200 * time.Millisecond
	keepFinished    = 10 * time.Minute
	keepCancelled   = 24 * time.Hour
	rescueAfter     = 48 * time.Hour // only tidies up: take-overs are ours, River cannot tell long from dead
)

// newClient makes the client that works.
func newClient(config Config) (*Client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &sliceWorker{worker: config.Worker})
	river.AddWorker(workers, &mailWorker{db: config.DB, outbox: config.Outbox, id: config.Worker.ID})
	patience := config.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	client, err := river.NewClient(riverpgxv5.New(config.DB.System()), &river.Config{
		ID:                          config.Worker.ID.String(),
		Schema:                      migrations.RiverSchema,
		Logger:                      newQuiet(config.Log),
		Queues:                      queues(config.Worker.Slots),
		Workers:                     workers,
		FetchCooldown:               clientCooldown,
		FetchPollInterval:           clientCooldown,
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        rescueAfter,
		RetryPolicy:                 doubling{},
		SoftStopTimeout:             patience,
		CompletedJobRetentionPeriod: keepFinished,
		CancelledJobRetentionPeriod: keepCancelled,
	})
	if err != nil {
		return nil, fmt.Errorf("make a client that works jobs: %w", err)
	}
	return client, nil
}

// queues are those that a process serves, slices of every semantics among them.
func queues(slices int) map[string]river.QueueConfig {
	all := map[string]river.QueueConfig{
		mail.Queue: {MaxWorkers: mailWorkers, FetchCooldown: fetchCooldown, FetchPollInterval: mailPoll},
	}
	for _, name := range engine.Queues() {
		all[name] = river.QueueConfig{MaxWorkers: slices, FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll}
	}
	return all
}

// doubling tries a failed job again after a second, then after two, four, up to a
// minute. What a slice's job failed at is a defect, since trouble with the database
// does not count and the tries of steps are counted apart.
type doubling struct{}

const (
	firstPause   = time.Second
	longestPause = time.Minute
)

func (doubling) NextRetry(job *rivertype.JobRow) time.Time {
	pause := firstPause
	for n := 1; n < job.Attempt && pause < longestPause; n++ {
		pause *= 2
	}
	return time.Now().Add(min(pause, longestPause))
}

// Process is a running set of workers and ticks.
type Process struct {
	client *Client
	worker *engine.Worker
	ticks  *ticker
}

// Start begins to work. The first beat comes before the first job, so that nobody takes
// this worker for dead.
func Start(ctx context.Context, config Config) (*Process, error) {
	config.Worker.Slots = config.Slices
	if config.Slices == 0 {
		config.Worker.Slots = defaultSlices
	}
	if err := config.Worker.Beat(ctx); err != nil {
		return nil, err
	}
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	ticks := startTicks(config, client)
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		ticks.stop()
		return nil, fmt.Errorf("start to work: %w", err)
	}
	return &Process{client: client, worker: config.Worker, ticks: ticks}, nil
}

// Stop takes no new jobs, lets calls under way finish within the patience, hands over
// what is left, and says goodbye. Beats go on until then.
func (p *Process) Stop(ctx context.Context) error {
	p.worker.Drain()
	stopped := p.client.Stop(ctx)
	p.ticks.stop()
	if err := p.worker.Retire(ctx); err != nil {
		return err
	}
	return stopped
}

// Abandon lets go of everything at once, without a goodbye, as the death of the process
// would: no beat tells that the worker has stopped, and what it is at stays open until its
// lease has run out. Whoever calls it has cut the worker's database off before, so that
// nothing it still does counts. It returns at once.
func (p *Process) Abandon(ctx context.Context) {
	p.ticks.cancel()
	go func() { _ = p.client.StopAndCancel(context.WithoutCancel(ctx)) }() // fails, since the database is gone
}
