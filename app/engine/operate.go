package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// WorkerLine is one working process, as whoever runs the installation sees it.
type WorkerLine struct {
	ID        WorkerID
	Name      string
	Semantics int
	StartedAt time.Time
	BeatAt    time.Time
	StoppedAt *time.Time // when it said goodbye
	Silent    bool       // it was not heard for as long as leases last
	Slots     int        // slices that it drives at most
	Running   int        // slices that it drives
}

// Alive tells whether the process may still be given work.
func (w WorkerLine) Alive() bool { return w.StoppedAt == nil && !w.Silent }

// Workers lists the processes that were heard of lately, the living first.
func Workers(ctx context.Context, tx tenants.SystemTx) ([]WorkerLine, error) {
	rows, _ := tx.Query(ctx, `
		SELECT w.id, w.name, w.semantics, w.started_at, w.beat_at, w.stopped_at, w.beat_at < clock_timestamp() - $1::interval AS silent, w.slots,
			(SELECT count(*) FROM slices s WHERE s.worker_id = w.id AND s.state = 'running')
		FROM workers w
		ORDER BY w.stopped_at IS NOT NULL, silent, w.name, w.id LIMIT 200`, leaseTime)
	workers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[WorkerLine])
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return workers, nil
}

// QueueLine is how much of one tenant's work waits, is on its way, and is under way. It
// has no data of the tenant but its name.
type QueueLine struct {
	Tenant     tenants.ID
	Name       string
	Ready      int        // slices that wait for a slot
	Oldest     *time.Time // since when the first of them waits
	Dispatched int        // have a slot; a worker fetches them
	Running    int
	Paused     int
	Quota      int // slots that it may have at once
}

// QueueLines lists the tenants that have slices, those that wait most first.
func QueueLines(ctx context.Context, tx tenants.SystemTx) ([]QueueLine, error) {
	rows, _ := tx.Query(ctx, `
		SELECT t.id, t.name,
			count(*) FILTER (WHERE s.state = 'ready') AS ready, min(s.created_at) FILTER (WHERE s.state = 'ready'),
			count(*) FILTER (WHERE s.state = 'dispatched'), count(*) FILTER (WHERE s.state = 'running') AS running,
			count(*) FILTER (WHERE s.state = 'paused'), coalesce(max(q.parallel_slices), $1)
		FROM slices s JOIN tenants t ON t.id = s.tenant_id LEFT JOIN tenant_quotas q ON q.tenant_id = t.id
		GROUP BY t.id, t.name ORDER BY ready DESC, running DESC, t.name, t.id LIMIT 100`, tenants.DefaultQuotas.ParallelSlices)
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[QueueLine])
	if err != nil {
		return nil, fmt.Errorf("list the queues of tenants: %w", err)
	}
	return lines, nil
}
