package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ErrNoEvent tells that the tenant has no such event, or no longer.
var ErrNoEvent = errors.New("no such event")

// EventLine is an event as lists show it, without its data.
type EventLine struct {
	Event
	Uses []EventUse // the first few, in the order in which they were served
	Used int        // how many runs used it, up to MaxCounted + 1
	More bool       // further runs wait for it and go on within seconds
}

// EventUse is a run that used an event.
type EventUse struct {
	Run      RunID
	Name     string
	Pipeline string
	Number   int64
	StepRun  StepRunID
	At       time.Time
}

// EventFilter chooses events for a list. Zero fields do not filter.
type EventFilter struct {
	Name   string
	Before EventID // events sent before this one, for the next page
	Limit  int     // 0 means 50; at most 200
}

// countUses counts the runs that used event e, up to one more than MaxCounted.
var countUses = fmt.Sprintf(`(SELECT count(*) FROM (
	SELECT 1 FROM event_uses u WHERE u.tenant_id = e.tenant_id AND u.event_id = e.id LIMIT %d) used)`, MaxCounted+1)

// usesListed is how many runs a list names for each event.
const usesListed = 3

// ListEvents reads events, newest first, with the first runs that used each.
func ListEvents(ctx context.Context, tx tenants.Tx, filter EventFilter) ([]EventLine, error) {
	limit := filter.Limit
	if limit <= 0 || limit > 200 {
		limit = 50
	}
	rows, _ := tx.Query(ctx, `
		SELECT e.id, e.name, e.key, e.sent_at, e.sender, e.sender_id, e.spreading,
			`+countUses+`
		FROM events e
		WHERE e.tenant_id = $1 AND ($2 = '' OR e.name = $2) AND ($3::uuid IS NULL OR e.id < $3)
		ORDER BY e.id DESC LIMIT $4`, tx.Tenant, filter.Name, filter.Before, limit)
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (EventLine, error) {
		var l EventLine
		return l, row.Scan(&l.ID, &l.Name, &l.Key, &l.SentAt, &l.Sender, &l.SenderID, &l.More, &l.Used)
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	for i := range lines {
		if lines[i].Used == 0 {
			continue
		}
		if lines[i].Uses, err = usesOf(ctx, tx, lines[i].ID, usesListed); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// MaxUses is how many runs the page of one event names.
const MaxUses = 100

// EventByID reads an event with its data and the first MaxUses runs that used it. It
// returns ErrNoEvent where the tenant has none of that id.
func EventByID(ctx context.Context, tx tenants.Tx, id EventID) (EventLine, error) {
	l := EventLine{Event: Event{ID: id}}
	err := tx.QueryRow(ctx, `
		SELECT e.name, e.key, e.data, e.sent_at, e.sender, e.sender_id, e.spreading,
			`+countUses+`
		FROM events e WHERE e.tenant_id = $1 AND e.id = $2`, tx.Tenant, id).
		Scan(&l.Name, &l.Key, &l.Data, &l.SentAt, &l.Sender, &l.SenderID, &l.More, &l.Used)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, ErrNoEvent
	}
	if err != nil {
		return l, fmt.Errorf("read an event: %w", err)
	}
	l.Uses, err = usesOf(ctx, tx, id, MaxUses)
	return l, err
}

func usesOf(ctx context.Context, tx tenants.Tx, id EventID, most int) ([]EventUse, error) {
	rows, _ := tx.Query(ctx, `
		SELECT u.run_id, r.name, p.name, r.number, u.step_run_id, u.used_at
		FROM event_uses u
		JOIN runs r ON r.tenant_id = u.tenant_id AND r.id = u.run_id
		JOIN pipelines p ON p.tenant_id = r.tenant_id AND p.id = r.pipeline_id
		WHERE u.tenant_id = $1 AND u.event_id = $2 ORDER BY u.run_id LIMIT $3`, tx.Tenant, id, most)
	uses, err := pgx.CollectRows(rows, pgx.RowToStructByPos[EventUse])
	if err != nil {
		return nil, fmt.Errorf("read who used an event: %w", err)
	}
	return uses, nil
}

// namesListed is how many names of events are offered.
const namesListed = 50

// EventNames lists the names of events that runs wait for or that were sent, by name.
func EventNames(ctx context.Context, tx tenants.Tx) ([]string, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE sent AS (
			(SELECT min(name) AS name FROM events WHERE tenant_id = $1)
			UNION ALL
			SELECT (SELECT min(e.name) FROM events e WHERE e.tenant_id = $1 AND e.name > sent.name) FROM sent WHERE sent.name IS NOT NULL
		), awaited AS (
			(SELECT min(event_name) AS name FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind = 'event')
			UNION ALL
			SELECT (SELECT min(w.event_name) FROM waits w WHERE w.tenant_id = $1 AND w.state = 'open' AND w.kind = 'event' AND w.event_name > awaited.name)
			FROM awaited WHERE awaited.name IS NOT NULL
		)
		SELECT name FROM (SELECT name FROM sent UNION SELECT name FROM awaited) names WHERE name IS NOT NULL ORDER BY name LIMIT $2`,
		tx.Tenant, namesListed)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the names of events: %w", err)
	}
	return names, nil
}
