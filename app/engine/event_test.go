package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/tenants"
)

// oneEvent waits for the money of an order; what follows its key is left open.
const oneEvent = `{
	"semantics": 2, "name": "One event", "input": [{"name": "order", "type": "text"}],
	"steps": [{"id": "paid", "name": "Wait for the money", "kind": "event", "with": {"name": "paid", "key": "{{ input.order }}"%s}}],
	"result": [{"name": "outcome", "formula": "steps.paid.outcome"}, {"name": "data", "formula": "steps.paid.data"}]
}`

// send sends an event by Ana and returns what came of it.
func (h *house) send(name, key, data string) engine.Sent {
	h.t.Helper()
	sent, err := h.trySend(engine.Event{Name: name, Key: key, Data: []byte(data), Sender: "Ana"})
	require.NoError(h.t, err)
	return sent
}

func (h *house) trySend(event engine.Event) (engine.Sent, error) {
	var sent engine.Sent
	err := h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		sent, err = h.engine.SendEvent(ctx, tx, event)
		return err
	})
	return sent, err
}

// waiting starts runs that wait for the money, each for the order that order names.
func (h *house) waiting(with string, runs int, order func(int) string) []engine.RunID {
	h.t.Helper()
	id := h.publish(fmt.Sprintf(oneEvent, with))
	all := make([]engine.RunID, runs)
	for n := range all {
		all[n] = h.start(id, fmt.Sprintf(`{"order": %q}`, order(n)))
	}
	for _, run := range all {
		h.awaitWait(run, engine.WaitEvent)
	}
	return all
}

func order77(int) string { return "77" }

func (h *house) event(id engine.EventID) engine.EventLine {
	h.t.Helper()
	var line engine.EventLine
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		line, err = engine.EventByID(ctx, tx, id)
		return err
	})
	return line
}

// One event serves every run that waits for its name and key, byte for byte, and no
// other; extra ones are kept as unused.
func TestEventServesAllThatWaitForIt(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	runs := h.waiting("", 3, func(n int) string { return fmt.Sprint(n / 2) })
	p, step := h.awaitWait(runs[2], engine.WaitEvent)
	require.Equal(t, "paid", p.Waits[step].EventName)
	require.Equal(t, "1", p.Waits[step].EventKey)
	sent := h.send(" paid ", "0 ", `{"sum": 9007199254740993, "note": "a\u0000b"}`)
	require.Equal(t, 2, sent.Served)
	for _, run := range runs[:2] {
		p := h.awaitEnd(run)
		require.Equal(t, `{"outcome":"received","data":{"sum": 9007199254740993, "note": "a\u0000b"}}`, h.value(p.Steps[0].Output))
		require.Equal(t, engine.RunCompleted, p.Run.State)
	}
	line := h.event(sent.Event.ID)
	require.Equal(t, 2, line.Used)
	require.ElementsMatch(t, runs[:2], []engine.RunID{line.Uses[0].Run, line.Uses[1].Run})
	for _, other := range []string{"0", "2"} {
		require.Zero(t, h.event(h.send("paid", other, `{}`).Event.ID).Used)
	}
	require.Zero(t, h.send("Paid", "1", `{}`).Served)
	h.awaitWait(runs[2], engine.WaitEvent)
}

// At its deadline a wait fails or goes on, as its step says; what was sent before the
// deadline counts, even if the timer comes late, and what was sent after it does not.
func TestEventsDeadline(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	stop := h.workUntilStopped()
	fails := h.waiting(`, "deadline": "3d"`, 1, order77)[0]
	goesOn := h.waiting(`, "deadline": "3d", "on_deadline": "continue"`, 1, order77)[0]
	stop()
	h.exec(`UPDATE waits SET due_at = clock_timestamp() - interval '1 ms'`)
	late := h.send("paid", "77", `1`)
	require.Zero(t, late.Served, "it came after the deadline, though the timer had not fired")
	fired, err := h.engine.FireTimers(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, fired)
	require.Zero(t, h.event(late.Event.ID).Used)
	h.work()
	p := h.awaitEnd(fails)
	require.Equal(t, &engine.Failure{Class: engine.ClassExpired, StepID: "paid",
		Message: "The event “paid” with the key “77” did not come before the deadline."}, p.Run.Failure)
	p = h.awaitEnd(goesOn)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	require.JSONEq(t, `{"outcome": "timeout", "data": null}`, h.value(p.Run.Result))
}

// A sender whose transaction is still open when the deadline passes came in time: the
// timer waits for it, and takes its event if it is committed.
func TestEventThatIsBeingSentAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]bool{"committed": true, "given up": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			stop := h.workUntilStopped()
			run := h.waiting(`, "deadline": "3d", "on_deadline": "continue"`, 1, order77)[0]
			stop()
			h.exec(`UPDATE waits SET due_at = clock_timestamp() + interval '700 ms'`)
			timer := make(chan error, 1)
			_ = h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				sent, err := h.engine.SendEvent(ctx, tx, engine.Event{Name: "paid", Key: "77", Data: []byte(`1`), Sender: "Ana"})
				require.NoError(t, err)
				require.Equal(t, 1, sent.Served)
				require.Eventually(t, func() bool {
					return h.count(`SELECT count(*) FROM waits WHERE due_at <= clock_timestamp()`) == 1
				}, 10*time.Second, 5*time.Millisecond)
				go func() {
					_, err := h.engine.FireTimers(context.WithoutCancel(ctx))
					timer <- err
				}()
				require.Eventually(t, func() bool {
					return h.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
				}, 10*time.Second, 5*time.Millisecond, "the timer does not wait for the sender")
				if !commits {
					return context.Canceled
				}
				return nil
			})
			require.NoError(t, <-timer)
			h.work()
			outcome := map[bool]string{true: `{"outcome":"received","data":1}`, false: `{"outcome":"timeout","data":null}`}[commits]
			require.JSONEq(t, outcome, h.value(h.awaitEnd(run).Run.Result))
		})
	}
}

func TestEventThatCannotBeTakenIsRefused(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	good := engine.Event{Name: "paid", Key: "77", Data: []byte(`{}`), Sender: "Ana"}
	for field, change := range map[string]func(*engine.Event){
		"name":      func(e *engine.Event) { e.Name = " " },
		"key":       func(e *engine.Event) { e.Key = strings.Repeat("ä", engine.MaxEventKey+1) },
		"data":      func(e *engine.Event) { e.Data = []byte(`"` + strings.Repeat("x", engine.MaxEvent) + `"`) },
		"sender":    func(e *engine.Event) { e.Sender = "" },
		"sender_id": func(e *engine.Event) { e.SenderID = "a\nb" },
	} {
		bad := good
		change(&bad)
		_, err := h.trySend(bad)
		var said *engine.BadEvent
		require.ErrorAs(t, err, &said, field)
		require.Equal(t, field, said.Field)
	}
	bad := good
	bad.Data = []byte("{\"a\": 1,\n}")
	_, err := h.trySend(bad)
	var said *expr.BadJSON
	require.ErrorAs(t, err, &said)
	require.Zero(t, h.count(`SELECT count(*) FROM events`))
	most := engine.Event{Name: strings.Repeat("ä", 120), Key: strings.Repeat("ä", engine.MaxEventKey), Data: []byte(`"` + strings.Repeat("x", engine.MaxEvent-2) + `"`), Sender: "Ana"}
	_, err = h.trySend(most)
	require.NoError(t, err)
}

// Sending to very many waits is no giant transaction: the sender wakes the first 50, a
// tick wakes the rest, 200 in each transaction.
func TestEventSpreadsInBoundedTransactions(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	stop := h.workUntilStopped()
	runs := h.waiting("", 300, order77)
	stop()
	sent := h.send("paid", "77", `{}`)
	require.Equal(t, 50, sent.Served)
	require.True(t, sent.More)
	require.True(t, h.event(sent.Event.ID).More)
	served, err := h.engine.SpreadEvents(t.Context())
	require.NoError(t, err)
	require.Equal(t, 250, served)
	require.Equal(t, 200, h.count(`SELECT max(n)::int FROM (SELECT count(*) AS n FROM event_uses GROUP BY xmin) tx`))
	require.False(t, h.event(sent.Event.ID).More)
	require.Equal(t, len(runs), h.event(sent.Event.ID).Used)
	served, err = h.engine.SpreadEvents(t.Context())
	require.NoError(t, err)
	require.Zero(t, served)
	h.work()
	for _, run := range runs {
		h.awaitEnd(run)
	}
}

// Events go after 30 days, with their uses, unless a wait that is open could still use
// them.
func TestOldEventsArePruned(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	stop := h.workUntilStopped()
	run := h.waiting("", 1, order77)[0]
	used := h.send("paid", "77", `1`)
	h.awaitEnd(run)
	unused, young := h.send("paid", "77", `2`), h.send("paid", "78", `3`)
	stop()
	h.exec(fmt.Sprintf(`UPDATE events SET sent_at = sent_at - interval '30 days 1 s' WHERE id <> '%s'`, young.Event.ID))
	needed := h.send("paid", "79", `4`)
	h.exec(fmt.Sprintf(`UPDATE runs SET created_at = created_at - interval '40 days'; UPDATE events SET sent_at = sent_at - interval '31 days' WHERE id = '%s';
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, event_name, event_key)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'event', 'paid', '79' FROM step_runs`, needed.Event.ID))
	gone, err := h.engine.PruneEvents(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, gone)
	for _, kept := range []engine.Sent{young, needed} {
		require.Zero(t, h.event(kept.Event.ID).Used)
	}
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		for _, pruned := range []engine.Sent{used, unused} {
			_, err := engine.EventByID(ctx, tx, pruned.Event.ID)
			require.ErrorIs(t, err, engine.ErrNoEvent)
		}
		return nil
	})
	require.Equal(t, `{"outcome":"received","data":1}`, h.value(h.progress(run).Steps[0].Output), "the run's record stays")
}

// However starting, waiting and sending race, no run misses its event: not one that was
// sent while its run went to sleep.
func TestEventsMeetTheirRunsHoweverTheyRace(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	id := h.publish(fmt.Sprintf(oneEvent, ""))
	runs := make([]engine.RunID, 200)
	var wg sync.WaitGroup
	for n := range runs {
		wg.Go(func() {
			runs[n] = h.start(id, fmt.Sprintf(`{"order": "%d"}`, n))
			for range n % 7 {
				h.progress(runs[n]) // so that some are sent later than others
			}
			h.send("paid", fmt.Sprint(n), fmt.Sprint(n))
		})
		if n%8 == 7 {
			wg.Wait()
		}
	}
	wg.Wait()
	for n, run := range runs {
		require.Equal(t, fmt.Sprintf(`{"outcome":"received","data":%d}`, n), h.value(h.awaitEnd(run).Steps[0].Output))
	}
	require.Equal(t, len(runs), h.count(`SELECT count(*) FROM event_uses`))
	require.Zero(t, h.count(`SELECT count(*) FROM waits WHERE state = 'open'`))
}

// A wait for an event that was lost is found: one that was called off waits on, and what
// was sent meanwhile reaches it; one that had got its event goes on with it; one that
// left no trace fails its run in words.
func TestWatchdogMendsWaitsForEvents(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	stop := h.workUntilStopped()
	runs := h.waiting("", 3, func(n int) string { return fmt.Sprint(n) })
	stop()
	calledOff, served, gone := runs[0], runs[1], runs[2]
	h.exec(fmt.Sprintf(`UPDATE waits SET state = 'cancelled', closed_at = now() WHERE run_id = '%s'`, calledOff))
	for n := range runs {
		h.send("paid", fmt.Sprint(n), fmt.Sprint(n))
	}
	h.exec(`UPDATE step_runs SET slice_id = NULL; DELETE FROM slices`)
	h.exec(fmt.Sprintf(`DELETE FROM waits WHERE run_id = '%s'`, gone))
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, len(runs))
	h.work()
	require.Equal(t, `{"outcome":"received","data":0}`, h.value(h.awaitEnd(calledOff).Steps[0].Output))
	require.Equal(t, `{"outcome":"received","data":1}`, h.value(h.awaitEnd(served).Steps[0].Output))
	p := h.awaitEnd(gone)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Contains(t, p.Run.Failure.Message, "was lost")
}
