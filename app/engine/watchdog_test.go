package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
)

// breakages put a run into each state in which nothing would wake it. They are done to
// the rows by hand: the product must never get there by itself.
var breakages = map[engine.StuckKind]struct {
	document string
	until    func(*house, engine.RunID)
	damage   []string
}{
	engine.StuckJobGone: {
		document: oneMail,
		until:    func(h *house, _ engine.RunID) { h.pump() },
		damage:   []string{`DELETE FROM river.river_job`},
	},
	engine.StuckNoStep: {
		document: oneMail,
		until:    func(*house, engine.RunID) {},
		damage:   []string{`DELETE FROM slices`, `DELETE FROM river.river_job`},
	},
	engine.StuckNoWait: {
		document: oneQuestion,
		until: func(h *house, run engine.RunID) {
			h.cap(0)
			h.passBy(run, engine.WaitCap)
			h.cap(10_000_000)
		},
		damage: []string{`UPDATE waits SET state = 'cancelled', closed_at = now()`},
	},
	engine.StuckNoSlice: {
		document: oneMail,
		until:    func(h *house, run engine.RunID) { h.pump(); h.pretendRunning(run) },
		damage:   []string{`DELETE FROM slices`, `DELETE FROM river.river_job`},
	},
	engine.StuckNoWaker: {
		document: oneMail,
		until: func(h *house, run engine.RunID) {
			h.pretendRunning(run)
			h.exec(`UPDATE step_runs SET state = 'waiting', slice_id = NULL`)
			h.exec(`INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, due_at) SELECT tenant_id, gen_random_uuid(), run_id, id, 'retry', now() FROM step_runs`)
			h.exec(`DELETE FROM slices`)
		},
		damage: []string{`UPDATE waits SET due_at = NULL`},
	},
	engine.StuckUnserved: {
		document: oneMail,
		until: func(h *house, _ engine.RunID) {
			idle := h.engine.NewWorker("idle")
			idle.Slots = 1
			require.NoError(h.t, idle.Beat(h.t.Context()))
		},
		damage: []string{`UPDATE slices SET crowded = true`}, // and in no window
	},
	engine.StuckLeftPaused: {
		document: oneMail,
		until:    func(*house, engine.RunID) {},
		damage:   []string{`UPDATE slices SET state = 'paused'`},
	},
	engine.StuckSlotLeaked: {
		document: oneMail,
		until:    func(h *house, run engine.RunID) { h.pump(); h.pretendRunning(run) },
		damage: []string{`DELETE FROM river.river_job`,
			`UPDATE slices SET state = 'running', claimed_at = now(), worker_id = gen_random_uuid()`},
	},
}

func TestWatchdogMendsEveryKindOfStuck(t *testing.T) {
	t.Parallel()
	for kind, broken := range breakages {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			run := h.start(h.publish(broken.document), `{"n": 1}`)
			broken.until(h, run)
			for _, statement := range broken.damage {
				h.exec(statement)
			}
			h.age()
			watcher := h.otherWorker()
			found, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1, "%+v", found)
			require.Equal(t, kind, found[0].Kind)
			require.Equal(t, run, found[0].Run)
			require.True(t, found[0].Repaired)

			h.age()
			again, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Empty(t, again, "it found its own repair")
			h.work()
			require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
		})
	}
}

// A lost wait of a review that is still open is opened again, and the answer counts.
func TestWatchdogReopensTheWaitOfAnOpenReview(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	step := h.passBy(run, engine.WaitReview)
	h.exec(`DELETE FROM slices`)
	h.exec(`UPDATE waits SET state = 'cancelled', closed_at = now()`)
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	h.work()
	h.decide(step, review.Approve, "")
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// What works or waits as it should is left alone.
func TestWatchdogLeavesSoundRunsAlone(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	waiting := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	h.passBy(waiting, engine.WaitReview)
	h.start(h.publish(oneMail), `{"n": 1}`) // queued behind nobody
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// passBy lets a working process bring the run to a wait, and stops it again.
func (h *house) passBy(run engine.RunID, kind engine.WaitKind) engine.StepRunID {
	h.t.Helper()
	stop := h.workUntilStopped()
	defer stop()
	_, step := h.awaitWait(run, kind)
	return step
}

// pretendRunning puts the run where a worker would have begun its step.
func (h *house) pretendRunning(run engine.RunID) {
	h.t.Helper()
	input := `{"to":["kim@example.com"],"subject":"Hello","body":"Hello."}`
	digest := engine.DigestOf([]byte(input))
	_, err := h.db.Super(h.t).Exec(h.t.Context(), `
		INSERT INTO stored_values (tenant_id, digest, size, media_type, content) VALUES (@tenant, @digest, @size, 'application/json', @content)`,
		pgx.NamedArgs{"tenant": h.tenant, "digest": digest[:], "size": len(input), "content": []byte(input)})
	require.NoError(h.t, err)
	_, err = h.db.Super(h.t).Exec(h.t.Context(), `
		INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, fence, slice_id, input_digest)
		SELECT tenant_id, gen_random_uuid(), run_id, 'send', 'email', 'running', 1, id, @digest FROM slices WHERE run_id = @run`,
		pgx.NamedArgs{"run": run, "digest": digest[:]})
	require.NoError(h.t, err)
}

// age makes everything look as if it had been so for a while.
func (h *house) age() {
	h.t.Helper()
	for _, statement := range []string{
		`UPDATE slices SET created_at = created_at - interval '1 minute', ready_at = ready_at - interval '1 minute',
			dispatched_at = dispatched_at - interval '1 minute', claimed_at = claimed_at - interval '1 minute'`,
		`UPDATE waits SET opened_at = opened_at - interval '1 minute'`,
		`UPDATE step_runs SET begun_at = begun_at - interval '1 minute'`,
		`UPDATE runs SET created_at = created_at - interval '1 minute'`,
	} {
		h.exec(statement)
	}
}

func (h *house) exec(statement string) {
	h.t.Helper()
	_, err := h.super().Exec(context.Background(), statement)
	require.NoError(h.t, err)
}

// A job that River fetched, and that never came here, is as good as gone.
func TestWatchdogReplacesAJobThatWasFetchedAndLost(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	h.pump()
	watcher := h.otherWorker()
	h.exec(`UPDATE river.river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY['` + watcher.ID.String() + `']`)
	h.age()
	found, err := watcher.Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found, "it has only just been fetched")
	h.exec(`UPDATE river.river_job SET attempted_at = now() - interval '1 minute'`)
	found, err = watcher.Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, engine.StuckJobGone, found[0].Kind)
	h.work()
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// A group whose inner step has ended, with nothing to carry on behind it, is found too.
func TestWatchdogFindsAGroupThatNothingCarriesOn(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	h := build(t, mailCaller(func(ctx context.Context, _ engine.Call) engine.Reply {
		close(began)
		<-ctx.Done()
		return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}}
	}))
	run := h.start(h.publish(`{"semantics": 1, "name": "Nested", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "route", "name": "Route", "kind": "branch", "with": {"cases": [{"id": "yes", "name": "Yes", "when": "input.n > 0", "steps": [
			{"id": "send", "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}]}]}}]}`), `{"n": 1}`)
	args, id := h.slice(run)
	ctx, cut := context.WithCancel(t.Context())
	over := make(chan error)
	first := h.otherWorker()
	go func() { over <- first.Drive(ctx, args, &handJob{id: id, tries: 1}) }()
	<-began
	h.exec(`UPDATE step_runs SET state = 'done', ended_at = now(), slice_id = NULL WHERE kind = 'email'`)
	h.exec(`DELETE FROM slices`)
	h.exec(`DELETE FROM river.river_job`)
	cut()
	require.NoError(t, <-over)
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, engine.StuckNoStep, found[0].Kind)
	h.work()
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// A worker that died days ago, with everybody else, has its slices taken over; only
// then is it forgotten.
func TestSlicesOfAWorkerThatDiedDaysAgoAreTakenOver(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { panic("the power is cut") }))
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	args, id := h.slice(run)
	dead := h.otherWorker()
	require.Panics(t, func() { _ = dead.Drive(t.Context(), args, &handJob{id: id, tries: 1}) })
	h.exec(`UPDATE workers SET beat_at = now() - interval '9 days', started_at = now() - interval '9 days'`)
	h.age()
	reaper := h.otherWorker()
	forget := func() {
		h.exec(`UPDATE workers SET started_at = now() - interval '1 day' WHERE beat_at > now() - interval '1 minute'`)
		require.NoError(t, h.db.InSystemTx(t.Context(), reaper.ForgetWorkers))
	}
	forget()
	require.Equal(t, 2, h.count(`SELECT count(*) FROM workers`), "it has left something")
	require.NoError(t, reaper.BuryOthers(t.Context()))
	taken, err := reaper.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	forget()
	require.Equal(t, 1, h.count(`SELECT count(*) FROM workers`))
}

// A slot that is taken in the name of a run that has ended is given back, whichever state
// it was left in, and its job comes to nothing.
func TestWatchdogFreesTheSlotsOfARunThatHasEnded(t *testing.T) {
	t.Parallel()
	for state, damage := range map[string]string{
		"ready":      `UPDATE slices SET state = 'ready'`,
		"dispatched": `UPDATE slices SET state = 'dispatched', dispatched_at = now()`,
		"running":    `UPDATE slices SET state = 'running', claimed_at = now(), worker_id = (SELECT id FROM workers LIMIT 1), job_id = (SELECT id FROM river.river_job LIMIT 1)`,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			run := h.start(h.publish(oneMail), `{"n": 1}`)
			h.pump()
			watcher := h.otherWorker()
			h.exec(damage)
			h.exec(`UPDATE runs SET state = 'cancelled', ended_at = now() - interval '1 minute'`)
			h.age()
			found, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, found)
			require.Zero(t, h.count(`SELECT count(*) FROM slices`))
			found, err = watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Empty(t, found)
			require.Equal(t, engine.RunCancelled, h.progress(run).Run.State)
		})
	}
}

// A job that River has as running, though its slice is another's by now or gone, is ended;
// one whose slice it still carries is not.
func TestWatchdogEndsOrphanedJobs(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"slice gone": `DELETE FROM slices`, "slice moved on": `UPDATE slices SET fence = fence + 1, state = 'ready', job_id = NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			run := h.start(h.publish(oneMail), `{"n": 1}`)
			h.pump()
			watcher := h.otherWorker()
			h.pretendRunning(run)
			h.exec(`UPDATE river.river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 minute', attempted_by = ARRAY['gone']`)
			h.exec(`UPDATE slices SET state = 'running', claimed_at = now(), worker_id = '` + watcher.ID.String() + `', job_id = (SELECT id FROM river.river_job)`)
			found, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Empty(t, found, "its slice is where it says")
			h.exec(damage)
			found, err = watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, engine.StuckJobOrphaned, found[0].Kind)
			require.True(t, found[0].Repaired)
			require.Zero(t, h.count(`SELECT count(*) FROM river.river_job WHERE finalized_at IS NULL`))
		})
	}
}

// An answer that did not reach its run is reported: the watchdog makes none up.
func TestWatchdogReportsAnAnswerThatWasLost(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	h.passBy(run, engine.WaitReview)
	h.exec(`UPDATE reviews SET state = 'closed', outcome = 'approved', closed_at = now()`)
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.ErrorContains(t, err, "answer did not reach")
	require.Len(t, found, 1)
	require.Equal(t, engine.StuckNoWaker, found[0].Kind)
	require.False(t, found[0].Repaired)
	require.Equal(t, engine.RunRunning, h.progress(run).Run.State)
}

// What a worker leaves behind when it dies is cleared up by the take-over: no job of its
// slice counts as running any more.
func TestTakeOverEndsTheJobOfTheDead(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { panic("the power is cut") }))
	h.start(h.publish(oneMail), `{"n": 1}`)
	h.pump()
	dead := h.otherWorker()
	h.exec(`UPDATE river.river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = ARRAY['` + dead.ID.String() + `']`)
	h.exec(`UPDATE slices SET state = 'running', claimed_at = now(), worker_id = '` + dead.ID.String() + `', job_id = (SELECT id FROM river.river_job)`)
	other := h.otherWorker()
	require.NoError(t, other.BuryOthers(t.Context()))
	taken, err := other.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	require.Zero(t, h.count(`SELECT count(*) FROM river.river_job WHERE state = 'running'`))
}

const everyGroup = `{"semantics": 3, "name": "Every group", "input": [{"name": "n", "type": "number"}], "steps": [
	{"id": "sides", "name": "Sides", "kind": "parallel", "with": {"branches": [
		{"id": "left", "name": "Left", "steps": [{"id": "a", "name": "A", "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]}}]},
		{"id": "right", "name": "Right", "steps": [{"id": "b", "name": "B", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Mail b", "body": "Hello."}}]}]}},
	{"id": "items", "name": "Items", "kind": "each", "with": {"items": "[1, 2, 3, 4, 5]", "at_once": 2, "steps": [
		{"id": "c", "name": "C", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Mail c", "body": "Hello."}}]}},
	{"id": "rounds", "name": "Rounds", "kind": "repeat", "with": {"until": "round >= 2", "max_rounds": 5, "max_cost": 5000000, "max_time": "1h", "at_limit": "fail", "steps": [
		{"id": "d", "name": "D", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Mail d", "body": "Hello."}}]}},
	{"id": "fails", "name": "Fails", "kind": "set", "with": {"values": [{"name": "x", "formula": "1 / 0"}]}, "on_error": [{"do": "steps", "steps": [
		{"id": "e", "name": "E", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Mail e", "body": "Hello."}}]}]}]}`

// A worker stops dead in the middle of branches side by side or of a list. Whatever of it
// is lost then, as by a hand in the tables, the watchdog finds, and the run ends well.
func TestWatchdogMendsGroups(t *testing.T) {
	t.Parallel()
	done := `UPDATE step_runs SET state = 'done', ended_at = now() - interval '1 minute', slice_id = NULL WHERE state <> 'done' AND `
	nobody := []string{`DELETE FROM slices`, `DELETE FROM river.river_job`, `UPDATE step_runs SET ended_at = ended_at - interval '1 minute'`}
	for name, broken := range map[string]struct {
		step   string
		kind   engine.StuckKind
		damage []string
	}{
		"branches that nobody joins":      {"b", engine.StuckLostJoin, []string{done + `step_id = 'b'`, done + `step_id = 'sides' AND parent_id IS NOT NULL`}},
		"items that nobody joins":         {"c", engine.StuckLostJoin, []string{done + `step_id = 'c'`, done + `step_id = 'items' AND parent_id IS NOT NULL`}},
		"a branch that nobody carries on": {"b", engine.StuckLostPart, []string{done + `step_id = 'b'`}},
		"a branch that nobody begins": {"b", engine.StuckLostPart, []string{`DELETE FROM attempts WHERE step_run_id IN (SELECT id FROM step_runs WHERE step_id = 'b')`,
			`DELETE FROM step_runs WHERE step_id = 'b'`}},
		"items that nobody carries on":             {"c", engine.StuckLostPart, []string{done + `step_id = 'c'`}},
		"rounds that nobody carries on":            {"d", engine.StuckLostPart, []string{done + `step_id = 'd'`}},
		"a handled failure that nobody carries on": {"e", engine.StuckLostPart, []string{done + `step_id = 'e'`}},
		"items that nobody takes": {"c", engine.StuckLostItems, []string{done + `step_id = 'c'`, done + `step_id = 'items' AND parent_id IS NOT NULL AND state <> 'queued'`,
			`UPDATE step_runs SET slice_id = gen_random_uuid() WHERE state = 'queued'`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{}, 100)
			var hang atomic.Bool
			hang.Store(true)
			h := build(t, mailCaller(func(ctx context.Context, call engine.Call) engine.Reply {
				if hang.Load() && strings.Contains(string(call.Input), "Mail "+broken.step) {
					reached <- struct{}{}
					<-ctx.Done()
					return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}}
				}
				return engine.Reply{Output: []byte(`{}`)}
			}))
			stop := h.workUntilStopped()
			run := h.start(h.publish(everyGroup), `{"n": 1}`)
			<-reached
			stop()
			hang.Store(false)
			for _, statement := range append(broken.damage, nobody...) {
				h.exec(statement)
			}
			h.age()
			found, err := h.otherWorker().Watch(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, found)
			kinds := map[engine.StuckKind]bool{}
			for _, f := range found {
				kinds[f.Kind] = true
			}
			require.True(t, kinds[broken.kind], "%+v", found)
			h.work()
			require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
		})
	}
}

// A branch that is lost behind a list goes on there, though one that only came too late to
// join it would end.
func TestWatchdogGoesOnBehindAListThatWasJoined(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(`{"semantics": 2, "name": "Behind", "steps": [
		{"id": "all", "name": "All", "kind": "each", "with": {"items": "[]", "at_once": 1, "steps": [
			{"id": "x", "name": "X", "kind": "set", "with": {"values": [{"name": "x", "formula": "item"}]}}]}},
		{"id": "nap", "name": "Nap", "kind": "wait", "with": {"for": "1s"}}]}`), `{}`)
	h.passBy(run, engine.WaitTime)
	for _, statement := range []string{`DELETE FROM waits`, `DELETE FROM step_runs WHERE kind = 'wait'`, `DELETE FROM slices`} {
		h.exec(statement)
	}
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, engine.StuckNoStep, found[0].Kind)
	h.work()
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}
