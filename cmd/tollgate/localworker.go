package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/app/engine"
	"tollgate/jobs"
)

// localWorker is the worker of the local mode. It has rooms and connections of its own, as
// a process of its own would, so that it can be cut off from the database in the middle of
// its work and followed by another.
type localWorker struct {
	wire   func(context.Context, *slog.Logger) (*rooms, error)
	slices int
	drain  time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	rooms   *rooms
	silence func() // makes its log say nothing more
	process *jobs.Process
}

// start makes a worker and lets it work.
func (l *localWorker) start(ctx context.Context) (*engine.Worker, error) {
	until := &untilDead{Handler: l.log.Handler()}
	r, err := l.wire(ctx, slog.New(until))
	if err != nil {
		return nil, err
	}
	worker, process, err := r.startWork(ctx, l.slices, l.drain)
	if err != nil {
		r.db.Close()
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rooms, l.process, l.silence = r, process, func() { until.dead.Store(true) }
	return worker, nil
}

// Kill drops the worker without a goodbye and begins another. What the database sees is
// what it sees of a killed process: the connections are gone, no beat comes, and what was
// under way stays open until the lease has run out.
func (l *localWorker) Kill(ctx context.Context) error {
	l.mu.Lock()
	dead, process, silence := l.rooms, l.process, l.silence
	l.rooms, l.process = nil, nil
	l.mu.Unlock()
	if dead == nil {
		return nil // another is on its way already
	}
	silence()
	dead.db.CutOff()
	process.Abandon(ctx)
	_, err := l.start(context.WithoutCancel(ctx))
	return err
}

// stop ends the work in good order.
func (l *localWorker) stop(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms == nil {
		return nil
	}
	defer l.rooms.db.Close()
	return l.process.Stop(ctx)
}

// untilDead is a worker's log. The dead say nothing: that their database is gone is no news.
type untilDead struct {
	slog.Handler
	dead atomic.Bool
}

// Enabled implements slog.Handler.
func (u *untilDead) Enabled(ctx context.Context, level slog.Level) bool {
	return !u.dead.Load() && u.Handler.Enabled(ctx, level)
}
