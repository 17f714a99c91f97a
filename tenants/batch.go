package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Batch is a list of statements that are sent together and take effect together or
// not at all. Rooms add statements to one batch, so that a step's end, its money and
// the next step's begin are one commit. A statement that must meet exactly one row
// says so by calling require_one; otherwise the whole batch is void, and IsLostRace
// tells.
type Batch struct {
	pgx.Batch
	// ByKey says that every statement finds its rows by their keys. Each connection
	// then plans a statement once and for all, with indexes, however few rows a table
	// has by that time: planning costs as much as the work itself.
	ByKey bool
	// Unhurried says that the commit need not wait for the disk: what a crash of the server
	// undoes, it undoes with all that was built on it, and is done again.
	Unhurried bool
}

// Guarded adds a data-changing statement that must change exactly one row. change must
// end in RETURNING.
func (b *Batch) Guarded(change string, args ...any) {
	b.Queue(`WITH hit AS (`+change+`) SELECT require_one((SELECT count(*) FROM hit))`, args...)
}

// Send runs the batch for one tenant in a transaction of its own, in one round trip.
func (db *DB) Send(ctx context.Context, tenant ID, b *Batch) error {
	if tenant.IsZero() {
		return errors.New("a batch needs a tenant")
	}
	return retried(ctx, func() error {
		all := &pgx.Batch{}
		all.Queue(`SELECT `+db.binding()+b.planning(), tenant.String())
		all.QueuedQueries = append(all.QueuedQueries, b.unsent()...)
		conn, err := acquired(ctx, db.app)
		if err != nil {
			return fmt.Errorf("commit a batch: %w", err)
		}
		defer conn.Release()
		if err := conn.SendBatch(ctx, all).Close(); err != nil {
			return fmt.Errorf("commit a batch: %w", err)
		}
		return nil
	})
}

// planning says how statements are planned, and how the transaction is committed.
func (b *Batch) planning() string {
	settings := ""
	if b.ByKey {
		settings += `, ` + byKey
	}
	if b.Unhurried {
		settings += `, set_config('synchronous_commit', 'off', true)`
	}
	return settings
}

const byKey = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// Send runs the batch inside the open transaction. How it is planned holds for the rest of
// the transaction.
func (tx Tx) Send(ctx context.Context, b *Batch) error {
	all := &pgx.Batch{}
	if b.ByKey {
		all.Queue(`SELECT ` + byKey)
	}
	all.QueuedQueries = append(all.QueuedQueries, b.unsent()...)
	if err := tx.SendBatch(ctx, all).Close(); err != nil {
		return fmt.Errorf("send a batch: %w", err)
	}
	return nil
}

// unsent copies the statements. pgx notes in each statement how the connection that it
// was sent on prepared it, so the same one cannot be sent on another connection.
func (b *Batch) unsent() []*pgx.QueuedQuery {
	copies := make([]*pgx.QueuedQuery, 0, b.Len())
	for _, query := range b.QueuedQueries {
		one := *query
		copies = append(copies, &one)
	}
	return copies
}
