package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// OldTransaction is one that has been open for long. While it is, no dead row that is
// younger can be cleaned up; the queue's index fills with them, and finding the next job
// takes longer and longer.
type OldTransaction struct {
	PID         int32 // of the server's process that holds it
	User        string
	Application string
	Kind        string    // of the server's process, such as "client backend"
	Since       time.Time // when this worker first saw it
}

// holder names a transaction, or a snapshot that one process keeps.
type holder struct {
	PID int32
	At  string // its number, or the oldest that its snapshot needs
}

// oldAfter is how long a transaction may be open before somebody is told, and told again.
const oldAfter = 5 * time.Minute

// WatchTransactions tells of the transactions that have been open for long, by name, so
// that an operator can end them. Ours never are: the server ends those that stand still.
func (w *Worker) WatchTransactions(ctx context.Context) error {
	old, err := w.OldTransactions(ctx, oldAfter)
	for _, one := range old {
		w.Log.Error("a transaction has been open for long and keeps old rows from being cleaned up; end it with pg_terminate_backend",
			slog.Int("pid", int(one.PID)), slog.String("user", one.User), slog.String("application", one.Application),
			slog.String("kind", one.Kind), slog.Time("seen_since", one.Since))
	}
	return err
}

// OldTransactions lists those that this worker has seen for at least so long. The server
// tells everybody which transaction a process holds, but only the privileged since when;
// so the time counts from the first look.
func (w *Worker) OldTransactions(ctx context.Context, after time.Duration) ([]OldTransaction, error) {
	var open []heldOpen
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `
			SELECT pid, coalesce(backend_xid, backend_xmin)::text, coalesce(usename, '')::text, coalesce(application_name, ''), coalesce(backend_type, '')
			FROM pg_stat_activity
			WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid() AND coalesce(backend_xid, backend_xmin) IS NOT NULL
			ORDER BY pid`)
		var err error
		open, err = pgx.CollectRows(rows, pgx.RowToStructByPos[heldOpen])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for old transactions: %w", err)
	}
	return w.seenFor(after, open), nil
}

// heldOpen is one as the server tells of it.
type heldOpen struct {
	PID                     int32
	At                      string
	User, Application, Kind string
}

// seenFor keeps what was seen before, forgets what is over, and returns what is old.
func (w *Worker) seenFor(after time.Duration, open []heldOpen) []OldTransaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, seen := w.now(), make(map[holder]time.Time, len(open))
	var old []OldTransaction
	for _, one := range open {
		name := holder{one.PID, one.At}
		since, known := w.transactions[name]
		if !known {
			since = now
		}
		seen[name] = since
		if now.Sub(since) >= after {
			old = append(old, OldTransaction{one.PID, one.User, one.Application, one.Kind, since})
		}
	}
	w.transactions = seen
	return old
}
