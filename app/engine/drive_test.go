package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// handJob is a job that a test drives by hand.
type handJob struct {
	id        int64
	tries     int
	lastError string
}

func (j *handJob) ID() int64         { return j.id }
func (j *handJob) Tries() int        { return j.tries }
func (j *handJob) LastError() string { return j.lastError }

// slice has the run's one slice given a slot, and reads it as its job names it, and the
// job's number.
func (h *house) slice(run engine.RunID) (engine.DriveSlice, int64) {
	h.t.Helper()
	h.pump()
	args, job := engine.DriveSlice{Tenant: h.tenant}, int64(0)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `
			SELECT s.id, s.fence, j.id FROM slices s JOIN river.river_job j ON j.args @> jsonb_build_object('slice_id', s.id, 'fence', s.fence)
			WHERE s.run_id = $1`, run).Scan(&args.Slice, &args.Fence, &job)
	})
	return args, job
}

// pump makes one pass, for a worker with room that drives nothing by itself.
func (h *house) pump() {
	h.t.Helper()
	idle := h.engine.NewWorker("idle")
	idle.Slots = 1000
	require.NoError(h.t, idle.Beat(h.t.Context()))
	_, err := h.engine.PumpOnce(h.t.Context())
	require.NoError(h.t, err)
	require.NoError(h.t, idle.Retire(h.t.Context()))
}

func (h *house) count(query string, args ...any) int {
	h.t.Helper()
	var n int
	require.NoError(h.t, h.super().QueryRow(context.Background(), query, args...).Scan(&n))
	return n
}

// A worker that is stopped before it has claimed, or has begun anything, passes the
// slice on instead of dropping it.
func TestStopBeforeTheFirstStepHandsTheSliceOver(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*engine.Worker, context.CancelFunc){
		"cut": func(_ *engine.Worker, cut context.CancelFunc) { cut() }, "drained": func(w *engine.Worker, _ context.CancelFunc) { w.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &calls{}
			h := build(t, answering(seen, func(int32) {}))
			run := h.start(h.publish(twoQuestions), `{"n": 1}`)
			args, id := h.slice(run)
			ctx, cut := context.WithCancel(t.Context())
			defer cut()
			worker := h.otherWorker()
			stop(worker, cut)
			job := &handJob{id: id, tries: 1}
			require.NoError(t, worker.Drive(ctx, args, job))
			next, nextJob := h.slice(run)
			require.Equal(t, args.Fence+1, next.Fence)
			require.NotEqual(t, id, nextJob)
			h.work()
			h.requireOnce(run, seen)
		})
	}
}

// What fails at every try ends with a reason and its money settled, whatever it stood at.
func TestSliceThatFailsAtEveryTryFailsItsRun(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(context.Context, engine.Call) engine.Reply {
		panic("a defect of ours")
	})})
	run := h.start(h.publish(`{"semantics": 1, "name": "Nested", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "route", "name": "Route", "kind": "branch", "with": {"cases": [{"id": "yes", "name": "Yes", "when": "input.n > 0", "steps": [
			{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "Well?"}}]}]}}]}`), `{"n": 1}`)
	args, id := h.slice(run)
	worker := h.otherWorker()
	require.Panics(t, func() { _ = worker.Drive(t.Context(), args, &handJob{id: id, tries: 1}) })
	require.NoError(t, worker.Drive(t.Context(), args, &handJob{id: id, tries: 1000, lastError: "a defect\x00 \xff " + strings.Repeat("x", 1<<20)}))
	p := h.progress(run)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, engine.ClassInternal, p.Run.Failure.Class)
	require.Equal(t, "ask", p.Run.Failure.StepID)
	require.Contains(t, p.Run.Failure.Detail, "a defect\ufffd")
	require.Less(t, len(p.Run.Failure.Detail), 20<<10)
	for _, step := range p.Steps {
		require.Equal(t, engine.StepFailed, step.State)
		require.Equal(t, engine.ClassInternal, step.Failure.Class)
	}
	attempts := h.attempts(p.Steps[1].ID)
	require.Len(t, attempts, 1)
	require.Equal(t, engine.AttemptFailed, attempts[0].Outcome)
	require.Positive(t, p.Steps[1].CostMicros, "the call may have cost something")
	h.requireCharges(run, 0)
	h.requireSound()
	require.Zero(t, h.count(`SELECT count(*) FROM slices`))
	require.NoError(t, worker.Drive(t.Context(), args, &handJob{id: id, tries: 1001}), "an outdated job is simply done")
}

// It works also where nothing can be read any more, here the version's document.
func TestRunWhoseVersionIsBrokenIsGivenUp(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	h.exec(`UPDATE runs SET input_digest = '\x` + strings.Repeat("00", 31) + `01'`)
	args, id := h.slice(run)
	worker := h.otherWorker()
	require.Error(t, worker.Drive(t.Context(), args, &handJob{id: id, tries: 10}), "up to the bound it is tried again")
	require.NoError(t, worker.Drive(t.Context(), args, &handJob{id: id, tries: 11}))
	require.Equal(t, engine.RunFailed, h.progress(run).Run.State)
}

// A cancel writes down the try that it cut.
func TestCancelRecordsTheTryItCut(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(ctx context.Context, _ engine.Call) engine.Reply {
		close(began)
		<-ctx.Done()
		return engine.Reply{Failure: &engine.Failure{Class: "connection", Message: "Cut."}, Bill: &engine.Bill{Unknown: true}}
	})})
	h.work()
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	<-began
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Cancel(ctx, tx, run, "Olga\x00 \xffOwner")
	})
	p := h.progress(run)
	require.Equal(t, "Olga\ufffd \ufffdOwner", p.Run.EndedBy)
	attempts := h.attempts(p.Steps[0].ID)
	require.Len(t, attempts, 1)
	require.Equal(t, engine.AttemptCancelled, attempts[0].Outcome)
	h.requireCharges(run, 0)
	require.Positive(t, p.Steps[0].CostMicros)
}

// One wait that cannot be closed stops no other.
func TestOneBrokenTimerStopsNoOther(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(fmt.Sprintf(oneReview, `, "due": "1h", "on_deadline": "reject"`))
	broken, sound := h.start(id, `{"n": 1}`), h.start(id, `{"n": 2}`)
	h.passBy(broken, engine.WaitReview)
	h.passBy(sound, engine.WaitReview)
	h.exec(`UPDATE waits SET due_at = now() - interval '1 minute'`)
	h.exec(`UPDATE reviews SET due_at = CASE WHEN run_id = '` + sound.String() + `' THEN now() - interval '1 minute' END`)
	h.exec(`UPDATE waits SET due_at = due_at - interval '1 hour' WHERE run_id = '` + broken.String() + `'`)
	h.exec(`UPDATE mails SET sent_at = created_at, state = 'sent' WHERE sent_at IS NULL`)
	fired, err := h.engine.FireTimers(t.Context())
	require.Error(t, err)
	require.Equal(t, 1, fired)
	require.Empty(t, h.progress(sound).Waits)
}

// An answer to the first of two questions is none to the second.
func TestAnswerCountsForItsOwnQuestionOnly(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(`{"semantics": 1, "name": "Two reviews", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "a", "name": "A", "kind": "review", "with": {"question": "A?", "people": [{"email": "rita@example.com"}]}},
		{"id": "b", "name": "B", "kind": "review", "with": {"question": "B?", "people": [{"email": "rita@example.com"}, {"email": "Rita@Example.com"}]}}],
		"result": [{"name": "b", "formula": "steps.b.verdict"}]}`), `{"n": 1}`)
	_, first := h.awaitWait(run, engine.WaitReview)
	var answer review.Decision
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, first)
		answer = h.answer(detail, review.Approve, "")
		return err
	})
	again := func() error {
		return h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			_, err := h.engine.DecideReview(ctx, tx, answer)
			return err
		})
	}
	require.NoError(t, again())
	p := h.await(run, "the second question", func(p engine.Progress) bool { return len(p.Steps) == 2 })
	require.NoError(t, again(), "the same answer again is no error")
	require.Len(t, h.progress(run).Waits, 1, "the second question is still open")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, p.Steps[1].ID)
		require.Len(t, detail.Seats, 1, "one person named twice has one seat")
		return err
	})
	h.decide(p.Steps[1].ID, review.Reject, "no")
	p = h.awaitEnd(run)
	require.JSONEq(t, `{"b": "rejected"}`, h.value(p.Run.Result))
}

// A call that our stop has cut is booked as its caller says, here as never dispatched,
// and made again under the same key.
func TestCutCallIsBookedAsItsCallerSays(t *testing.T) {
	t.Parallel()
	ctx, cut := context.WithCancel(t.Context())
	seen, tries := &calls{}, atomic.Int32{}
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(callCtx context.Context, call engine.Call) engine.Reply {
		seen.add(call.Key)
		if tries.Add(1) == 1 {
			cut()
			<-callCtx.Done()
			return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: "connection", Message: "Cut before it was sent."}}
		}
		return engine.Reply{Output: []byte(`{"text": "fine"}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 1, Output: 1}}}
	})})
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	args, id := h.slice(run)
	require.NoError(t, h.otherWorker().Drive(ctx, args, &handJob{id: id, tries: 1}))
	h.requireSound()
	h.work()
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	require.Equal(t, map[string]int{p.Steps[0].ID.String(): 2}, seen.all())
	attempts := h.attempts(p.Steps[0].ID)
	require.Len(t, attempts, 2)
	require.Equal(t, engine.AttemptInterrupted, attempts[0].Outcome)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM charges`), "what was never sent costs nothing")
	h.requireCharges(run, 1)
}
