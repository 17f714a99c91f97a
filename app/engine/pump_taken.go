package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// taken is who has the slots. A few slices more than workers can drive get one, so that
// a worker that becomes free finds its next at once; until then they wait in River's
// queue.
type taken struct {
	slots   int                // of all workers that live
	running map[tenants.ID]int // slices that a worker drives
	queued  map[tenants.ID]int // slices that no worker has fetched yet
}

// takenQuery counts by tenant.
const takenQuery = `
	SELECT s.tenant_id, count(*) FILTER (WHERE s.state = 'running')::int, count(*) FILTER (WHERE s.state = 'dispatched')::int,
		(SELECT coalesce(sum(slots), 0)::int FROM workers
			WHERE stopped_at IS NULL AND greatest(beat_at, pg_postmaster_start_time()) > clock_timestamp() - $1::interval)
	FROM slices s WHERE s.state IN ('dispatched', 'running') GROUP BY s.tenant_id`

// read takes the rows of takenQuery.
func (k *taken) read(rows pgx.Rows) error {
	k.running, k.queued = map[tenants.ID]int{}, map[tenants.ID]int{}
	var tenant tenants.ID
	var running, queued int
	_, err := pgx.ForEachRow(rows, []any{&tenant, &running, &queued, &k.slots}, func() error {
		k.running[tenant], k.queued[tenant] = running, queued
		return nil
	})
	return err
}

// add counts slices that were just given a slot.
func (k *taken) add(chosen []ask) {
	for _, a := range chosen {
		k.queued[a.Tenant]++
	}
}

// waiting are the slices that have a slot and wait for a worker, while every worker is
// busy; nobody else would make room for them. Where no worker is known to live, no slot
// that is given back would be fetched any sooner.
func (k taken) waiting() map[tenants.ID]int {
	free := k.slots
	for _, n := range k.running {
		free -= n
	}
	if free > 0 || k.slots == 0 {
		return nil
	}
	return k.queued
}

// anythingWaits is the look of an idle pump: an entry each of two small indexes. A slice
// that no worker has fetched for a moment waits as one does that has no slot.
func (e *Engine) anythingWaits(ctx context.Context) (bool, error) {
	var anything bool
	err := e.DB.SystemLook(ctx, `
		SELECT EXISTS (SELECT 1 FROM slices WHERE state = 'ready') OR EXISTS (
			SELECT 1 FROM slices WHERE state = 'dispatched' AND dispatched_at < clock_timestamp() - $1::interval)`, PumpEvery).Scan(&anything)
	if err != nil {
		return false, fmt.Errorf("look for slices that wait: %w", err)
	}
	if !anything {
		e.waiting.Store(&waiters{})
	}
	return anything, nil
}
