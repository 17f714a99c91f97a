package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

func (h *house) planRerun(request engine.RerunRequest) (engine.RerunPlan, error) {
	h.t.Helper()
	var plan engine.RerunPlan
	err := h.op(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		plan, err = engine.PlanRerun(ctx, tx, request)
		return err
	})
	return plan, err
}

func (h *house) rerun(request engine.RerunRequest) engine.Run {
	h.t.Helper()
	var run engine.Run
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		run, err = h.engine.Rerun(ctx, tx, request, h.owner, "", hand())
		return err
	})
	return run
}

// fiveSteps ask a model twice, send, ask again, and send.
var fiveSteps = flow("steps.four.text + \"/\" + text(input.n)",
	`{"id": "one", "name": "One", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "one {{ input.n }}", "max_tokens": 100}}`,
	`{"id": "two", "name": "Two", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "two {{ steps.one.text }}", "max_tokens": 100}}`,
	sendTo("three", "a{{ input.n }}@example.com"),
	`{"id": "four", "name": "Four", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "four {{ steps.two.text }} {{ input.n }}", "max_tokens": 100}}`,
	sendTo("five", "b{{ input.n }}@example.com"))

// The bar: rerun from step 3 of 5 with an edited input. Reused steps are not executed,
// charged 0 and marked; the original is untouched; messages that would go twice are
// warned of, and one that is not to go again does not.
func TestRerunFromStep3Of5WithAnEditedInput(t *testing.T) {
	t.Parallel()
	mails := newPatient()
	h := build(t, mails.callers())
	h.work()
	first := h.start(h.publish(fiveSteps), numbers(1))
	before := h.awaitEnd(first)
	require.Equal(t, engine.RunCompleted, before.Run.State, "%+v", before.Run.Failure)
	rows := h.count(`SELECT count(*) FROM charges`)
	plan, err := h.planRerun(engine.RerunRequest{Run: first, From: "three"})
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, reusedOf(plan))
	require.Len(t, plan.Again, 3)
	require.Len(t, plan.Twice, 2)
	require.Equal(t, "three", plan.Twice[0].Node.ID())
	require.Equal(t, before.Steps[0].CostMicros+before.Steps[1].CostMicros, plan.SavedMicros)
	require.Equal(t, before.Steps[3].CostMicros, plan.AboutMicros)
	require.Positive(t, plan.SavedMicros)
	require.Empty(t, plan.Unknown)

	second := h.rerun(engine.RerunRequest{Run: first, From: "three", Input: []byte(numbers(2)), Suppress: []string{"five"}})
	require.NotEqual(t, first, second.ID)
	require.Equal(t, first, second.Origin)
	require.Equal(t, "three", second.OriginStep)
	p := h.awaitEnd(second.ID)
	require.Contains(t, h.result(p), "/2")
	h.requireClean(p)
	for i, row := range p.Steps[:2] {
		require.Equal(t, before.Steps[i].ID, row.ReusedFrom)
		require.Equal(t, before.Steps[i].Output, row.Output)
		require.Zero(t, row.CostMicros)
		require.Empty(t, h.attempts(row.ID))
	}
	require.Equal(t, engine.StepSkipped, p.Steps[4].State)
	require.Equal(t, rows+1, h.count(`SELECT count(*) FROM charges`), "only the fourth step called a model")
	mails.requireSentOnce(t, "a1", "b1", "a2")
	require.Equal(t, before, h.progress(first), "the original is untouched")
	for _, value := range []engine.Digest{p.Steps[0].Output, p.Steps[1].Output, p.Run.Input} {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.PreviewOf(ctx, tx, second.ID, value, 100)
			return err
		})
	}
	// What was left out once is still known to have gone out.
	third, err := h.planRerun(engine.RerunRequest{Run: second.ID, From: "five"})
	require.NoError(t, err)
	require.Len(t, third.Twice, 1)
}

func reusedOf(plan engine.RerunPlan) []string {
	var ids []string
	for _, reused := range plan.Reused {
		ids = append(ids, reused.Node.ID())
	}
	return ids
}

// S13: done again from the start, or from where it waits, the new run gets the event that
// is sent anew; the old run's record stays as it was.
func TestARerunGetsItsOwnEvent(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	id := h.publish(flow("steps.paid.data", setTo("x", "1"), setTo("y", "2"), step("paid", "event", `{"name": "paid", "key": "77"}`)))
	first := h.start(id, numbers(1))
	h.awaitWait(first, engine.WaitEvent)
	h.send("paid", "77", `"first"`)
	before := h.awaitEnd(first)
	for _, from := range []string{"x", "paid"} {
		again := h.rerun(engine.RerunRequest{Run: first, From: from})
		h.awaitWait(again.ID, engine.WaitEvent)
		require.Equal(t, 1, h.send("paid", "77", `"`+from+`"`).Served)
		require.Equal(t, `"`+from+`"`, h.result(h.awaitEnd(again.ID)))
	}
	require.Equal(t, before, h.progress(first))
}

// A rerun from inside a case stays in that case; edited results of steps before are read.
func TestARerunFromInsideACase(t *testing.T) {
	t.Parallel()
	mails := newPatient()
	h := build(t, mails.callers())
	h.work()
	first := h.start(h.publish(flow("steps.after.x", sendTo("one", "a@example.com"),
		step("ways", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "input.n == 1", "steps": [`+sendTo("b", "b@example.com")+","+setTo("c", `steps.one.to`)+`]}]}`),
		setTo("after", "steps.c.x"))), numbers(1))
	h.awaitEnd(first)
	plan, err := h.planRerun(engine.RerunRequest{Run: first, From: "c"})
	require.NoError(t, err)
	require.Len(t, plan.Kept, 1)
	again := h.rerun(engine.RerunRequest{Run: first, From: "c", Input: []byte(numbers(5)), Outputs: map[string][]byte{"one": []byte(`{"to": "edited"}`)}})
	p := h.awaitEnd(again.ID)
	require.Equal(t, `"edited"`, h.result(p))
	h.requireClean(p)
	mails.requireSentOnce(t, "a", "b")
	again = h.rerun(engine.RerunRequest{Run: first, From: "b"})
	require.Equal(t, `"a@example.com"`, h.result(h.awaitEnd(again.ID)))
}

// Behind groups, what is inside them is read in the rerun as in the original.
func TestARerunReadsWhatIsInsideGroups(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	first := h.start(h.publish(flow("steps.last.x",
		step("again", "repeat", `{"until": "round >= 2", "max_rounds": 3, "max_cost": 1, "max_time": "1h", "at_limit": "fail", "steps": [`+setTo("r", "round * 10")+`]}`),
		step("both", "parallel", `{"branches": [{"id": "l", "name": "L", "steps": [`+setTo("left", "1")+`]}, {"id": "r", "name": "R", "steps": [`+setTo("right", "2")+`]}]}`),
		step("all", "each", `{"items": "input.list", "at_once": 2, "result": "steps.i.x", "steps": [`+setTo("i", "item * 2")+`]}`),
		setTo("last", `text(steps.r.x) + "," + text(steps.left.x) + "," + text(steps.right.x) + "," + text(size(steps.all.results))`))), numbers(3))
	want := h.result(h.awaitEnd(first))
	p := h.awaitEnd(h.rerun(engine.RerunRequest{Run: first, From: "last"}).ID)
	require.Equal(t, want, h.result(p))
	require.Zero(t, h.count(`SELECT count(*) FROM step_runs WHERE run_id = $1 AND kind = 'item'`, p.Run.ID))
}

// From where it would not be sound, a rerun is refused with the reason.
func TestWhereARerunIsNotPossible(t *testing.T) {
	t.Parallel()
	h := build(t, newPatient("bad").callers())
	h.work()
	run := h.start(h.publish(flow("1", sendTo("one", "a@example.com"), sendTo("two", "bad@example.com"), setTo("three", "1"),
		step("all", "each", `{"items": "input.list", "at_once": 1, "steps": [`+setTo("i", "item")+`]}`))), numbers(1))
	h.awaitEnd(run)
	for from, says := range map[string]string{"three": "has not ended", "i": "inside “all”"} {
		_, err := h.planRerun(engine.RerunRequest{Run: run, From: from})
		var refused *engine.NotRerunnable
		require.ErrorAs(t, err, &refused, from)
		require.Contains(t, refused.Why, says)
	}
	_, err := h.planRerun(engine.RerunRequest{Run: run, From: "nothing"})
	require.ErrorIs(t, err, engine.ErrNoPart)
	other, _ := h.db.Tenant(t)
	require.ErrorIs(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.Rerun(ctx, tx, engine.RerunRequest{Run: run, From: "one"}, h.owner, "", hand())
		return err
	}), engine.ErrNoRun)
}

// By the newest version, a rerun does what that says from the step on.
func TestARerunByTheNewestVersion(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	id := h.publish(flow("steps.x.x", sendTo("one", "a@example.com"), setTo("x", "1")))
	first := h.start(id, numbers(1))
	h.awaitEnd(first)
	h.publishNext(id, flow("steps.x.x", sendTo("one", "other@example.com"), setTo("x", "2")))
	plan, err := h.planRerun(engine.RerunRequest{Run: first, From: "x", Newest: true})
	require.NoError(t, err)
	require.True(t, plan.Reused[0].Changed)
	require.Equal(t, "2", h.result(h.awaitEnd(h.rerun(engine.RerunRequest{Run: first, From: "x", Newest: true}).ID)))
	require.Equal(t, "1", h.result(h.awaitEnd(h.rerun(engine.RerunRequest{Run: first, From: "x"}).ID)))
}

// publishNext makes another document the pipeline's live version.
func (h *house) publishNext(id pipeline.ID, document string) {
	h.t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(h.t, err)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		if err := pipeline.SaveDraft(ctx, tx, id, parsed, h.owner); err != nil {
			return err
		}
		_, err := pipeline.Publish(ctx, tx, id, "", h.owner)
		return err
	})
}

// One item of a list is corrected: only it is done again, the list's result is made anew,
// and what follows runs again.
func TestOneItemIsCorrected(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			t.Parallel()
			mails := newPatient("k2", "k3")
			h := build(t, mails.callers())
			h.work()
			first := h.start(h.publish(flow("steps.count.x", setTo("before", "1"), step("all", "each",
				`{"items": "input.list", "at_once": 3, "max_failed": 2, "result": "steps.send.to", "steps": [`+sendTo("send", "k{{ item }}@example.com")+`]}`),
				setTo("count", "text(size(steps.all.failed)) + text(steps.all.results)"))), numbers(6))
			before := h.awaitEnd(first)
			h.result(before)
			var item engine.StepRun
			for _, row := range before.Steps {
				if row.Kind == engine.KindItem && row.Turn == 2 {
					item = row
				}
			}
			mails.heal()
			request := engine.RerunRequest{Run: first, From: "all", Item: &engine.ItemEdit{Item: item.ID, Value: []byte(`22`), Others: others}}
			plan, err := h.planRerun(request)
			require.NoError(t, err)
			require.Equal(t, 4, plan.Items.Reused)
			require.Equal(t, 1, plan.Items.Lost)
			p := h.awaitEnd(h.rerun(request).ID)
			result := h.result(p)
			require.Contains(t, result, "k22@example.com")
			sent := []string{"k0", "k1", "k22", "k4", "k5"}
			if others {
				sent = append(sent, "k3")
			}
			mails.requireSentOnce(t, sent...)
			h.requireClean(p)
			require.Equal(t, before, h.progress(first))
		})
	}
}
