package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/tenants"
)

// How often what a model writes is put where people see it, how much of it at most, in
// bytes (its end, where it is longer), and after how long a text that nobody took away is
// forgotten.
const (
	liveEvery  = 300 * time.Millisecond
	liveMost   = 8 << 10
	liveForget = 15 * time.Minute
	liveLimit  = 5 * time.Second // for one write
)

// liveText carries what a model writes from a call under way to the pages that show it.
// The call never waits for the database: pieces are collected, and written by a goroutine
// that begins with the first one. Trouble with writing is nobody's: the answer counts.
type liveText struct {
	db      *tenants.DB
	call    Call
	mu      sync.Mutex
	text    strings.Builder
	started bool
	stop    chan struct{}
}

func newLiveText(db *tenants.DB, call Call) *liveText {
	return &liveText{db: db, call: call, stop: make(chan struct{})}
}

// add takes a piece of the text.
func (l *liveText) add(piece string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(piece)
	if l.text.Len() > 4*liveMost {
		end := tail(l.text.String())
		l.text.Reset()
		l.text.WriteString(end)
	}
	if !l.started {
		l.started = true
		go l.run()
	}
}

// end takes the text away, without keeping anybody waiting.
func (l *liveText) end() { close(l.stop) }

func (l *liveText) run() {
	every := time.NewTicker(liveEvery)
	defer every.Stop()
	shown := ""
	for {
		select {
		case <-l.stop:
			if shown != "" {
				l.send(`DELETE FROM live_texts WHERE tenant_id = $1 AND step_run_id = $2 AND attempt = $3`, l.call.Tenant, l.call.StepRun, l.call.Attempt)
			}
			return
		case <-every.C:
		}
		l.mu.Lock()
		text := tail(l.text.String())
		l.mu.Unlock()
		if text == shown {
			continue
		}
		shown = text
		l.send(`
			INSERT INTO live_texts AS t (tenant_id, step_run_id, run_id, attempt, text) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant_id, step_run_id) DO UPDATE SET attempt = $4, text = $5, written_at = now(), changed = pg_current_xact_id()
			WHERE t.attempt <= $4`, l.call.Tenant, l.call.StepRun, l.call.Run, l.call.Attempt, expr.Plain(text))
	}
}

func (l *liveText) send(query string, args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), liveLimit)
	defer cancel()
	_ = l.db.InTx(ctx, l.call.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
}

// tail is the end of a text, as much as is shown, from a whole character on.
func tail(text string) string {
	if len(text) <= liveMost {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-liveMost:], "")
}

// LiveText is what a model has written so far in the current try of a step; empty where
// none is at work, or has written nothing yet. A long text has its end only.
func LiveText(ctx context.Context, tx tenants.Tx, step StepRunID) (string, error) {
	var text string
	err := tx.QueryRow(ctx, `
		SELECT l.text FROM live_texts l JOIN step_runs s ON s.tenant_id = l.tenant_id AND s.id = l.step_run_id
		WHERE l.tenant_id = $1 AND l.step_run_id = $2 AND s.state = 'running' AND s.attempt = l.attempt`, tx.Tenant, step).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read what a model is writing: %w", err)
	}
	return text, nil
}

// ForgetLiveTexts removes texts that a worker left behind which died.
func (e *Engine) ForgetLiveTexts(ctx context.Context, tx tenants.SystemTx) error {
	_, err := tx.Exec(ctx, `DELETE FROM live_texts WHERE written_at < now() - $1::interval`, liveForget)
	if err != nil {
		return fmt.Errorf("forget what models were writing: %w", err)
	}
	return nil
}
