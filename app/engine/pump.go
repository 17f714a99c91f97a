package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"tollgate/tenants"
)

// PumpEvery is how often a working process looks for slices that nobody told it of.
const PumpEvery = 20 * time.Millisecond

// passLimit bounds one pass, so that a database that hangs is noticed.
const passLimit = 5 * time.Second

// nudge tells this process's pump that there may be something to do. It never waits.
func (e *Engine) nudge() {
	select {
	case e.nudges <- struct{}{}:
	default:
	}
}

// roomMade tells the pump that a slot has become free, where anybody waits for one.
func (e *Engine) roomMade() {
	if e.waiting.Load().any() {
		e.nudge()
	}
}

// Pump starts queued runs and gives ready slices their slots until ctx ends. A process
// that works looks every so often by itself; one that only serves pages, with every 0,
// when it is nudged.
func (e *Engine) Pump(ctx context.Context, every time.Duration) {
	var admitting sync.WaitGroup
	admitting.Go(func() { e.keepAdmitting(ctx, every > 0) })
	defer admitting.Wait()
	pace := newPace(every)
	defer pace.stop()
	for {
		nudged, on := pace.wait(ctx, e.nudges)
		if !on {
			return
		}
		given, err := e.pumpIfNeeded(ctx, nudged)
		if err != nil && ctx.Err() == nil {
			e.Log.Error("the pump failed", slog.String("error", err.Error()))
			rest(ctx)
		}
		pace.next(nudged || given > 0, e.waiting.Load().any())
	}
}

// restAfterTrouble spares a database that is away, and the log.
const restAfterTrouble = 500 * time.Millisecond

func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(restAfterTrouble):
	}
}

// pumpIfNeeded makes a pass where there is something to look at.
func (e *Engine) pumpIfNeeded(ctx context.Context, nudged bool) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	if !nudged {
		if anything, err := e.anythingWaits(ctx); !anything || err != nil {
			return 0, err
		}
	}
	return e.PumpOnce(ctx)
}

// PumpOnce makes one pass: it gives free slots to ready slices, and returns how many.
func (e *Engine) PumpOnce(ctx context.Context) (int, error) {
	var given allotment
	var held taken
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		var asks []ask
		var err error
		if asks, held, err = lookForAsks(ctx, tx); err != nil {
			return err
		}
		given = allot(asks)
		if len(given.chosen) == 0 && len(given.crowded) == 0 {
			return nil
		}
		return e.dispatch(ctx, tx, &given)
	})
	if err != nil {
		return 0, fmt.Errorf("pump: %w", err)
	}
	held.add(given.chosen)
	e.waiting.Store(newWaiters(given, held))
	return len(given.chosen), e.announce(ctx, given.queues())
}

// dispatch gives the chosen slices their slots and adds their jobs. A slice that went
// away or is locked by somebody is left out.
func (e *Engine) dispatch(ctx context.Context, tx tenants.SystemTx, given *allotment) error {
	if err := noteCrowded(ctx, tx, given.crowded); err != nil {
		return err
	}
	taken, err := takeSlots(ctx, tx, given.chosen)
	if err != nil || len(taken) == 0 {
		return err
	}
	given.chosen = taken
	params := make([]river.InsertManyParams, len(taken))
	for i, ask := range taken {
		if params[i], err = (DriveSlice{ask.Tenant, ask.Slice, ask.Fence}).params(ask.Semantics, jobPriority(ask.Flight)); err != nil {
			return err
		}
	}
	if _, err := e.Jobs.InsertManyTx(ctx, tx.Tx, params); err != nil {
		return fmt.Errorf("insert the jobs of slices: %w", err)
	}
	return nil
}

// jobPriority is the place in River's queue, 1 to 4, of a job whose tenant has so many
// slots already. The few jobs that wait there for a worker must not be in the way of a
// tenant that has hardly any.
func jobPriority(flight int) int {
	priority := 1
	for ; priority < 4 && flight > 0; flight /= 4 {
		priority++
	}
	return priority
}

// takeSlots marks slices as dispatched, and their tenants as served, in their order.
func takeSlots(ctx context.Context, tx tenants.SystemTx, chosen []ask) ([]ask, error) {
	owners, ids := names(chosen)
	rows, _ := tx.Query(ctx, `
		WITH wanted AS (
			SELECT * FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY w (tenant_id, id, place)
		), locked AS (
			SELECT s.tenant_id, s.id, w.place FROM wanted w JOIN slices s ON s.tenant_id = w.tenant_id AND s.id = w.id
			WHERE s.state = 'ready' FOR UPDATE OF s SKIP LOCKED
		), taken AS (
			UPDATE slices s SET state = 'dispatched', crowded = false, dispatched_at = clock_timestamp()
			FROM locked l WHERE s.tenant_id = l.tenant_id AND s.id = l.id
			RETURNING s.tenant_id, s.fence, s.semantics, l.place
		), served AS (
			INSERT INTO tenant_turns (tenant_id, served_at)
			SELECT tenant_id, clock_timestamp() + max(place) * interval '1 microsecond' FROM taken GROUP BY tenant_id
			ON CONFLICT (tenant_id) DO UPDATE SET served_at = excluded.served_at
		)
		SELECT place, fence, semantics FROM taken ORDER BY place`, owners, ids)
	var taken []ask
	var place, semantics int
	var fence int64
	_, err := pgx.ForEachRow(rows, []any{&place, &fence, &semantics}, func() error {
		one := chosen[place-1]
		one.Fence, one.Semantics = fence, semantics // it may have been paused and resumed, or its run moved, since the look
		taken = append(taken, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("give slices their slots: %w", err)
	}
	return taken, nil
}

// noteCrowded sets slices aside whose window is full.
func noteCrowded(ctx context.Context, tx tenants.SystemTx, crowded []ask) error {
	if len(crowded) == 0 {
		return nil
	}
	owners, ids := names(crowded)
	_, err := tx.Exec(ctx, `
		UPDATE slices s SET crowded = true FROM (
			SELECT s.tenant_id, s.id FROM unnest($1::uuid[], $2::uuid[]) c (tenant_id, id)
			JOIN slices s ON s.tenant_id = c.tenant_id AND s.id = c.id WHERE s.state = 'ready' FOR UPDATE OF s SKIP LOCKED
		) l WHERE s.tenant_id = l.tenant_id AND s.id = l.id`, owners, ids)
	if err != nil {
		return fmt.Errorf("set crowded slices aside: %w", err)
	}
	return nil
}

func names(asks []ask) ([]tenants.ID, []SliceID) {
	owners, ids := make([]tenants.ID, len(asks)), make([]SliceID, len(asks))
	for i, a := range asks {
		owners[i], ids[i] = a.Tenant, a.Slice
	}
	return owners, ids
}

// announce wakes the processes that work the queues. It comes after the commit, once
// for all jobs of a pass; should it get lost, they look every few milliseconds anyway.
func (e *Engine) announce(ctx context.Context, queues []string) error {
	for _, queue := range queues {
		if err := e.Jobs.Announce(ctx, queue); err != nil {
			return fmt.Errorf("announce jobs: %w", err)
		}
	}
	return nil
}
