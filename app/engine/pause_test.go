package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/tenants"
)

func (h *house) pause(run engine.RunID) error {
	return h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error { return h.engine.Pause(ctx, tx, run) })
}

func (h *house) resume(run engine.RunID) error {
	return h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error { return h.engine.Resume(ctx, tx, run) })
}

// gate is a mail caller that waits for leave at each call.
type gate struct{ began, leave chan string }

func newGate() *gate { return &gate{began: make(chan string, 100), leave: make(chan string, 100)} }

func (g *gate) Call(ctx context.Context, call engine.Call) engine.Reply {
	g.began <- call.Key
	select {
	case <-g.leave:
		return engine.Reply{Output: []byte(`{}`)}
	case <-ctx.Done():
		return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}}
	}
}

// A run that pauses finishes the step it is at and begins no other; paused, it holds no
// slot; resumed, it goes on behind what was done.
func TestPauseFinishesTheStepUnderWayAndBeginsNoOther(t *testing.T) {
	t.Parallel()
	doors := newGate()
	h := build(t, mailCaller(doors.Call))
	h.work()
	run := h.start(h.publish(chain(3)), `{"n": 1}`)
	<-doors.began
	require.NoError(t, h.pause(run))
	require.Equal(t, engine.RunPausing, h.progress(run).Run.State)
	require.ErrorIs(t, h.pause(run), engine.ErrNotRunning)
	doors.leave <- ""
	p := h.await(run, "the pause", func(p engine.Progress) bool { return p.Run.State == engine.RunPaused })
	require.Len(t, p.Steps, 1)
	require.Equal(t, engine.StepDone, p.Steps[0].State)
	require.Zero(t, h.count(`SELECT count(*) FROM slices WHERE state <> 'paused'`))
	require.Empty(t, doors.began)
	require.NoError(t, h.resume(run))
	require.ErrorIs(t, h.resume(run), engine.ErrNotPaused)
	for range 2 {
		<-doors.began
		doors.leave <- ""
	}
	p = h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	require.Len(t, p.Steps, 3)
	require.ErrorIs(t, h.pause(run), engine.ErrEnded)
	require.ErrorIs(t, h.resume(run), engine.ErrEnded)
	require.ErrorIs(t, h.pause(engine.RunID{1}), engine.ErrNoRun)
}

// A run that has not begun, or only waits, pauses at once.
func TestPauseOfARunThatNobodyDrivesIsImmediate(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	ready := h.start(h.publish(oneMail), `{"n": 1}`)
	dispatched := h.start(h.publish(oneMail), `{"n": 1}`)
	h.pump()
	waiting := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	for _, run := range []engine.RunID{ready, dispatched, waiting} {
		require.NoError(t, h.pause(run))
		require.Equal(t, engine.RunPaused, h.progress(run).Run.State)
	}
	h.work()
	for _, run := range []engine.RunID{ready, dispatched} {
		require.NoError(t, h.resume(run))
		require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
	}
	require.Empty(t, h.progress(waiting).Steps)
}

// What a paused run waits for may come, by a person or by time: it is kept, and the run
// goes on from there once it is resumed.
func TestWaitsOfAPausedRunAreKept(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	answered := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	late := h.start(h.publish(fmt.Sprintf(oneReview, `, "due": "2s", "on_deadline": "reject"`)), `{"n": 1}`)
	_, step := h.awaitWait(answered, engine.WaitReview)
	h.awaitWait(late, engine.WaitReview)
	for _, run := range []engine.RunID{answered, late} {
		require.NoError(t, h.pause(run))
		require.Equal(t, engine.RunPaused, h.progress(run).Run.State)
	}
	h.decide(step, review.Approve, "")
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE state = 'paused'`) == 2 }, 20*time.Second, 20*time.Millisecond)
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	for run, verdict := range map[engine.RunID]string{answered: "approved", late: "rejected"} {
		require.Equal(t, engine.RunPaused, h.progress(run).Run.State)
		require.NoError(t, h.resume(run))
		p := h.awaitEnd(run)
		require.JSONEq(t, `{"verdict": "`+verdict+`"}`, h.value(p.Run.Result))
	}
}

// A pause whose worker dies settles all the same.
func TestPauseSettlesThoughTheWorkerDies(t *testing.T) {
	t.Parallel()
	doors := newGate()
	h := build(t, mailCaller(doors.Call))
	run := h.start(h.publish(chain(2)), `{"n": 1}`)
	args, id := h.slice(run)
	ctx, cut := context.WithCancel(t.Context())
	over := make(chan error)
	dying := h.otherWorker()
	go func() { over <- dying.Drive(ctx, args, &handJob{id: id, tries: 1}) }()
	<-doors.began
	require.NoError(t, h.pause(run))
	other := h.otherWorker()
	require.NoError(t, other.BuryOthers(t.Context()))
	taken, err := other.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	_, err = h.engine.SettlePauses(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.RunPaused, h.progress(run).Run.State)
	cut()
	require.NoError(t, <-over)
	h.work()
	require.NoError(t, h.resume(run))
	for range 2 {
		<-doors.began
		doors.leave <- ""
	}
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// Cancelled while it pauses or is paused, a run leaves nothing behind.
func TestCancelOfAPausedRun(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	require.NoError(t, h.pause(run))
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Olga Owner") })
	require.Equal(t, engine.RunCancelled, h.progress(run).Run.State)
	require.Zero(t, h.count(`SELECT count(*) FROM slices`))
	require.ErrorIs(t, h.resume(run), engine.ErrEnded)
}
