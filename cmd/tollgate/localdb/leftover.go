//go:build unix

package localdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// clearLeftover stops every process that an earlier owner of the data left behind
// and removes its pid file. We hold the folder's lock, so whatever still runs there
// has lost its owner.
//
// Postgres itself would judge by the pid file alone and be wrong three ways: a dead
// server that nobody reaped still has its pid; a stranger may have been given the
// pid; and sessions of a dead server may go on writing while the pid is free.
func (h *home) clearLeftover(ctx context.Context) (bool, error) {
	running, err := h.processes()
	if err != nil {
		return false, fmt.Errorf("look for a left-over Postgres: %w", err)
	}
	found := len(running) > 0
	steps := []struct {
		signal func([]int) map[int]syscall.Signal
		wait   time.Duration
	}{
		{h.gently, 10 * time.Second},
		{all(syscall.SIGQUIT), 5 * time.Second},
		{all(syscall.SIGKILL), 5 * time.Second},
	}
	for _, step := range steps {
		if len(running) == 0 {
			break
		}
		for pid, sig := range step.signal(running) {
			_ = syscall.Kill(pid, sig) // it may have ended meanwhile
		}
		if running, err = h.awaitGone(ctx, step.wait); err != nil {
			return found, err
		}
	}
	if len(running) > 0 {
		return found, fmt.Errorf("a left-over Postgres (process %d) in %s does not end: stop it, then start again", running[0], h.data())
	}
	if err := os.Remove(h.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, unusable(h.pidFile(), err)
	}
	return found, nil
}

// gently asks a living server for a fast shutdown, which ends its sessions too.
// Sessions without a server get no such word; for them SIGINT would only cancel a
// query, so they are told to quit.
func (h *home) gently(running []int) map[int]syscall.Signal {
	if pid, err := h.readPIDFile(); err == nil && slices.Contains(running, pid.pid) {
		return map[int]syscall.Signal{pid.pid: syscall.SIGINT}
	}
	return all(syscall.SIGQUIT)(running)
}

func all(sig syscall.Signal) func([]int) map[int]syscall.Signal {
	return func(running []int) map[int]syscall.Signal {
		signals := make(map[int]syscall.Signal, len(running))
		for _, pid := range running {
			signals[pid] = sig
		}
		return signals
	}
}

// awaitGone polls until no process is left or the time is up; it returns the rest.
func (h *home) awaitGone(ctx context.Context, bound time.Duration) ([]int, error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	deadline := time.Now().Add(bound)
	for {
		running, err := h.processes()
		if err != nil {
			return nil, fmt.Errorf("look for a left-over Postgres: %w", err)
		}
		if len(running) == 0 || time.Now().After(deadline) {
			return running, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
