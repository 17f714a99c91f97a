package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// An event that a step sends meets the runs that wait for it, and those that will, once
// for each execution of the step, and in the commit of the step.
func TestStepsSendEventsOnce(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	h.work()
	waits := h.publish(caughtFlow("steps.paid.data.sum", step("paid", "event", `{"name": "paid", "key": "o-{{ input.n }}", "deadline": "1h"}`)))
	early := h.start(waits, numbers(7))
	h.awaitWait(early, engine.WaitEvent)
	sends := h.publish(caughtFlow("steps.all.results", step("all", "each", `{"items": "[6, 7, 8, 9, 10, 11]", "at_once": 3, "result": "steps.tell.event", "steps": [`+
		step("tell", "emit", `{"name": "paid", "key": "o-{{ item }}", "data": [{"name": "sum", "formula": "item * 100"}]}`)+`]}`)))
	run := h.start(sends, numbers(1))
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.JSONEq(t, `700`, h.result(h.awaitEnd(early)))
	require.Equal(t, 6, h.count(`SELECT count(*) FROM events`))
	require.Equal(t, 6, h.count(`SELECT count(*) FROM events e JOIN step_runs s ON s.id::text = e.sender_id AND s.step_id = 'tell' AND s.state = 'done'`))
	require.Equal(t, 6, h.count(`SELECT count(*) FROM events WHERE sender = 'Run #1 of Flow' AND name = 'paid'`))
	h.requireClean(p)
	both := h.publish(caughtFlow("steps.p.results.b.data.sum", step("p", "parallel", `{"branches": [
		{"id": "a", "name": "A", "steps": [`+step("tell", "emit", `{"name": "own", "data": [{"name": "sum", "formula": "5"}]}`)+`]},
		{"id": "b", "name": "B", "steps": [`+step("own", "event", `{"name": "own", "deadline": "1h"}`)+`]}]}`)))
	require.JSONEq(t, `5`, h.result(h.awaitEnd(h.start(both, numbers(1)))))
}

// What cannot be sent is the step's failure, and nothing is sent.
func TestEventsThatStepsCannotSend(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	for want, with := range map[string]string{
		"at most 200 are possible": `{"name": "paid", "key": "{{ input.list }}"}`,
		"larger than 256 KB":       `{"name": "paid", "data": [{"name": "x", "formula": "input.list"}]}`,
	} {
		n := 200
		if want == "larger than 256 KB" {
			n = 60_000
		}
		p := h.awaitEnd(h.start(h.publish(caughtFlow("1", step("tell", "emit", with))), numbers(n)))
		require.Equal(t, engine.RunFailed, p.Run.State)
		require.Contains(t, p.Run.Failure.Message, want)
	}
	require.Zero(t, h.count(`SELECT count(*) FROM events`))
}

// Another workspace's event is nobody's here.
func TestEventsStayInTheirWorkspace(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	other, _ := h.db.Tenant(t)
	require.NoError(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.SendEvent(ctx, tx, engine.Event{Name: "paid", Data: []byte(`1`), Sender: "them"})
		return err
	}))
	run := h.start(h.publish(caughtFlow("1", step("paid", "event", `{"name": "paid"}`))), numbers(1))
	h.awaitWait(run, engine.WaitEvent)
	h.awaitEnd(h.start(h.publish(caughtFlow("1", step("tell", "emit", `{"name": "paid"}`))), numbers(1)))
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}
