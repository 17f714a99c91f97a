package bench

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"
)

// chain is raw River: each step is a job that inserts the next and completes itself in
// one transaction, and keeps no record of its own.
type chain struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	clock  clock
	ended  atomic.Int64
}

// chainStep is one job of a chain.
type chainStep struct {
	Run  string `json:"run"`
	Step int    `json:"step"`
	Of   int    `json:"of"`
}

// Kind names the job.
func (chainStep) Kind() string { return "chain_step" }

const (
	chainConns   = 40
	chainWorkers = 100
	chainPause   = time.Millisecond
	chainPoll    = 50 * time.Millisecond
)

func newChain(t *testing.T, server string) *chain {
	t.Helper()
	c := &chain{pool: emptyDatabase(t, server, chainConns)}
	migrator, err := rivermigrate.New(riverpgxv5.New(c.pool), nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, &chainWorker{chain: c})
	c.client, err = river.NewClient(riverpgxv5.New(c.pool), &river.Config{
		FetchCooldown: chainPause, FetchPollInterval: chainPoll, JobTimeout: -1,
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: chainWorkers, FetchCooldown: chainPause, FetchPollInterval: chainPoll}},
		Workers: workers,
	})
	require.NoError(t, err)
	require.NoError(t, c.client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() { _ = c.client.StopAndCancel(context.Background()) })
	return c
}

// run starts runs of so many steps and waits for the last commit.
func (c *chain) run(t *testing.T, runs, steps int) took {
	t.Helper()
	c.ended.Store(0)
	return c.clock.time(t, work{
		runs: runs, steps: steps,
		start: func(ctx context.Context, name string) error {
			_, err := c.client.Insert(ctx, chainStep{Run: name, Of: steps}, nil)
			return err
		},
		open: func(context.Context) (int, error) { return runs - int(c.ended.Load()), nil },
	})
}

type chainWorker struct {
	river.WorkerDefaults[chainStep]
	chain *chain
}

// Work does the step, which is nothing, and hands on.
func (w *chainWorker) Work(ctx context.Context, job *river.Job[chainStep]) error {
	w.chain.clock.step()
	err := pgx.BeginFunc(ctx, w.chain.pool, func(tx pgx.Tx) error {
		if next := (chainStep{job.Args.Run, job.Args.Step + 1, job.Args.Of}); next.Step < next.Of {
			if _, err := w.chain.client.InsertTx(ctx, tx, next, nil); err != nil {
				return err
			}
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil && job.Args.Step+1 == job.Args.Of {
		w.chain.ended.Add(1)
	}
	return err
}
