package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/tenants"
)

// handle gives a step an on_error.
func handle(step, onError string) string {
	return strings.Replace(step, `"with"`, `"on_error": [`+onError+`], "with"`, 1)
}

func caughtFlow(result string, steps ...string) string {
	return strings.Replace(flow(result, steps...), `"semantics": 2`, `"semantics": 3`, 1)
}

// refusing fails mails to no@example.com, once the others have begun where that is asked for.
func refusing(_ context.Context, to string) *engine.Failure {
	if to == "no@example.com" {
		return &engine.Failure{Class: "refused", Message: "No."}
	}
	return nil
}

// row is the one row of a step.
func (h *house) row(p engine.Progress, step string) engine.StepRun {
	h.t.Helper()
	for _, row := range p.Steps {
		if row.StepID == step && !engine.IsPart(row.Kind) {
			return row
		}
	}
	h.t.Fatalf("no row of %q", step)
	return engine.StepRun{}
}

// A failure inside branches or lists is handled by the nearest step around that says so:
// what else is open inside ends, and what handles it goes on, whatever it is made of.
func TestFailuresAreHandledWhereTheyShould(t *testing.T) {
	t.Parallel()
	h := build(t, echo(refusing))
	h.work()
	h.work()
	sides := step("sides", "parallel", `{"branches": [{"id": "a", "name": "A", "steps": [`+askRita("ok", "Well?")+`]},
		{"id": "b", "name": "B", "steps": [`+step("way", "branch", `{"cases": [{"id": "y", "name": "Y", "when": "true", "steps": [`+sendTo("b1", "no@example.com")+`]}]}`)+`]},
		{"id": "c", "name": "C", "steps": [`+sendTo("c1", "yes@example.com")+`,`+step("nap", "wait", `{"for": "1h"}`)+`]}]}`)
	raises := step("all", "each", `{"items": "input.list", "at_once": 3, "steps": [`+sendTo("mail", "k{{ item }}@example.com")+`,
		`+step("end", "stop", `{"outcome": "raise", "exception": "on_hold", "message": "Item {{ item }}."}`)+`]}`)
	for name, c := range map[string]struct{ doc, want string }{
		"side by side": {caughtFlow("steps.sides.x", handle(sides, `{"classes": ["other"], "do": "fail"}, {"classes": ["refused"], "do": "steps", "steps": [
			`+step("again", "parallel", `{"branches": [{"id": "d", "name": "D", "steps": [`+sendTo("d1", "d@example.com")+`]}, {"id": "e", "name": "E", "steps": [`+sendTo("e1", "e@example.com")+`]}]}`)+`,
			`+setTo("note", "error.step + ': ' + error.message + steps.again.results.d.to")+`]}`)), `"b1: No.d@example.com"`},
		"exception in a list": {caughtFlow("steps.all.x", handle(raises, `{"classes": ["exception"], "do": "steps", "steps": [
			`+step("tell", "each", `{"items": "[1, 2, 3]", "at_once": 2, "result": "steps.told.to", "steps": [`+sendTo("told", "t{{ item }}@example.com")+`]}`)+`,
			`+setTo("note", "error.name + steps.tell.results[2]")+`]}`)), `"on_holdt3@example.com"`},
		"first good side": {caughtFlow("default(steps.p.x, 0)", handle(step("p", "parallel", `{"wait_for": "first", "branches": [{"id": "a", "name": "A", "steps": [`+sendTo("a1", "no@example.com")+`]},
			{"id": "b", "name": "B", "steps": [`+sendTo("b1", "no@example.com")+`]}]}`), `{"classes": ["none_good"], "do": "default", "default": {"x": 5}}`)), `5`},
		"items of their own": {caughtFlow("steps.all.results", step("all", "each", `{"items": "[0, 1, 2, 3]", "at_once": 2, "steps": [`+
			handle(sendTo("m", "{{ item > 1 ? 'no' : 'yes' }}@example.com"), `{"do": "steps", "steps": [`+sendTo("other", "other{{ item }}@example.com")+`]}`)+`]}`)),
			`[{"to":"yes@example.com"},{"to":"yes@example.com"},{"to":"other2@example.com"},{"to":"other3@example.com"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.awaitEnd(h.start(h.publish(c.doc), numbers(40)))
			require.JSONEq(t, c.want, h.result(p))
			h.requireClean(p)
		})
	}
}

// A handled step is done and keeps its failure; what handled it stands inside it, on the
// page, too.
func TestHandledFailureIsKeptAndShown(t *testing.T) {
	t.Parallel()
	h := build(t, echo(refusing))
	h.work()
	run := h.start(h.publish(caughtFlow("steps.m.to", handle(sendTo("m", "no@example.com"), `{"do": "steps", "steps": [`+sendTo("other", "other@example.com")+`]}`))), numbers(1))
	p := h.awaitEnd(run)
	require.JSONEq(t, `"other@example.com"`, h.result(p))
	failed := h.row(p, "m")
	require.Equal(t, engine.StepDone, failed.State)
	require.True(t, failed.Caught())
	require.Equal(t, "No.", failed.Failure.Message)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		view, err := engine.ViewOf(ctx, tx, run, engine.StepRunID{})
		require.Len(t, view.Steps, 2)
		require.Equal(t, failed.ID, view.Steps[1].Parent)
		return err
	})
}

// People may be asked whether a run goes on behind a failure: their answer is the step's
// result, and a no lets it fail as it had.
func TestPeopleAreAskedAboutAFailure(t *testing.T) {
	t.Parallel()
	h := build(t, echo(refusing))
	h.work()
	id := h.publish(caughtFlow("steps.m.verdict", handle(sendTo("m", "no@example.com"), `{"do": "ask", "ask": {"question": "Go on? {{ error.message }}", "people": [{"email": "rita@example.com"}], "due": "1h", "on_deadline": "fail"}}`)))
	for verdict, check := range map[review.Verdict]func(engine.Progress){
		review.Approve: func(p engine.Progress) { require.JSONEq(t, `"approved"`, h.result(p)) },
		review.Reject: func(p engine.Progress) {
			require.Equal(t, engine.RunFailed, p.Run.State)
			require.Equal(t, "refused", p.Run.Failure.Class)
			require.Equal(t, "m", p.Run.Failure.StepID)
		},
	} {
		run := h.start(id, numbers(1))
		_, step := h.awaitWait(run, engine.WaitReview)
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			detail, err := h.reviews.ByStepRun(ctx, tx, step)
			if err != nil {
				return err
			}
			require.Equal(t, "Go on? No.", detail.Content.Title)
			_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, verdict, "Because."))
			return err
		})
		p := h.awaitEnd(run)
		check(p)
		h.requireClean(p)
	}
	run := h.start(id, numbers(1))
	h.awaitWait(run, engine.WaitReview)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM mails WHERE sent_at IS NULL`) == 0 }, 10*time.Second, 10*time.Millisecond)
	h.exec(`UPDATE reviews SET due_at = now() - interval '1 hour' WHERE state = 'open'`)
	h.exec(`UPDATE waits SET due_at = now() - interval '1 hour' WHERE state = 'open'`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.ClassExpired, p.Run.Failure.Class)
	h.requireClean(p)
}
