//go:build unix

package localdb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The first try to start Postgres again is made at once, since the program's pools
// are waiting. Further ones wait, twice as long each time up to a bound: the cause
// may go away by itself (a full disk is cleared, a port is given back). A server
// that has run for steadyAfter begins afresh.
const (
	firstPause  = 100 * time.Millisecond
	longPause   = 5 * time.Second
	steadyAfter = time.Minute
)

// supervise keeps Postgres running until Stop, then stops it.
func (s *Server) supervise(pm *child) {
	defer close(s.done)
	var pause time.Duration
	for pm != nil {
		since := time.Now()
		select {
		case <-s.stopping.Done():
			s.shutDown(pm)
			return
		case <-pm.exited:
		}
		s.log.Warn("Postgres ended and is started again", "how", pm.err, "log", s.home.log())
		if time.Since(since) > steadyAfter {
			pause = 0
		}
		pm, pause = s.startAgain(pause)
	}
}

// startAgain tries until Postgres runs and returns it with the pause to take before
// any further try; no child means that Stop was called.
func (s *Server) startAgain(pause time.Duration) (*child, time.Duration) {
	for {
		if !s.pause(pause) {
			return nil, 0
		}
		pause = min(max(2*pause, firstPause), longPause)
		pm, err := s.startOnce()
		if err == nil {
			return pm, pause
		}
		if s.stopping.Err() == nil {
			s.log.Error("Postgres could not be started again", "error", err, "next_try_in", pause)
		}
	}
}

// pause waits; false means that Stop was called.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping.Done():
	}
	return s.stopping.Err() == nil
}

// startOnce keeps the port, since the program's pools know no other.
func (s *Server) startOnce() (*child, error) {
	if err := s.clear(s.stopping); err != nil {
		return nil, err
	}
	pm, err := s.home.launch(s.stopping, s.binaries, s.port, s.settings)
	if errors.Is(err, errPortTaken) {
		return nil, fmt.Errorf("another program took port %d on 127.0.0.1: end it, or start tollgate again", s.port)
	}
	return pm, err
}

// shutDown stops Postgres within the bounds and leaves none of its sessions.
func (s *Server) shutDown(pm *child) {
	if endChild(s.stopCtx, pm, stopPatience) {
		return
	}
	s.log.Warn("Postgres did not stop in time and was ended by force; the next start repairs its data")
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience.quit)
	defer cancel()
	_, s.stopErr = s.home.clearLeftover(ctx)
}
