package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// limited is one mail in a pipeline that takes so many runs at once.
func limited(concurrency string) string {
	return `{"semantics": 1, "name": "Limited", "concurrency": ` + concurrency + `, "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "send", "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}]}`
}

func (h *house) states(runs []engine.RunID) []engine.RunState {
	h.t.Helper()
	var states []engine.RunState
	for _, run := range runs {
		states = append(states, h.progress(run).Run.State)
	}
	return states
}

// Queued runs start in the order in which they came, never more than the limit at once,
// also when they come all at once; one can be cancelled while it is queued.
func TestQueuedRunsStartInOrderWithinTheLimit(t *testing.T) {
	t.Parallel()
	counter := newCrowdCounter()
	h := build(t, counter.taking(5*time.Millisecond))
	h.work()
	id := h.publish(limited(`{"limit": 2}`))
	var runs sync.Map
	var starting sync.WaitGroup
	for n := range 20 {
		starting.Go(func() { runs.Store(n, h.start(id, `{"n": 1}`)) })
	}
	starting.Wait()
	require.Eventually(t, func() bool {
		require.LessOrEqual(t, h.count(`SELECT count(*) FROM runs WHERE state = 'running'`), 2)
		return h.count(`SELECT count(*) FROM runs WHERE state = 'completed'`) == 20
	}, 30*time.Second, 5*time.Millisecond)
	require.LessOrEqual(t, counter.mostOf(h.tenant), 2)
	require.Zero(t, h.count(`
		SELECT count(*) FROM (SELECT r.number, s.created_at, lead(s.created_at, 2) OVER (ORDER BY r.number) AS next
			FROM runs r JOIN step_runs s ON s.run_id = r.id) o WHERE next < created_at`), "a run overtook one that came two places before it")
}

func TestQueuedRunIsShownAndCancelled(t *testing.T) {
	t.Parallel()
	doors := newGate()
	h := build(t, mailCaller(doors.Call))
	h.work()
	id := h.publish(limited(`{"limit": 1}`))
	runs := []engine.RunID{h.start(id, `{"n": 1}`), h.start(id, `{"n": 1}`), h.start(id, `{"n": 1}`)}
	<-doors.began
	require.Equal(t, []engine.RunState{engine.RunRunning, engine.RunQueued, engine.RunQueued}, h.states(runs))
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		line, err := engine.LineByID(ctx, tx, runs[1])
		require.Equal(t, engine.StandingQueued, line.Standing)
		return err
	})
	require.ErrorIs(t, h.pause(runs[1]), engine.ErrNotRunning)
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, runs[1], "Olga Owner") })
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	doors.leave <- ""
	<-doors.began
	require.Equal(t, []engine.RunState{engine.RunCompleted, engine.RunCancelled, engine.RunRunning}, h.states(runs))
	doors.leave <- ""
	h.awaitEnd(runs[2])
}

// A start beyond the limit is recorded as a run that ended at once, with its reason.
func TestSkippedStartSaysWhy(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(limited(`{"limit": 1, "policy": "skip"}`))
	first, second := h.start(id, `{"n": 1}`), h.start(id, `{"n": 1}`)
	require.Equal(t, []engine.RunState{engine.RunRunning, engine.RunCancelled}, h.states([]engine.RunID{first, second}))
	skipped := h.progress(second).Run
	require.Equal(t, engine.ClassSkipped, skipped.Failure.Class)
	require.Equal(t, "This start was skipped: another run of the pipeline had not ended, and it takes no more at once.", skipped.Failure.Message)
	require.Equal(t, "the pipeline's limit of runs at once", skipped.EndedBy)
	require.NotNil(t, skipped.EndedAt)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM slices`))
	h.work()
	h.awaitEnd(first)
	require.Equal(t, engine.RunCompleted, h.awaitEnd(h.start(id, `{"n": 1}`)).Run.State, "a skipped run counts for nothing")
}

// The oldest open run gives way to a new one.
func TestOldestRunIsCancelledForANewOne(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(limited(`{"limit": 2, "policy": "cancel_oldest"}`))
	var runs []engine.RunID
	for range 4 {
		runs = append(runs, h.start(id, `{"n": 1}`))
	}
	require.Equal(t, []engine.RunState{engine.RunCancelled, engine.RunCancelled, engine.RunRunning, engine.RunRunning}, h.states(runs))
	require.Equal(t, "a newer run", h.progress(runs[0]).Run.EndedBy)
	var starting sync.WaitGroup
	for range 10 {
		starting.Go(func() { h.start(id, `{"n": 1}`) })
	}
	starting.Wait()
	require.Equal(t, 2, h.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`))
}

// S09: a crash leaks no place. The worker dies in the middle of the first of four runs;
// the first is taken over, and the others follow one after the other.
func TestS09CrashLeaksNoPlaceInThePipelinesQueue(t *testing.T) {
	t.Parallel()
	var count atomic.Int32
	counter := newCrowdCounter()
	h := build(t, mailCaller(func(_ context.Context, call engine.Call) engine.Reply {
		if count.Add(1) == 1 {
			panic("the power is cut")
		}
		defer counter.enter(call.Tenant)()
		return engine.Reply{Output: []byte(`{}`)}
	}))
	id := h.publish(limited(`{"limit": 1}`))
	var runs []engine.RunID
	for range 4 {
		runs = append(runs, h.start(id, `{"n": 1}`))
	}
	args, job := h.slice(runs[0])
	dying := h.otherWorker()
	require.Panics(t, func() { _ = dying.Drive(t.Context(), args, &handJob{id: job, tries: 1}) })
	require.NoError(t, h.work().BuryOthers(t.Context()))
	for _, run := range runs {
		require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
	}
	require.Equal(t, 1, counter.mostOf(h.tenant))
	require.Zero(t, h.count(`
		SELECT count(*) FROM (SELECT begun_at, lag(ended_at) OVER (ORDER BY created_at) AS before FROM step_runs) s WHERE before > begun_at`))
}

// The quota of open runs, queued ones among them, is exact however many starts come at
// once.
func TestQuotaOfOpenRunsIsExact(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.quotas(tenants.Quotas{ParallelSlices: 5, OpenRuns: 7})
	first, second := h.publish(oneMail), h.publish(limited(`{"limit": 1}`))
	var refused atomic.Int32
	var starting sync.WaitGroup
	for n := range 20 {
		starting.Go(func() {
			err := h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				id := first
				if n%2 == 0 {
					id = second
				}
				_, err := h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(`{"n": 1}`), By: h.owner, Key: tenants.NewID[int]().String()})
				return err
			})
			if many, ok := errors.AsType[*engine.TooManyRuns](err); ok && many.Quota == 7 {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	require.EqualValues(t, 13, refused.Load())
	require.Equal(t, 7, h.count(`SELECT count(*) FROM runs`))
}

// Within a tenant the more urgent run goes first; between tenants priority is nothing.
func TestPriorityCountsWithinATenantOnly(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	other := h.as(h.db.Tenant(t))
	start := func(of *house, priority int16) engine.RunID {
		id := of.publish(oneMail)
		var started engine.Started
		of.in(func(ctx context.Context, tx tenants.Tx) error {
			var err error
			started, err = of.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(`{"n": 1}`), By: of.owner, Key: tenants.NewID[int]().String(), Priority: priority})
			return err
		})
		return started.Run.ID
	}
	start(h, 0)
	start(h, 4)
	urgent := start(h, 1)
	theirs := start(other, 4)
	idle := h.engine.NewWorker("idle")
	idle.Slots = 1 // and one in reserve
	require.NoError(t, idle.Beat(t.Context()))
	given, err := h.engine.PumpOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, given)
	require.True(t, h.dispatched(urgent))
	require.True(t, other.dispatched(theirs))
}
