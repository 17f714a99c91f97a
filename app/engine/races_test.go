package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// racesTried is how often each race is run; TOLLGATE_RACES says otherwise, as "make
// races" does.
func racesTried() int {
	if n, err := strconv.Atoi(os.Getenv("TOLLGATE_RACES")); err == nil {
		return n
	}
	return 40
}

// race runs tries of one race, some at a time, in a house whose mails go out at once.
// Each try gets a run of the document that has just been started.
func race(t *testing.T, document string, try func(h *house, run engine.RunID)) {
	t.Helper()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { return engine.Reply{Output: []byte(`{}`)} }))
	h.work()
	id := h.publish(document)
	h.quotas(tenants.Quotas{ParallelSlices: 50, OpenRuns: 1000})
	slots := make(chan struct{}, 6)
	var over sync.WaitGroup
	for range racesTried() {
		slots <- struct{}{}
		over.Go(func() {
			defer func() { <-slots }()
			try(h, h.start(id, `{"n": 1}`))
		})
	}
	over.Wait()
	require.Zero(t, h.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`))
	for what, query := range leftovers {
		require.Zero(t, h.count(query), what)
	}
	t.Logf("%d deadlocks, all of them tried again", h.count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

// leftovers must not exist once all runs have ended.
var leftovers = map[string]string{
	"open step runs":           `SELECT count(*) FROM step_runs WHERE ended_at IS NULL`,
	"slices":                   `SELECT count(*) FROM slices`,
	"open waits":               `SELECT count(*) FROM waits WHERE state = 'open'`,
	"findings of the watchdog": `SELECT count(*) FROM watch_findings`,
	"open reviews":             `SELECT count(*) FROM reviews WHERE state = 'open'`,
	"steps with two done":      `SELECT count(*) FROM (SELECT 1 FROM tries WHERE outcome = 'done' GROUP BY step_run_id HAVING count(*) > 1) twice`,
	"runs with a doubled row":  `SELECT count(*) FROM (SELECT 1 FROM step_runs GROUP BY run_id, step_id, parent_id, turn HAVING count(*) > 1) twice`,
}

// someTime is a moment in the few milliseconds that a run of the races lives.
func someTime(most time.Duration) { time.Sleep(rand.N(most)) }

// op does something to a run as a page would, in a transaction of its own.
func (h *house) op(do func(ctx context.Context, tx tenants.Tx) error) error {
	return h.db.InTx(context.Background(), h.tenant, do)
}

// Whoever is first, a pause or the end of a step: the run pauses or has ended, and once
// it is resumed nothing of it is lost and nothing is done twice.
func TestPauseRacingTheEndOfAStep(t *testing.T) {
	t.Parallel()
	race(t, chain(3), func(h *house, run engine.RunID) {
		for range 3 {
			someTime(25 * time.Millisecond)
			err := h.pause(run)
			if errors.Is(err, engine.ErrEnded) {
				break
			}
			require.NoError(h.t, err)
			someTime(8 * time.Millisecond)
			require.NoError(h.t, h.resume(run))
		}
		p := h.awaitEnd(run)
		require.Equal(h.t, engine.RunCompleted, p.Run.State)
		require.Len(h.t, p.Steps, 3)
	})
}

// S08: a cancel that meets the end of the run either wins or is told that it lost.
func TestCancelRacingTheEndOfAStep(t *testing.T) {
	t.Parallel()
	race(t, chain(2), func(h *house, run engine.RunID) {
		someTime(25 * time.Millisecond)
		err := h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Olga Owner") })
		want := engine.RunCancelled
		if err != nil {
			require.ErrorIs(h.t, err, engine.ErrEnded)
			want = engine.RunCompleted
		}
		require.Equal(h.t, want, h.progress(run).Run.State)
		h.awaitEnd(run)
		require.Equal(h.t, want, h.progress(run).Run.State, "a final state changed")
	})
}

// S05: an answer that comes in the milliseconds in which the run goes to sleep counts,
// and the run goes on.
func TestAnswerRacingTheRunsWayToSleep(t *testing.T) {
	t.Parallel()
	race(t, reviewed(""), func(h *house, run engine.RunID) {
		h.answerAsSoonAsAsked(run)
		p := h.awaitEnd(run)
		require.JSONEq(h.t, `{"verdict": "approved"}`, h.value(p.Run.Result))
	})
}

// An answer and the deadline in the same milliseconds: one of them counts, and who
// answered was told which.
func TestAnswerRacingTheDeadline(t *testing.T) {
	t.Parallel()
	race(t, reviewed(`, "due": "1h", "on_deadline": "reject"`), func(h *house, run engine.RunID) {
		_, step := h.awaitWait(run, engine.WaitReview)
		h.dueIn(run, rand.N(10*time.Millisecond))
		var fired sync.WaitGroup
		fired.Go(func() {
			require.Eventually(h.t, func() bool {
				_, err := h.engine.FireTimers(context.Background())
				require.NoError(h.t, err)
				return len(h.progress(run).Waits) == 0
			}, 20*time.Second, time.Millisecond)
		})
		someTime(20 * time.Millisecond)
		err := h.answerNow(step)
		fired.Wait()
		p := h.awaitEnd(run)
		want := `{"verdict": "approved"}`
		if err != nil {
			want = `{"verdict": "rejected"}`
		}
		require.JSONEq(h.t, want, h.value(p.Run.Result), "%v", err)
	})
}

// Everything at once: people pause, resume, cancel and answer while the deadline passes.
// Each run comes to one end, and nobody hears of a deadlock.
func TestEverybodyRacesOnOneRun(t *testing.T) {
	t.Parallel()
	var completed, cancelled atomic.Int64
	race(t, reviewed(`, "due": "1h", "on_deadline": "reject"`), func(h *house, run engine.RunID) {
		var over sync.WaitGroup
		for _, do := range []func() error{
			func() error { return h.pause(run) }, func() error { return h.resume(run) },
			func() error { return h.pause(run) }, func() error { return h.resume(run) },
			func() error { return h.answerIfAsked(run) }, func() error { return h.answerIfAsked(run) },
			func() error { h.dueIn(run, 0); _, err := h.engine.FireTimers(context.Background()); return err },
			func() error {
				if rand.N(3) > 0 {
					return nil
				}
				return h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Olga Owner") })
			},
		} {
			over.Go(func() {
				someTime(30 * time.Millisecond)
				if err := do(); !said(err) {
					h.t.Error(err)
				}
			})
		}
		over.Wait()
		require.Eventually(h.t, func() bool {
			require.True(h.t, said(h.answerIfAsked(run)))
			return errors.Is(h.resume(run), engine.ErrEnded)
		}, time.Minute, 5*time.Millisecond)
		state := h.progress(run).Run.State
		require.Contains(h.t, []engine.RunState{engine.RunCompleted, engine.RunCancelled}, state)
		if state == engine.RunCompleted {
			completed.Add(1)
		} else {
			cancelled.Add(1)
		}
	})
	t.Logf("%d completed, %d cancelled", completed.Load(), cancelled.Load())
}

// said tells that an error is one of those that tell a person how things stand.
func said(err error) bool {
	for _, known := range []error{engine.ErrEnded, engine.ErrNotRunning, engine.ErrNotPaused, engine.ErrNotWaiting, review.ErrNotOpen, review.ErrAlreadyDecided} {
		if errors.Is(err, known) {
			return true
		}
	}
	return err == nil
}

// reviewed is a mail, then a question, then a mail; more says more of the question.
func reviewed(more string) string {
	mail := func(id string) string {
		return `{"id": "` + id + `", "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}`
	}
	return `{"semantics": 1, "name": "Reviewed", "input": [{"name": "n", "type": "number"}], "steps": [` + mail("before") + `,
		{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]` + more + `}},` + mail("after") + `],
		"result": [{"name": "verdict", "formula": "steps.check.verdict"}]}`
}

// answerAsSoonAsAsked approves in the first milliseconds in which the review can be seen.
func (h *house) answerAsSoonAsAsked(run engine.RunID) {
	require.Eventually(h.t, func() bool {
		require.NoError(h.t, h.answerIfAsked(run))
		return h.count(`SELECT count(*) FROM decisions d JOIN reviews v ON v.id = d.review_id WHERE v.run_id = $1`, run) > 0
	}, time.Minute, time.Millisecond)
}

// answerIfAsked approves the run's review, if there is one.
func (h *house) answerIfAsked(run engine.RunID) error {
	for _, step := range h.progress(run).Steps {
		if step.Kind == pipeline.KindReview {
			return h.answerNow(step.ID)
		}
	}
	return nil
}

// answerNow approves a step's review.
func (h *house) answerNow(step engine.StepRunID) error {
	return h.op(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		if err != nil {
			return err
		}
		seatOpen := slices.ContainsFunc(detail.Seats, func(seat review.SeatRow) bool { return seat.State == review.SeatOpen })
		if !detail.Open() || !seatOpen { // closed meanwhile, maybe between the reads of the two
			return review.ErrNotOpen
		}
		_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, review.Approve, ""))
		return err
	})
}

// dueIn gives the run's open waits and reviews another deadline, as if their mails had
// gone out at once.
func (h *house) dueIn(run engine.RunID, in time.Duration) {
	h.exec(fmt.Sprintf(`
		WITH m AS (UPDATE mails SET state = 'sent', sent_at = created_at - interval '1 day' WHERE run_id = '%[1]s' AND seat_id IS NOT NULL),
		w AS (UPDATE waits SET due_at = clock_timestamp() + interval '%[2]d microseconds' WHERE run_id = '%[1]s' AND state = 'open')
		UPDATE reviews SET due_at = clock_timestamp() + interval '%[2]d microseconds' WHERE run_id = '%[1]s' AND state = 'open'`,
		run, in.Microseconds()))
}
