package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// hand is a person with a form of her own.
func hand() engine.Hand {
	return engine.Hand{By: tenants.Actor{Kind: tenants.ActorMember, Name: "Ana"}, Key: tenants.NewID[int]().String()}
}

// patient fails the mails to an address until it is told to let them through, and knows
// under which keys the others went out. A call that was cut may come again, with its key.
type patient struct {
	mu   sync.Mutex
	bad  map[string]bool
	sent map[string]map[string]bool
}

func newPatient(bad ...string) *patient {
	p := &patient{bad: map[string]bool{}, sent: map[string]map[string]bool{}}
	for _, to := range bad {
		p.bad[to+"@example.com"] = true
	}
	return p
}

// callers answer each mail with its address.
func (p *patient) callers() map[pipeline.Kind]engine.Caller {
	return mailCaller(func(_ context.Context, call engine.Call) engine.Reply {
		var input engine.EmailInput
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return engine.Reply{Failure: &engine.Failure{Class: "input", Message: err.Error()}}
		}
		to := input.To[0]
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.bad[to] {
			return engine.Reply{Failure: &engine.Failure{Class: "mail_refused", Message: "The address does not exist."}}
		}
		if p.sent[to] == nil {
			p.sent[to] = map[string]bool{}
		}
		p.sent[to][call.Key] = true
		return engine.Reply{Output: []byte(fmt.Sprintf(`{"to": %q}`, to))}
	})
}

// heal lets all mails through.
func (p *patient) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.bad)
}

func (p *patient) requireSentOnce(t *testing.T, names ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	want, sent := map[string]int{}, map[string]int{}
	for _, name := range names {
		want[name+"@example.com"] = 1
	}
	for to, keys := range p.sent {
		sent[to] = len(keys)
	}
	require.Equal(t, want, sent)
}

func (h *house) planRetry(run engine.RunID) engine.RetryPlan {
	h.t.Helper()
	var plan engine.RetryPlan
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		plan, err = engine.PlanRetry(ctx, tx, run)
		return err
	})
	return plan
}

func (h *house) retry(run engine.RunID) error {
	return h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Retry(ctx, tx, run, "", hand()) })
}

// healing are flows in which "bad" fails at first, with what each sends once it is tried
// again and what it then gives. Whatever was done before is not done again.
var healing = map[string]struct {
	document, input, result string
	sends                   []string
	again                   int // steps that the plan says begin anew
}{
	"at the top": {flow("steps.three.to", sendTo("one", "a@example.com"), sendTo("two", "bad@example.com"), sendTo("three", "c@example.com")),
		numbers(1), `"c@example.com"`, []string{"a", "bad", "c"}, 1},
	"in a case of branches": {flow("steps.after.to", sendTo("one", "a@example.com"),
		step("ways", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "true", "steps": [`+sendTo("inner", "b@example.com")+","+sendTo("two", "bad@example.com")+`]}]}`),
		sendTo("after", "c@example.com")), numbers(1), `"c@example.com"`, []string{"a", "b", "bad", "c"}, 1},
	"in a round": {flow("steps.again.rounds", step("again", "repeat",
		`{"until": "round >= 2", "max_rounds": 3, "max_time": "1h", "max_cost": 1, "at_limit": "fail", "steps": [`+sendTo("one", "a{{ round }}@example.com")+","+setTo("x", "round")+","+
			step("ways", "branch", `{"cases": [{"id": "second", "name": "Second", "when": "round == 2", "steps": [`+sendTo("two", "bad@example.com")+`]}]}`)+`]}`)),
		numbers(1), `2`, []string{"a1", "a2", "bad"}, 1},
	"side by side": {flow("steps.both.results", step("both", "parallel", `{"branches": [
		{"id": "l", "name": "L", "steps": [`+sendTo("left", "a@example.com")+","+sendTo("two", "bad@example.com")+`], "result": "steps.two.to"},
		{"id": "r", "name": "R", "steps": [`+step("pause", "wait", `{"for": "1h"}`)+`], "result": "1"}]}`)),
		numbers(1), ``, []string{"a", "bad"}, -1},
	"for one of the items": {flow("steps.all.results", step("all", "each",
		`{"items": "input.list", "at_once": 2, "result": "steps.last.to", "steps": [`+sendTo("first", "a{{ item }}@example.com")+","+
			step("ways", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "item == 3", "steps": [`+sendTo("two", "bad@example.com")+`]}]}`)+","+
			sendTo("last", "z{{ item }}@example.com")+`]}`)), numbers(9),
		`["z0@example.com","z1@example.com","z2@example.com","z3@example.com","z4@example.com","z5@example.com","z6@example.com","z7@example.com","z8@example.com"]`,
		append(strings.Fields("a0 a1 a2 a3 a4 a5 a6 a7 a8"), strings.Fields("bad z0 z1 z2 z3 z4 z5 z6 z7 z8")...), -1},
	"where a formula reads what is not there": {flow("steps.x.x", sendTo("one", "a@example.com"), sendTo("two", "bad@example.com"), setTo("x", "input.n + 1")),
		numbers(1), `2`, []string{"a", "bad"}, 1},
}

// The failed step is tried again in the same run: what was done is kept and not done
// again, what was stopped with it goes on, and the run ends as if nothing had failed.
func TestAFailedStepIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range healing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mails := newPatient("bad")
			h := build(t, mails.callers())
			h.work()
			run := h.start(h.publish(c.document), c.input)
			failed := h.awaitEnd(run)
			require.Equal(t, engine.RunFailed, failed.Run.State)
			h.requireClean(failed)
			plan := h.planRetry(run)
			if c.again >= 0 {
				require.Len(t, plan.Again, c.again)
			}
			require.Contains(t, []string{"two"}, plan.Again[0].Node.ID())
			mails.heal()
			require.NoError(t, h.retry(run))
			if name == "side by side" {
				h.letGo(run)
			}
			p := h.awaitEnd(run)
			result := h.result(p)
			if c.result != "" {
				require.JSONEq(t, c.result, result)
			}
			mails.requireSentOnce(t, c.sends...)
			require.Equal(t, failed.Run.ID, p.Run.ID)
			require.Equal(t, 1, p.Run.Reopened)
			require.Nil(t, p.Run.Failure)
			h.requireClean(p)
			h.requireKept(failed, p)
			require.Equal(t, 1, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'run.retried' AND target_id = $1`, run))
		})
	}
}

// letGo ends the wait for a time of a run by hand.
func (h *house) letGo(run engine.RunID) {
	h.t.Helper()
	_, step := h.awaitWait(run, engine.WaitTime)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		plan, err := engine.PlanAnswer(ctx, tx, run, step)
		require.NoError(h.t, err)
		require.False(h.t, plan.TakesData())
		return h.engine.Answer(ctx, tx, run, step, nil, plan.Mark, hand())
	})
}

// requireKept checks that what was done before is the same row with the same output.
func (h *house) requireKept(before, after engine.Progress) {
	h.t.Helper()
	now := map[engine.StepRunID]engine.StepRun{}
	for _, row := range after.Steps {
		now[row.ID] = row
	}
	for _, row := range before.Steps {
		if row.State == engine.StepDone {
			require.Equal(h.t, row, now[row.ID])
		}
	}
}

// A step has all the tries of its rule again, and the page tells of every one.
func TestAStepThatIsTriedAgainHasAllItsTries(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: "busy", Message: "Later."}}
	}))
	h.work()
	run := h.start(h.publish(strings.Replace(oneMail, `"first": "1s"`, `"first": "1s", "longest": "1s"`, 1)), `{"n": 1}`)
	h.hurry(run)
	require.Equal(t, 3, h.awaitEnd(run).Steps[0].Attempt)
	require.NoError(t, h.retry(run))
	h.hurry(run)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, 6, p.Steps[0].Attempt)
	require.Len(t, h.attempts(p.Steps[0].ID), 6)
}

// hurry lets every pause between tries be over at once, until the run ends.
func (h *house) hurry(run engine.RunID) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		_, err := h.super().Exec(h.t.Context(), `UPDATE waits SET due_at = now() WHERE run_id = $1 AND state = 'open' AND kind = 'retry'`, run)
		require.NoError(h.t, err)
		return h.progress(run).Run.State.Final()
	}, 30*time.Second, 20*time.Millisecond)
}

// What would fail the same way again is said before, and nothing is changed.
func TestWhatWouldFailAgainIsNotTried(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	for _, document := range []string{
		flow("steps.again.rounds", step("again", "repeat", `{"until": "false", "max_rounds": 2, "max_time": "1h", "max_cost": 1, "at_limit": "fail", "steps": [`+setTo("x", "round")+`]}`)),
		flow("number(\"no\" + text(steps.x.x))", setTo("x", "1")),
	} {
		run := h.start(h.publish(document), numbers(1))
		before := h.awaitEnd(run)
		require.Equal(t, engine.RunFailed, before.Run.State)
		var refused *engine.NotRetryable
		require.ErrorAs(t, h.retry(run), &refused)
		require.Equal(t, before, h.progress(run))
	}
}

// Only a failed run is tried again, of the own tenant, and not twice by one form; a page
// that knows of an earlier failure changes nothing.
func TestRetryIsGuarded(t *testing.T) {
	t.Parallel()
	mails := newPatient("bad")
	h := build(t, mails.callers())
	h.work()
	document := h.publish(flow("1", sendTo("two", "bad@example.com"), askRita("ask", "Well?")))
	run := h.start(document, numbers(1))
	h.awaitEnd(run)
	other, _ := h.db.Tenant(t)
	err := h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error { return h.engine.Retry(ctx, tx, run, "", hand()) })
	require.ErrorIs(t, err, engine.ErrNoRun)
	seen := h.planRetry(run).Mark
	require.NoError(t, h.retry(run)) // somebody else
	h.awaitEnd(run)
	err = h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Retry(ctx, tx, run, seen, hand()) })
	require.ErrorIs(t, err, engine.ErrMoved)
	mails.heal()
	form, seen := hand(), h.planRetry(run).Mark
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			require.NoError(t, h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Retry(ctx, tx, run, seen, form) }))
		})
	}
	both.Wait()
	h.awaitWait(run, engine.WaitReview)
	require.Equal(t, 2, h.progress(run).Run.Reopened)
	require.ErrorIs(t, h.retry(run), engine.ErrNotFailed)
}

// A pipeline that takes one run at once lets a run that is tried again wait for its turn,
// and takes it up where it stood.
func TestARunThatIsTriedAgainWaitsForRoom(t *testing.T) {
	t.Parallel()
	mails := newPatient("bad")
	h := build(t, mails.callers())
	h.work()
	document := strings.Replace(flow("1", sendTo("one", "a{{ input.n }}@example.com"), sendTo("two", "bad@example.com"), askRita("ask", "Well?")),
		`"steps"`, `"concurrency": {"limit": 1, "policy": "queue"}, "steps"`, 1)
	id := h.publish(document)
	first := h.start(id, numbers(1))
	require.Equal(t, engine.RunFailed, h.awaitEnd(first).Run.State)
	mails.heal()
	second := h.start(id, numbers(2))
	h.awaitWait(second, engine.WaitReview)
	require.NoError(t, h.retry(first))
	require.Equal(t, engine.RunQueued, h.progress(first).Run.State)
	require.NoError(t, h.op(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, second, "Ana") }))
	h.awaitWait(first, engine.WaitReview)
	require.Len(t, h.progress(first).Steps, 3)
}

// Whoever is first, a retry or the failure: the run is tried again or has not failed yet,
// and in the end it is done with each mail sent once.
func TestARetryRacingTheFailure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string]int{}
	h := build(t, mailCaller(func(_ context.Context, call engine.Call) engine.Reply {
		mu.Lock()
		defer mu.Unlock()
		if tries[fmt.Sprint(call.Key)]++; tries[fmt.Sprint(call.Key)] == 1 {
			return engine.Reply{Failure: &engine.Failure{Class: "mail_refused", Message: "No."}}
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	h.work()
	id := h.publish(flow("1", sendTo("one", "a@example.com")))
	for range racesTried() / 2 {
		run := h.start(id, numbers(1))
		require.Eventually(t, func() bool {
			err := h.retry(run)
			if err != nil {
				require.ErrorIs(t, err, engine.ErrNotFailed)
			}
			return err == nil
		}, 30*time.Second, time.Millisecond)
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State)
		require.Equal(t, 2, p.Steps[0].Attempt)
	}
}

// Where what handles a failure fails itself, that is what is tried again.
func TestWhatHandlesAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	mails := newPatient("bad", "worse")
	h := build(t, mails.callers())
	h.work()
	document := strings.Replace(flow("steps.after.to",
		`{"id": "one", "name": "One", "kind": "email", "with": {"to": ["bad@example.com"], "subject": "s", "body": "b"},
			"on_error": [{"do": "steps", "steps": [`+sendTo("sorry", "a@example.com")+","+sendTo("two", "worse@example.com")+`]}]}`,
		sendTo("after", "c@example.com")), `"semantics": 2`, `"semantics": 3`, 1)
	run := h.start(h.publish(document), numbers(1))
	require.Equal(t, engine.RunFailed, h.awaitEnd(run).Run.State)
	plan := h.planRetry(run)
	require.Len(t, plan.Again, 1)
	require.Equal(t, "two", plan.Again[0].Node.ID())
	mails.heal()
	require.NoError(t, h.retry(run))
	h.result(h.awaitEnd(run))
	mails.requireSentOnce(t, "a", "worse", "c")
}

// S10: of 30 items one is ended by hand; the list is joined at once, in the order of the
// items, and the step that was left out gives what the person said.
func TestCaseS10OneItemEndedByHand(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	run := h.start(h.publish(flow("steps.all.results", step("all", "each",
		`{"items": "input.list", "at_once": 30, "result": "steps.paid.data", "steps": [`+step("paid", "event", `{"name": "paid", "key": "{{ item }}"}`)+`]}`))), numbers(30))
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM waits WHERE run_id = $1 AND state = 'open'`, run) == 30
	}, 30*time.Second, 10*time.Millisecond)
	var skipped engine.StepRunID
	require.NoError(t, h.super().QueryRow(t.Context(), `
		SELECT s.id FROM step_runs s JOIN step_runs i ON i.id = s.parent_id WHERE s.run_id = $1 AND s.step_id = 'paid' AND i.turn = 7`, run).Scan(&skipped))
	require.NoError(t, h.skip(run, skipped, `{"outcome": "received", "data": "by hand"}`, ""))
	for n := range 30 {
		if n != 7 {
			require.Equal(t, 1, h.send("paid", fmt.Sprint(n), fmt.Sprint(n)).Served)
		}
	}
	p := h.awaitEnd(run)
	var results []any
	require.NoError(t, json.Unmarshal([]byte(h.result(p)), &results))
	require.Len(t, results, 30)
	for n, result := range results {
		if n == 7 {
			require.Equal(t, "by hand", result)
		} else {
			require.EqualValues(t, n, result)
		}
	}
	h.requireClean(p)
}
