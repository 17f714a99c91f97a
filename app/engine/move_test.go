package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// republish makes a document the next version.
func (h *house) republish(id pipeline.ID, document string) int {
	h.t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(h.t, err)
	var number int
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		if err := pipeline.SaveDraft(ctx, tx, id, parsed, h.owner); err != nil {
			return err
		}
		number, err = pipeline.Publish(ctx, tx, id, "", h.owner)
		return err
	})
	return number
}

// makeLive lets new runs take an older version.
func (h *house) makeLive(id pipeline.ID, version int) {
	h.t.Helper()
	_, err := h.super().Exec(h.t.Context(), `UPDATE pipelines SET live_version = $2 WHERE id = $1`, id, version)
	require.NoError(h.t, err)
}

// move moves a run from its first version.
func (h *house) move(run engine.RunID, to int) (moved bool, err error) {
	h.t.Helper()
	err = h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		moved, err = h.engine.Move(ctx, tx, run, 1, to, h.owner)
		return err
	})
	return moved, err
}

// A run that waits goes on under the version it was moved to, with what it has done and
// what it waits for; the rules of that version may be newer.
func TestAWaitingRunIsMovedToAnotherVersion(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	id := h.publish(`{"semantics": 1, "name": "Moves", "input": [{"name": "n", "type": "number"}], "steps": [` + setTo("a", "1") + "," + askRita("ask", "Well?") + "," + setTo("b", "2") + `],
		"result": [{"name": "r", "formula": "steps.b.x"}]}`)
	run, stays := h.start(id, `{"n": 1}`), h.start(id, `{"n": 1}`)
	_, at := h.awaitWait(run, engine.WaitReview)
	_, other := h.awaitWait(stays, engine.WaitReview)
	h.republish(id, flow("steps.all.results", setTo("a", "1"), askRita("ask", "Well?"), step("all", "each",
		`{"items": "[1, 2]", "at_once": 2, "result": "text(item) + steps.ask.verdict", "steps": [`+sendTo("send", "k@example.com")+`]}`)))
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 }, 10*time.Second, 10*time.Millisecond)
	moved, err := h.move(run, 2)
	require.NoError(t, err)
	require.True(t, moved)
	moved, err = h.move(run, 2)
	require.NoError(t, err, "sent again it finds the run there")
	require.False(t, moved)
	h.decide(at, review.Approve, "")
	h.decide(other, review.Approve, "")
	p := h.awaitEnd(run)
	require.Equal(t, 2, p.Run.Version)
	require.JSONEq(t, `["1approved", "2approved"]`, h.result(p))
	require.Equal(t, "2", h.result(h.awaitEnd(stays)))
	require.Equal(t, 1, h.count(`SELECT count(*) FROM run_moves WHERE run_id = $1 AND from_version = 1 AND to_version = 2 AND moved_by = $2`, run, h.owner))
	h.requireClean(p)
	_, err = h.move(run, 1)
	require.ErrorIs(t, err, engine.ErrEnded)
}

// Whatever cannot be moved stays as it is, and says why.
func TestARunThatDoesNotFitIsNotMoved(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	h := build(t, echo(func(context.Context, string) *engine.Failure {
		close(asked)
		<-answer
		return nil
	}))
	h.work()
	id := h.publish(flow("1", sendTo("send", "k@example.com"), askRita("ask", "Well?")))
	h.republish(id, flow("2", sendTo("send", "k@example.com"), askRita("ask", "Really?")))
	h.republish(id, flow("3", sendTo("send", "other@example.com"), askRita("ask", "Well?")))
	h.republish(id, flow("4", sendTo("send", "k@example.com"), askRita("ask", "Well?"), setTo("x", "1")))
	h.makeLive(id, 1)
	run := h.start(id, `{"n": 1, "list": []}`)
	<-asked
	_, err := h.move(run, 4)
	require.ErrorIs(t, err, engine.ErrAtWork)
	close(answer)
	h.awaitWait(run, engine.WaitReview)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 }, 10*time.Second, 10*time.Millisecond)
	for version, reason := range map[int]engine.Misfit{
		2: {Reason: engine.MisfitChanged, Number: "2", Name: "ask"}, 3: {Reason: engine.MisfitChanged, Number: "1", Name: "send"},
	} {
		_, err := h.move(run, version)
		var fit *engine.NoFit
		require.ErrorAs(t, err, &fit)
		require.Equal(t, []engine.Misfit{reason}, fit.Misfits)
	}
	_, err = h.move(run, 9)
	require.ErrorIs(t, err, pipeline.ErrNotFound)
	require.Equal(t, 1, h.progress(run).Run.Version)
	other, owner := h.db.Tenant(t)
	require.ErrorIs(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.Move(ctx, tx, run, 1, 4, owner)
		return err
	}), engine.ErrNoRun)
	_, err = h.move(run, 4)
	require.NoError(t, err)
	_, err = h.move(run, 1)
	require.ErrorIs(t, err, engine.ErrOtherVersion, "the form was drawn for a version that it has left")
}

// A paused run is moved with what it has put aside, and a queued one before it begins;
// both go on by the rules of their new version.
func TestPausedAndQueuedRunsAreMoved(t *testing.T) {
	t.Parallel()
	doors := newGate()
	h := build(t, mailCaller(doors.Call))
	h.work()
	limited := func(document string) string {
		return strings.Replace(document, `"name": "Flow"`, `"name": "Flow", "concurrency": {"limit": 1, "policy": "queue"}`, 1)
	}
	id := h.publish(limited(flow("1", sendTo("send", "k@example.com"), setTo("x", "1"))))
	paused, queued := h.start(id, `{"n": 1, "list": []}`), h.start(id, `{"n": 1, "list": []}`)
	<-doors.began
	h.republish(id, limited(under3(flow("steps.y.x", sendTo("send", "k@example.com"), setTo("y", "2")))))
	require.NoError(t, h.pause(paused))
	_, err := h.move(paused, 2)
	require.ErrorIs(t, err, engine.ErrAtWork, "it pauses, and is not paused yet")
	doors.leave <- ""
	h.await(paused, "the pause", func(p engine.Progress) bool { return p.Run.State == engine.RunPaused })
	for _, run := range []engine.RunID{paused, queued} {
		moved, err := h.move(run, 2)
		require.NoError(t, err)
		require.True(t, moved)
	}
	require.Equal(t, 1, h.count(`SELECT count(*) FROM slices WHERE run_id = $1 AND state = 'paused' AND semantics = 3`, paused))
	require.NoError(t, h.resume(paused))
	require.Equal(t, "2", h.result(h.awaitEnd(paused)))
	<-doors.began
	doors.leave <- ""
	require.Equal(t, "2", h.result(h.awaitEnd(queued)))
	require.Equal(t, 2, h.count(`SELECT count(*) FROM river.river_job WHERE queue = 'slices_3'`))
}

// However many steps a run has, a move is planned and made at once.
func TestMoveOfALongRunIsFast(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	document := func(result string) string {
		return flow(result, step("all", "each", `{"items": "input.list", "at_once": 8, "steps": [`+setTo("one", "item")+","+setTo("last", "steps.one.x")+`]}`), askRita("ask", "Well?"))
	}
	id := h.publish(document("1"))
	run := h.start(id, numbers(20))
	h.awaitWait(run, engine.WaitReview)
	h.moreItems(run, "all", 3500)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 }, 10*time.Second, 10*time.Millisecond)
	h.republish(id, document("2"))
	var took []time.Duration
	for n := range 20 {
		begun := time.Now()
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			moved, err := h.engine.Move(ctx, tx, run, 1+n%2, 2-n%2, h.owner)
			require.True(t, moved)
			return err
		})
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("p95 %s", took[18])
	require.Less(t, took[18], 300*time.Millisecond)
}

// A move in the milliseconds in which the answer comes: the answer counts whatever comes
// of the move, and the run goes on wholly on one version.
func TestMoveRacingTheAnswer(t *testing.T) {
	t.Parallel()
	var published sync.Once
	race(t, flow("steps.x.x", askRita("ask", "Well?"), setTo("x", "1")), func(h *house, run engine.RunID) {
		id := h.progress(run).Run.PipelineID
		published.Do(func() {
			h.republish(id, flow("steps.y.x", askRita("ask", "Well?"), setTo("y", "2")))
			h.makeLive(id, 1)
		})
		_, step := h.awaitWait(run, engine.WaitReview)
		var answered sync.WaitGroup
		answered.Go(func() {
			someTime(5 * time.Millisecond)
			h.decide(step, review.Approve, "")
		})
		someTime(8 * time.Millisecond)
		_, err := h.move(run, 2)
		if !errors.Is(err, engine.ErrAtWork) && !errors.Is(err, engine.ErrEnded) {
			var fit *engine.NoFit // x may have run by then
			require.True(h.t, err == nil || errors.As(err, &fit), "%v", err)
		}
		answered.Wait()
		p := h.awaitEnd(run)
		require.Equal(h.t, map[int]string{1: "1", 2: "2"}[p.Run.Version], h.result(p))
	})
}
