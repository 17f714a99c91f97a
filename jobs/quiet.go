package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quietFor is how long the same words of River's log are said once only.
const quietFor = 5 * time.Second

// quiet is a log that does not repeat itself: while the database is away, River's
// producers fail many times a second, always in the same words.
type quiet struct {
	slog.Handler
	said *saidBefore
}

type saidBefore struct {
	mu   sync.Mutex
	last map[string]said
}

// said is when words were said last, and how often they were swallowed since.
type said struct {
	at        time.Time
	swallowed int
}

func newQuiet(log *slog.Logger) *slog.Logger {
	return slog.New(quiet{log.Handler(), &saidBefore{last: map[string]said{}}})
}

// Handle says what was not said lately, and how often it was not said.
func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	swallowed, speak := q.said.before(record.Message, record.Time)
	if !speak {
		return nil
	}
	if swallowed > 0 {
		record.AddAttrs(slog.Int("swallowed", swallowed))
	}
	return q.Handler.Handle(ctx, record)
}

// WithAttrs and WithGroup keep the memory: the words are what counts.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.said}
}

// WithGroup is WithAttrs for a group.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.said}
}

// before tells how often words were swallowed since they were said, and whether they may
// be said now. River has few messages, so the memory stays small.
func (s *saidBefore) before(words string, now time.Time) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[words]
	if now.Sub(last.at) < quietFor {
		last.swallowed++
		s.last[words] = last
		return 0, false
	}
	s.last[words] = said{at: now}
	return last.swallowed, true
}
