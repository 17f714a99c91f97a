package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

const oneMail = `{
	"semantics": 1, "name": "One mail", "input": [{"name": "n", "type": "number"}],
	"steps": [{"id": "send", "name": "Send", "kind": "email", "retry": {"attempts": 3, "first": "1s"},
		"with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}]
}`

const oneQuestion = `{
	"semantics": 1, "name": "One question", "input": [{"name": "n", "type": "number"}],
	"steps": [{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.n }}", "max_tokens": 1000}}]
}`

const oneReview = `{
	"semantics": 1, "name": "One review", "input": [{"name": "n", "type": "number"}],
	"steps": [{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]%s}}],
	"result": [{"name": "verdict", "formula": "steps.check.verdict"}]
}`

func mailCaller(fn callerFunc) map[pipeline.Kind]engine.Caller {
	return map[pipeline.Kind]engine.Caller{pipeline.KindEmail: fn}
}

func TestFailedTryIsMadeAgainAndRecorded(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		if tries.Add(1) == 1 {
			return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: "mail_trouble", Message: "Not reached.", Detail: "nul \x00 byte"}}
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	h.work()
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	require.Equal(t, 2, p.Steps[0].Attempt)
	attempts := h.attempts(p.Steps[0].ID)
	require.Len(t, attempts, 2)
	require.Equal(t, engine.AttemptFailed, attempts[0].Outcome)
	require.Equal(t, "nul \ufffd byte", attempts[0].Failure.Detail)
	require.Equal(t, engine.AttemptDone, attempts[1].Outcome)
}

func TestTriesRunOut(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: "mail_trouble", Message: "Not reached."}}
	}))
	h.work()
	p := h.awaitEnd(h.start(h.publish(oneMail), `{"n": 1}`))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, &engine.Failure{Class: "mail_trouble", Message: "Not reached.", StepID: "send"}, p.Run.Failure)
	require.Len(t, h.attempts(p.Steps[0].ID), 3)
}

func (h *house) attempts(step engine.StepRunID) []engine.Attempt {
	h.t.Helper()
	var found []engine.Attempt
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		found, err = engine.AttemptsOf(ctx, tx, step)
		return err
	})
	return found
}

// The same start, however often and however fast it comes, is one run.
func TestStartWithTheSameKeyIsOneRun(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(fmt.Sprintf(oneReview, ""))
	var wg sync.WaitGroup
	var created atomic.Int32
	runs := make([]engine.RunID, 10)
	for i := range runs {
		wg.Go(func() {
			started := h.startKeyed(id, `{"n": 1}`, "once")
			runs[i] = started.Run.ID
			if !started.Before {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, created.Load())
	for _, run := range runs {
		require.Equal(t, runs[0], run)
	}
}

func TestRunStoppedByTheCapGoesOnOnceItIsRaised(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.cap(0)
	h.work()
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	p, step := h.awaitWait(run, engine.WaitCap)
	require.Contains(t, p.Waits[step].Reason, "cap is $0.00")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		status, err := ledger.Month(ctx, tx)
		require.NoError(t, err)
		require.Zero(t, status.Of(ledger.Pretend).Held, "a waiting run holds money")
		return nil
	})
	woken, err := h.engine.LetGoOn(t.Context(), h.member(), engine.StoppedFilter{Run: run}) // still no money: it waits again
	require.NoError(t, err)
	require.Equal(t, 1, woken)
	h.awaitWait(run, engine.WaitCap)
	h.cap(10_000_000)
	_, err = h.engine.LetGoOn(t.Context(), h.member(), engine.StoppedFilter{})
	require.NoError(t, err)
	p = h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Positive(t, p.Steps[0].CostMicros)
	h.requireSound()
}

func (h *house) cap(limit ledger.Micros) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(tx.Tenant), Funds: ledger.Pretend, Limit: &limit})
	})
}

// requireSound checks that no money is held once nothing runs, and that each balance is
// the sum of its lines.
func (h *house) requireSound() {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		status, err := ledger.Month(ctx, tx)
		require.NoError(h.t, err)
		require.Zero(h.t, status.Of(ledger.Pretend).Held)
		differences, err := ledger.Reconcile(ctx, tx)
		require.NoError(h.t, err)
		require.Empty(h.t, differences)
		return nil
	})
}

func TestReviewWithoutAnybodyToAskFailsTheRun(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	p := h.awaitEnd(h.start(h.publish(`{"semantics": 1, "name": "Nobody", "input": [{"name": "n", "type": "number"}],
		"steps": [{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "people": [{"role": "finance"}]}}]}`), `{"n": 1}`))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, engine.ClassNobody, p.Run.Failure.Class)
	require.Equal(t, "check", p.Run.Failure.StepID)
}

func TestDeadlineEndsAReviewAsItsStepSays(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"reject": "rejected", "approve": "approved", "continue": "timeout", "fail": ""} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			h.work()
			run := h.start(h.publish(fmt.Sprintf(oneReview, `, "due": "1s", "on_deadline": "`+action+`", "editable": [{"field": {"name": "sum", "type": "number"}, "formula": "input.n"}]`)), `{"n": 1}`)
			p := h.awaitEnd(run)
			if want == "" {
				require.Equal(t, engine.RunFailed, p.Run.State)
				require.Equal(t, engine.ClassExpired, p.Run.Failure.Class)
				return
			}
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			require.JSONEq(t, `{"verdict": "`+want+`"}`, h.value(p.Run.Result))
			require.Contains(t, h.value(p.Steps[0].Output), `"sum":1`, "a field as proposed")
		})
	}
}

// An answer that comes in the instant in which its run goes to sleep is not lost.
func TestAnswerAtTheMomentOfWaitingIsNotLost(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	id := h.publish(fmt.Sprintf(oneReview, ""))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			run := h.start(id, `{"n": 1}`)
			var step engine.StepRunID
			require.Eventually(t, func() bool {
				p := h.progress(run)
				if len(p.Steps) == 0 {
					return false
				}
				step = p.Steps[0].ID
				return true
			}, 20*time.Second, time.Millisecond)
			h.decide(step, review.Approve, "")
			require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
		})
	}
	wg.Wait()
}

func TestCancelOfAWaitingRunClosesItsReview(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Olga Owner") })
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCancelled, p.Run.State)
	require.Equal(t, "Olga Owner", p.Run.EndedBy)
	require.Equal(t, engine.StepCancelled, p.Steps[0].State)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		require.ErrorIs(t, h.engine.Cancel(ctx, tx, run, "again"), engine.ErrEnded)
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		require.NoError(t, err)
		require.Equal(t, review.OutcomeCancelled, detail.Outcome)
		return nil
	})
}

// A call under way is cut within two beats of the cancel, and its money is booked.
func TestCancelReachesACallUnderWay(t *testing.T) {
	t.Parallel()
	cut := make(chan struct{})
	began := make(chan struct{})
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(ctx context.Context, _ engine.Call) engine.Reply {
		close(began)
		<-ctx.Done()
		close(cut)
		return engine.Reply{Failure: &engine.Failure{Class: "connection", Message: "Cut."}, Bill: &engine.Bill{Unknown: true}}
	})})
	h.work()
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	<-began
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Olga Owner") })
	select {
	case <-cut:
	case <-time.After(3 * engine.BeatEvery):
		t.Fatal("the call went on after the cancel")
	}
	require.Equal(t, engine.RunCancelled, h.awaitEnd(run).Run.State)
	h.requireSound()
}

// Whoever is first, cancel or the step's end, the run has one final state that stays.
func TestCancelRacingTheEndHasOneOutcome(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { return engine.Reply{Output: []byte(`{}`)} }))
	h.work()
	id := h.publish(oneMail)
	var wg sync.WaitGroup
	for n := range 30 {
		wg.Go(func() {
			run := h.start(id, `{"n": 1}`)
			time.Sleep(time.Duration(n) * time.Millisecond) // spread over the run's short life
			err := h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				return h.engine.Cancel(ctx, tx, run, "Olga Owner")
			})
			want := engine.RunCancelled
			if err != nil {
				require.ErrorIs(t, err, engine.ErrEnded)
				want = engine.RunCompleted
			}
			p := h.awaitEnd(run)
			require.Equal(t, want, p.Run.State)
			for _, step := range p.Steps {
				require.False(t, step.State.Open())
			}
		})
	}
	wg.Wait()
}
