package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// ticker runs the ticks of a working process until it is stopped.
type ticker struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (t *ticker) stop() {
	t.cancel()
	t.done.Wait()
}

// How often each tick runs. A take-over comes at most a tick after the lease has run
// out, a timer at most a tick late.
const (
	reapEvery  = time.Second
	timerEvery = 500 * time.Millisecond
	watchEvery = 2 * time.Second
	capsEvery  = 3 * time.Second
	sweepEvery = 30 * time.Second
	tidyEvery  = 10 * time.Minute
	youngEvery = time.Second

	noticesEvery = 5 * time.Second
	hooksEvery   = time.Second
)

// tickLimit bounds one tick, so that a database that hangs cannot silence the others.
const tickLimit = 30 * time.Second

func startTicks(config Config, jobs *Client) *ticker {
	ctx, cancel := context.WithCancel(context.Background())
	t := &ticker{cancel: cancel}
	worker := config.Worker
	t.done.Go(func() { worker.Pump(ctx, engine.PumpEvery) })
	t.done.Go(func() { worker.RunReplays(ctx) })
	t.run(ctx, config.Log, "beat", engine.BeatEvery, worker.Beat)
	t.run(ctx, config.Log, "reap", reapEvery, counted(worker.Reap))
	t.run(ctx, config.Log, "timers", timerEvery, counted(worker.FireTimers))
	t.run(ctx, config.Log, "events", timerEvery, counted(worker.SpreadEvents))
	t.run(ctx, config.Log, "bulks", timerEvery, counted(worker.RunBulks))
	t.run(ctx, config.Log, "watch", watchEvery, sparing(func(ctx context.Context) error {
		_, err := worker.Watch(ctx)
		return err
	}))
	t.run(ctx, config.Log, "caps", capsEvery, counted(worker.ResumeFitting))
	t.run(ctx, config.Log, "mails", reapEvery, counted(func(ctx context.Context) (int, error) {
		return recoverMails(ctx, config, jobs)
	}))
	if config.Notices != nil {
		t.run(ctx, config.Log, "notices", noticesEvery, sparing(func(ctx context.Context) error {
			_, err := config.Notices.Look(ctx)
			return err
		}))
	}
	if config.Hooks != nil {
		t.run(ctx, config.Log, "webhooks", hooksEvery, counted(config.Hooks.Send))
	}
	t.run(ctx, config.Log, "holds", sweepEvery, func(ctx context.Context) error {
		_, err := ledger.ExpireHolds(ctx, config.DB)
		return err
	})
	t.run(ctx, config.Log, "cap alerts", sweepEvery, counted(func(ctx context.Context) (int, error) {
		return ledger.FindAlerts(ctx, config.DB)
	}))
	t.run(ctx, config.Log, "alert mails", capsEvery, counted(func(ctx context.Context) (int, error) {
		return tellAlerts(ctx, config.DB, config.Outbox)
	}))
	t.run(ctx, config.Log, "usage", tidyEvery, counted(func(ctx context.Context) (int, error) {
		return ledger.RollUsage(ctx, config.DB)
	}))
	t.run(ctx, config.Log, "young tables", youngEvery, counted(worker.AnalyzeYoung))
	t.run(ctx, config.Log, "sign-ins", tidyEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, tenants.SweepSignIns)
	})
	t.run(ctx, config.Log, "replaced provider keys", sweepEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, tenants.SweepOldProviderKeys)
	})
	t.run(ctx, config.Log, "rate limits", tidyEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, ledger.SweepRates)
	})
	t.run(ctx, config.Log, "old keys", tidyEvery, counted(worker.PruneKeys))
	t.run(ctx, config.Log, "old events", tidyEvery, counted(worker.PruneEvents))
	t.run(ctx, config.Log, "old results", tidyEvery, counted(worker.PruneResults))
	t.run(ctx, config.Log, "old live texts", tidyEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, worker.ForgetLiveTexts)
	})
	t.run(ctx, config.Log, "old transactions", sweepEvery, worker.WatchTransactions)
	t.run(ctx, config.Log, "workers", tidyEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, worker.ForgetWorkers)
	})
	t.run(ctx, config.Log, "findings", tidyEvery, func(ctx context.Context) error {
		return config.DB.InSystemTx(ctx, worker.ForgetFindings)
	})
	return t
}

func counted(tick func(context.Context) (int, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := tick(ctx)
		return err
	}
}

// A tick that looks at everything that is open rests after each look for so many times
// as long as that took, so that waiting stays free where very many wait.
const (
	restShare   = 200
	longestRest = time.Minute
)

func sparing(tick func(context.Context) error) func(context.Context) error {
	var rested time.Time
	return func(ctx context.Context) error {
		began := time.Now()
		if began.Before(rested) {
			return nil
		}
		err := tick(ctx)
		rested = began.Add(min(restShare*time.Since(began), longestRest))
		return err
	}
}

// run calls tick at once and then at every interval. An error is logged and tried again
// at the next.
func (t *ticker) run(ctx context.Context, log *slog.Logger, name string, every time.Duration, tick func(context.Context) error) {
	t.done.Go(func() {
		beat := time.NewTicker(every)
		defer beat.Stop()
		for {
			limited, cancel := context.WithTimeout(ctx, tickLimit)
			err := tick(limited)
			cancel()
			if err != nil && ctx.Err() == nil {
				log.Error("a tick failed", slog.String("tick", name), slog.String("error", err.Error()))
			}
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
		}
	})
}
