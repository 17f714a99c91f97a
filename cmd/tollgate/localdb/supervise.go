//go:build unix

package localdb

import (
	"context"
	"time"
)

// Waiting times between tries to start Postgres again: short at first, since the
// program's pools are waiting; bounded, since the cause may go away by itself.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// supervise keeps Postgres running until Stop, then stops it.
func (s *Server) supervise(pm *child) {
	defer close(s.done)
	for pm != nil {
		select {
		case <-s.stopping.Done():
			s.shutDown(pm)
			return
		case <-pm.exited:
			s.log.Warn("Postgres ended and is started again", "how", pm.err, "log", s.home.log())
			pm = s.startAgain()
		}
	}
}

// startAgain tries until Postgres runs; nil means that Stop was called first.
func (s *Server) startAgain() *child {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		pm, err := s.startOnce()
		if s.stopping.Err() != nil {
			if pm != nil {
				s.shutDown(pm)
			}
			return nil
		}
		if err == nil {
			return pm
		}
		s.log.Error("Postgres could not be started again", "error", err, "next_try_in", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.stopping.Done():
			timer.Stop()
			return nil
		}
	}
}

// startOnce keeps the port, since the program's pools know no other.
func (s *Server) startOnce() (*child, error) {
	if err := s.clear(s.stopping); err != nil {
		return nil, err
	}
	return s.home.launch(s.stopping, s.binaries, s.port, s.settings)
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
