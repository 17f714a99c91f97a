package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ErrOtherEvent tells that the sender's number belongs to an event that was sent before
// with another key or other data.
var ErrOtherEvent = errors.New("the sender's number belongs to another event")

// Sent is an event that is on record.
type Sent struct {
	Event  Event
	Before bool // an earlier event of the name has the sender's number; nothing was changed
	Served int  // runs that went on at once
	More   bool // further runs wait for it, and go on within seconds
}

// How many waits one transaction serves: few in the sender's own, so that sending stays
// short, and more in each of those that serve the rest.
const (
	servedAtOnce = 50
	servedByTick = 200
)

// SendEvent puts an event on record and sends the runs on that wait for it. Where very
// many wait, only the first go on in this transaction and the rest by SpreadEvents. The
// errors for people are *BadEvent, *expr.BadJSON and ErrOtherEvent. It must come first
// in a transaction, or after nothing but reads: its lock comes before all others.
func (e *Engine) SendEvent(ctx context.Context, tx tenants.Tx, event Event) (Sent, error) {
	event, err := event.clean()
	if err != nil {
		return Sent{}, err
	}
	if event.ID.IsZero() {
		event.ID = tenants.NewID[Event]()
	}
	sent, err := e.record(ctx, tx, event)
	if errors.Is(err, pgx.ErrNoRows) {
		return sentBefore(ctx, tx, event)
	}
	if err != nil {
		return Sent{}, fmt.Errorf("record an event: %w", err)
	}
	if sent.Served > 0 {
		tx.AfterCommit(e.nudge)
	}
	if sent.More = sent.Served == servedAtOnce; !sent.More {
		return sent, nil
	}
	_, err = tx.Exec(ctx, `UPDATE events SET spreading = true WHERE tenant_id = $1 AND id = $2`, tx.Tenant, event.ID)
	if err != nil {
		return sent, fmt.Errorf("note that an event spreads: %w", err)
	}
	return sent, nil
}

// record takes the lock, writes the event, and sends on the first runs that wait, in one
// round trip. pgx.ErrNoRows tells that the sender's number is taken.
func (e *Engine) record(ctx context.Context, tx tenants.Tx, event Event) (Sent, error) {
	sent := Sent{Event: event}
	key := eventKey{event.Name, event.Key}
	batch := &tenants.Batch{ByKey: true}
	batch.Queue(lockEvents, key.lock(tx.Tenant))
	batch.Queue(`
		INSERT INTO events (tenant_id, id, name, key, data, sent_at, sender, sender_id)
		VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6, $7)
		ON CONFLICT (tenant_id, name, sender_id) WHERE sender_id <> '' DO NOTHING RETURNING sent_at`,
		tx.Tenant, event.ID, event.Name, event.Key, event.Data, event.Sender, event.SenderID).
		QueryRow(func(row pgx.Row) error { return row.Scan(&sent.Event.SentAt) })
	batch.Queue(takeByKey, tx.Tenant, newIDs[slice](servedAtOnce), servedAtOnce, key.name, key.key).
		QueryRow(func(row pgx.Row) error { return row.Scan(&sent.Served) })
	return sent, tx.Send(ctx, batch)
}

// sentBefore is the event that has the sender's number already.
func sentBefore(ctx context.Context, tx tenants.Tx, again Event) (Sent, error) {
	first := Event{Name: again.Name, SenderID: again.SenderID}
	err := tx.QueryRow(ctx, `
		SELECT id, key, data, sent_at, sender FROM events WHERE tenant_id = $1 AND name = $2 AND sender_id = $3`,
		tx.Tenant, again.Name, again.SenderID).Scan(&first.ID, &first.Key, &first.Data, &first.SentAt, &first.Sender)
	if err != nil {
		return Sent{}, fmt.Errorf("read an event that was sent before: %w", err)
	}
	if first.Key != again.Key || string(first.Data) != string(again.Data) {
		return Sent{Event: first, Before: true}, ErrOtherEvent
	}
	return Sent{Event: first, Before: true}, nil
}

// spreading is an event that more runs wait for than its own transaction served.
type spreadingEvent struct {
	Tenant tenants.ID
	ID     EventID
	Name   string
	Key    string
}

// SpreadEvents sends on the runs that an event's own transaction left waiting, so many
// in each transaction, and returns how many those were. It runs in every worker twice a
// second; what one leaves undone the next finds.
func (e *Engine) SpreadEvents(ctx context.Context) (int, error) {
	var spreading []spreadingEvent
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT tenant_id, id, name, key FROM events WHERE spreading ORDER BY tenant_id, id LIMIT 100`)
		var err error
		spreading, err = pgx.CollectRows(rows, pgx.RowToStructByPos[spreadingEvent])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for events that spread: %w", err)
	}
	served := 0
	_, err = each(spreading, "spread an event", func(one spreadingEvent) error {
		for {
			n, err := e.spread(ctx, one)
			served += n
			if n == 0 || err != nil {
				return err
			}
		}
	})
	return served, err
}

// spread serves the next of those that wait; once nobody does, the event has spread.
func (e *Engine) spread(ctx context.Context, one spreadingEvent) (int, error) {
	served := 0
	err := e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		key := eventKey{one.Name, one.Key}
		if _, err := tx.Exec(ctx, lockEvents, key.lock(tx.Tenant)); err != nil {
			return err
		}
		var err error
		if served, err = e.takeEvents(ctx, tx, key, servedByTick); served > 0 || err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE events SET spreading = false WHERE tenant_id = $1 AND id = $2 AND spreading`, one.Tenant, one.ID)
		return err
	})
	return served, err
}
