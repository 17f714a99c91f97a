package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// An event that comes while the step before the wait is still at work is there when the
// run gets to it: the oldest of those that came since the run began.
func TestCaseS06EventThatComesBeforeTheWaitIsTaken(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		close(begun)
		<-goOn
		return engine.Reply{Output: []byte(`{}`)}
	}))
	h.work()
	before := h.send("paid", "77", `"before the run"`)
	run := h.start(h.publish(`{"semantics": 2, "name": "Early", "steps": [
		{"id": "send", "name": "Ask for it", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}},
		{"id": "paid", "name": "Wait for it", "kind": "event", "with": {"name": "paid", "key": "77", "deadline": "1d"}}]}`), `{}`)
	<-begun
	first, second := h.send("paid", "77", `"first"`), h.send("paid", "77", `"second"`)
	require.Zero(t, first.Served+second.Served)
	close(goOn)
	p := h.awaitEnd(run)
	require.Equal(t, `{"outcome":"received","data":"first"}`, h.value(p.Steps[1].Output))
	require.Equal(t, []int{0, 1, 0}, []int{h.event(before.Event.ID).Used, h.event(first.Event.ID).Used, h.event(second.Event.ID).Used})
}

// One event that is delivered several times, at once and again later, is one; with
// another number the same content is another event, and another content with the same
// number is refused.
func TestCaseS11EventDeliveredTwiceIsOne(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	runs := h.waiting("", 2, order77)
	event := engine.Event{Name: "paid", Key: "77", Data: []byte(`{"sum": 1}`), Sender: "Shop", SenderID: "delivery-1"}
	var wg sync.WaitGroup
	all := make([]engine.Sent, 10)
	for n := range all {
		wg.Go(func() {
			var err error
			if all[n], err = h.trySend(event); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	fresh, served := 0, 0
	for _, sent := range all {
		require.Equal(t, all[0].Event.ID, sent.Event.ID, "every answer names the first event")
		served += sent.Served
		if !sent.Before {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, len(runs), served)
	h.exec(`UPDATE events SET sent_at = sent_at - interval '10 min'`)
	again, err := h.trySend(event)
	require.NoError(t, err)
	require.True(t, again.Before)
	event.Data = []byte(`{"sum": 2}`)
	_, err = h.trySend(event)
	require.ErrorIs(t, err, engine.ErrOtherEvent)
	event.Data, event.SenderID = []byte(`{"sum": 1}`), "delivery-2"
	other, err := h.trySend(event)
	require.NoError(t, err)
	require.False(t, other.Before)
	require.Equal(t, 2, h.count(`SELECT count(*) FROM events`))
	for _, run := range runs {
		h.awaitEnd(run)
	}
}

// A run that is started again waits for the event anew: what the first run used, or was
// sent before, is none of its own, and the first run's record stays as it was.
func TestCaseS13RunStartedAgainGetsTheEventSentAgain(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	old := h.waiting("", 1, order77)[0]
	first := h.send("paid", "77", `1`)
	extra := h.send("paid", "77", `2`)
	before := h.awaitEnd(old)
	again := h.waiting("", 1, order77)[0]
	require.Equal(t, 1, h.send("paid", "77", `3`).Served)
	require.Equal(t, `{"outcome":"received","data":3}`, h.value(h.awaitEnd(again).Steps[0].Output))
	require.Equal(t, before, h.progress(old))
	require.Equal(t, 1, h.event(first.Event.ID).Used)
	require.Zero(t, h.event(extra.Event.ID).Used)
}

// Limits from seconds to more than a year fire within a second of their time, not
// before it, also after a restart; what is beyond three years is refused where it is
// written.
func TestCaseS21LimitsFireInTime(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	kinds := map[string]string{
		"event": `{"semantics": 2, "name": "Limit", "steps": [{"id": "s", "name": "Wait", "kind": "event", "with": {"name": "paid", "deadline": "%s", "on_deadline": "continue"}}]}`,
		"wait":  `{"semantics": 2, "name": "Limit", "steps": [{"id": "s", "name": "Wait", "kind": "wait", "with": {"for": "%s"}}]}`,
	}
	stop := h.workUntilStopped()
	limits := map[engine.RunID]time.Duration{}
	for _, limit := range []time.Duration{5 * time.Second, 61 * time.Second, 30 * 24 * time.Hour, 400 * 24 * time.Hour} {
		for _, document := range kinds {
			run := h.start(h.publish(fmt.Sprintf(document, pipeline.Duration(limit))), `{}`)
			limits[run] = limit
			h.await(run, "its wait", func(p engine.Progress) bool { return len(p.Waits) == 1 })
			h.exec(fmt.Sprintf(`UPDATE waits SET due_at = due_at + interval '5000 days' WHERE run_id = '%s'`, run)) // until it is looked at
		}
	}
	stop() // nothing but rows is left of them
	for run, limit := range limits {
		require.Zero(t, h.count(`SELECT count(*) FROM waits WHERE run_id = $1 AND abs(extract(epoch FROM due_at - interval '5000 days' - opened_at - $2::interval)) > 1`, run, limit))
		move := func(left string) {
			h.exec(fmt.Sprintf(`UPDATE waits SET due_at = clock_timestamp() + interval '%s' WHERE run_id = '%s'`, left, run))
			_, err := h.engine.FireTimers(t.Context())
			require.NoError(t, err)
		}
		move("1 min")
		require.Len(t, h.progress(run).Waits, 1, "%s fired too early", limit)
		move("0 s")
		require.Empty(t, h.progress(run).Waits, "%s did not fire", limit)
	}
	h.work()
	for run := range limits {
		require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
	}
	for _, document := range kinds {
		_, err := pipeline.Parse(fmt.Appendf(nil, document, "1099d"))
		require.ErrorContains(t, err, "is not a time span between 1s and 1098d")
	}
}

// Deadline, event and cancel meet at once: each run has one end, an event counts only
// where it came before the deadline, and a wait that expired used none.
func TestEventDeadlineAndCancelRace(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	runs := h.waiting(`, "deadline": "3d", "on_deadline": "continue"`, 100, func(n int) string { return fmt.Sprint(n) })
	var wg sync.WaitGroup
	for n, run := range runs {
		wg.Go(func() {
			err := h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				_, err := tx.Exec(ctx, `UPDATE waits SET due_at = clock_timestamp() + $2::interval WHERE run_id = $1 AND state = 'open'`,
					run, time.Duration(rand.IntN(20))*time.Millisecond)
				return err
			})
			if _, fireErr := h.engine.FireTimers(t.Context()); err != nil || fireErr != nil {
				t.Error(err, fireErr)
			}
		})
		wg.Go(func() {
			if _, err := h.trySend(engine.Event{Name: "paid", Key: fmt.Sprint(n), Data: []byte(`1`), Sender: "Ana"}); err != nil {
				t.Error(err)
			}
		})
		if n%5 == 0 {
			wg.Go(func() {
				err := h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
					return h.engine.Cancel(ctx, tx, run, "Olga Owner")
				})
				if err != nil && !errors.Is(err, engine.ErrEnded) {
					t.Error(err)
				}
			})
		}
		if n%10 == 9 {
			wg.Wait()
		}
	}
	for _, run := range runs {
		h.awaitEnd(run)
	}
	require.Zero(t, h.count(`SELECT count(*) FROM waits w JOIN event_uses u ON u.step_run_id = w.step_run_id JOIN events e ON e.id = u.event_id
		WHERE w.state <> 'done' OR e.sent_at >= w.due_at`), "an event was used that came too late, or by a wait that had ended")
	require.Zero(t, h.count(`SELECT count(*) FROM waits w WHERE w.kind = 'event' AND w.state = 'done'
		AND NOT EXISTS (SELECT 1 FROM event_uses u WHERE u.step_run_id = w.step_run_id)`))
	require.Zero(t, h.count(`SELECT count(*) FROM waits WHERE state = 'open'`)+h.count(`SELECT count(*) FROM slices`))
}

// Promise 7, for events: runs that wait for one hold no slice, no slot, no job and no
// money, and the open page's sentence has what they wait for.
func TestPromise7WaitingForAnEventIsFree(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	runs := h.waiting(`, "deadline": "3d"`, 20, func(n int) string { return fmt.Sprint(n) })
	for _, rows := range []string{`slices`, `holds WHERE state = 'open'`, `step_runs WHERE slice_id IS NOT NULL`} {
		require.Zero(t, h.count(`SELECT count(*) FROM `+rows), rows)
	}
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM river.river_job WHERE kind = 'drive_slice' AND finalized_at IS NULL`) == 0
	}, 10*time.Second, 20*time.Millisecond)
	var line engine.Line
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		line, err = engine.LineByID(ctx, tx, runs[7])
		return err
	})
	require.Equal(t, engine.StandingWaiting, line.Standing)
	require.Equal(t, []string{"paid", "7"}, []string{line.EventName, line.EventKey})
	require.WithinDuration(t, line.Since.Add(3*24*time.Hour), *line.Due, time.Second)
	h.age()
	h.exec(`UPDATE waits SET opened_at = opened_at - interval '1 hour'`)
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found, "a run that waits for an event is not stuck")
}

// An event that comes three times while another branch is at work wakes the wait once:
// the work is not begun again, and the two extra events stay as unused.
func TestCaseS02EventWakesItsWaitOnly(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := build(t, answering(seen, func(int32) {
		close(begun)
		<-goOn
	}))
	h.work()
	run := h.start(h.publish(`{"semantics": 2, "name": "Two branches", "steps": [{"id": "both", "name": "Both", "kind": "parallel", "with": {"branches": [
		{"id": "a", "name": "A", "steps": [{"id": "paid", "name": "Wait", "kind": "event", "with": {"name": "paid", "key": "77"}}]},
		{"id": "b", "name": "B", "steps": [{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "Hello", "max_tokens": 100}}]}]}}],
		"result": [{"name": "all", "formula": "steps.both.results"}]}`), `{}`)
	<-begun
	h.awaitWait(run, engine.WaitEvent)
	var used []int
	for n := range 3 {
		used = append(used, h.send("paid", "77", fmt.Sprint(n)).Served)
	}
	require.Equal(t, []int{1, 0, 0}, used)
	h.await(run, "the end of the wait", func(p engine.Progress) bool {
		return len(p.Waits) == 0 && h.count(`SELECT count(*) FROM step_runs WHERE step_id = 'paid' AND state = 'done'`) == 1
	})
	close(goOn)
	h.awaitEnd(run)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM event_uses`))
	require.Len(t, seen.byKey, 1)
	for key, times := range seen.byKey {
		require.Equal(t, 1, times, key)
	}
	h.requireCharges(run, 1)
	require.Equal(t, `{"outcome":"received","data":0}`, h.outputOf(run, "paid"))
}

// Two waits of one run for the same event take two events, in their order, whether those
// come before or after the waits.
func TestWaitsOfOneRunTakeAnEventEach(t *testing.T) {
	t.Parallel()
	wait := func(id string) string {
		return `{"id": "` + id + `", "name": "` + id + `", "steps": [{"id": "wait_` + id + `", "name": "Wait", "kind": "event", "with": {"name": "paid"}}]}`
	}
	document := `{"semantics": 2, "name": "Two waits", "steps": [
		{"id": "hold", "name": "Hold", "kind": "wait", "with": {"for": "1d"}},
		{"id": "both", "name": "Both", "kind": "parallel", "with": {"branches": [` + wait("a") + `, ` + wait("b") + `]}}]}`
	h := build(t, nil)
	h.work()
	id := h.publish(document)
	early, mixed, late := h.start(id, `{}`), h.start(id, `{}`), h.start(id, `{}`)
	pass := func(run engine.RunID) {
		h.awaitWait(run, engine.WaitTime)
		h.exec(fmt.Sprintf(`UPDATE waits SET due_at = now() WHERE run_id = '%s' AND kind = 'time'`, run))
	}
	pass(late)
	h.await(late, "both waits", func(p engine.Progress) bool { return len(p.Waits) == 2 })
	h.send("paid", "", `1`)
	h.await(late, "one wait", func(p engine.Progress) bool { return len(p.Waits) == 1 })
	pass(mixed)
	h.await(mixed, "one wait", func(p engine.Progress) bool {
		return len(p.Waits) == 1 && h.count(`SELECT count(*) FROM event_uses WHERE run_id = $1`, mixed) == 1
	})
	h.send("paid", "", `2`)
	pass(early)
	for _, run := range []engine.RunID{early, mixed, late} {
		h.awaitEnd(run)
		require.ElementsMatch(t, []string{`{"outcome":"received","data":1}`, `{"outcome":"received","data":2}`},
			[]string{h.outputOf(run, "wait_a"), h.outputOf(run, "wait_b")})
	}
}

// outputOf is what the only execution of a step handed on.
func (h *house) outputOf(run engine.RunID, step string) string {
	h.t.Helper()
	var digest string
	err := h.db.Super(h.t).QueryRow(h.t.Context(), `SELECT encode(output_digest, 'hex') FROM step_runs WHERE run_id = $1 AND step_id = $2`, run, step).Scan(&digest)
	require.NoError(h.t, err)
	parsed, err := engine.ParseDigest(digest)
	require.NoError(h.t, err)
	return h.value(parsed)
}
