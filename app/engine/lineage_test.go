package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// lineage follows what a step of a run gave.
func (h *house) lineage(run engine.RunID, step engine.StepRunID) *engine.Lineage {
	h.t.Helper()
	var lineage *engine.Lineage
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		lineage, err = h.engine.LineageOf(ctx, tx, run, step)
		return err
	})
	return lineage
}

// rowOf is the execution of a step whose frame has a turn; -1: any.
func rowOf(t *testing.T, p engine.Progress, step string, turn int) engine.StepRun {
	t.Helper()
	byID := map[engine.StepRunID]engine.StepRun{}
	for _, row := range p.Steps {
		byID[row.ID] = row
	}
	for _, row := range p.Steps {
		if row.StepID == step && !engine.IsPart(row.Kind) && (turn < 0 || byID[row.Parent].Turn == turn) {
			return row
		}
	}
	t.Fatalf("no step %s", step)
	return engine.StepRun{}
}

// story writes a lineage down: the step's fields with what they read, and behind them
// each origin with the turn of its frame and what it read.
func story(l *engine.Lineage) string {
	byID := map[engine.StepRunID]string{}
	for _, o := range l.Origins {
		name := o.Row.StepID
		if len(o.Around) > 0 && engine.IsPart(o.Around[len(o.Around)-1].Kind) {
			name += fmt.Sprintf("@%d", o.Around[len(o.Around)-1].Turn)
		}
		byID[o.Row.ID] = name
	}
	reads := func(reads []engine.Read) string {
		var out []string
		for _, r := range reads {
			one := r.Ref.String()
			if at := byID[r.Row]; at != "" {
				one += "=" + at
			}
			out = append(out, one)
		}
		sort.Strings(out)
		return strings.Join(slices.Compact(out), " ")
	}
	var lines []string
	for _, f := range l.Fields {
		lines = append(lines, f.Field.Name+" < "+reads(f.Reads))
	}
	for _, o := range l.Origins[1:] {
		lines = append(lines, byID[o.Row.ID]+" < "+reads(o.Reads))
	}
	return strings.Join(lines, "\n")
}

func setMany(id string, pairs ...string) string {
	var values []string
	for i := 0; i < len(pairs); i += 2 {
		values = append(values, fmt.Sprintf(`{"name": %q, "formula": %q}`, pairs[i], pairs[i+1]))
	}
	return step(id, "set", `{"values": [`+strings.Join(values, ",")+`]}`)
}

// Every kind of frame is followed back to the input, field by field: only what went into
// the field that was read is told of a step that gives several.
func TestLineageFollowsValuesThroughFrames(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	parallel := func(id string, lanes ...string) string {
		return step(id, "parallel", `{"branches": [`+strings.Join(lanes, ",")+`]}`)
	}
	lane := func(id, steps, result string) string {
		return fmt.Sprintf(`{"id": %q, "name": %q, "steps": [%s], "result": %q}`, id, id, steps, result)
	}
	loop := func(id, until, result string, steps ...string) string {
		return step(id, "repeat", fmt.Sprintf(`{"until": %q, "result": %q, "max_rounds": 5, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "steps": [%s]}`,
			until, result, strings.Join(steps, ",")))
	}
	for name, c := range map[string]struct {
		steps []string
		of    string
		turn  int
		want  []string
	}{
		"field by field": {[]string{setMany("a", "x", "input.n", "y", "run.number"), setMany("b", "p", "steps.a.x + 1", "q", "2")}, "b", -1,
			[]string{"p < steps.a.x=a", "q < ", "a < input.n"}},
		"a step in its item": {[]string{setTo("out", "input.n"), step("all", "each", `{"items": "input.list", "at_once": 2, "steps": [`+
			setMany("ins", "x", "item + index")+","+setMany("last", "x", "steps.ins.x + steps.out.x")+`]}`)}, "last", 2,
			[]string{"x < steps.ins.x=ins@2 steps.out.x=out", "ins@2 < index item=all", "out < input.n", "all < input.list"}},
		"a list by its first item": {[]string{step("all", "each", `{"items": "input.list", "at_once": 2, "result": "steps.ins.x", "steps": [`+
			setMany("ins", "x", "item")+`]}`), setTo("sum", "size(steps.all.results)")}, "sum", -1,
			[]string{"x < steps.all.results=all", "all < input.list steps.ins.x=ins@0", "ins@0 < item=all"}},
		"the round before": {[]string{loop("again", "round == 3", "steps.next.x", setMany("next", "x", "default(steps.next2.x, input.n) + round"), setMany("next2", "x", "steps.next.x"))}, "next", 1,
			[]string{"x < input.n round steps.next2.x=next2@0", "next2@0 < steps.next.x=next@0", "next@0 < input.n round steps.next2.x"}},
		"a loop by the round it went on with": {[]string{loop("again", "round == 2", "steps.next.x", setMany("next", "x", "input.n + round")), setTo("after", "steps.again.best")}, "after", -1,
			[]string{"x < steps.again.best=again", "again < steps.next.x=next@1", "next@1 < input.n round"}},
		"how often a loop went": {[]string{loop("again", "round == input.n", "1", setTo("next", "round")), setTo("after", "steps.again.rounds")}, "after", -1,
			[]string{"x < steps.again.rounds=again", "again < input.n round"}},
		"the way that was taken": {[]string{decideSteps("way", "input.n > 0", setTo("ins", "input.n")), setMany("after", "x", "default(steps.ins.x, 0)", "y", "steps.way.case")}, "after", -1,
			[]string{"x < steps.ins.x=ins", "y < steps.way.case=way", "ins < input.n", "way < input.n"}},
		"all branches": {[]string{parallel("both", lane("one", setTo("l", "input.n"), "steps.l.x"), lane("two", setTo("r", "2"), "")), setTo("after", "steps.both.combined")}, "after", -1,
			[]string{"x < steps.both.combined=both", "both < steps.l.x=l@0 steps.r=r@1", "l@0 < input.n", "r@1 < "}},
		"a failure that steps handled": {[]string{`{"id": "a", "name": "a", "kind": "set", "with": {"values": [{"name": "x", "formula": "1 / (input.n - 2)"}]},
			"on_error": [{"do": "steps", "steps": [` + setTo("mend", "input.n + size(error.message)") + `]}]}`, setTo("after", "steps.a.x")}, "after", -1,
			[]string{"x < steps.a.x=a", "a < steps.mend=mend", "mend < error.message input.n"}},
		"a mail": {[]string{setTo("a", "input.n"), sendTo("send", "k{{ steps.a.x }}@example.com")}, "send", -1,
			[]string{"to < steps.a.x=a", "subject < steps.a.x=a", "message_id < steps.a.x=a", "a < input.n"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.awaitEnd(h.start(h.publish(under3(flow("1", c.steps...))), `{"n": 2, "list": [10, 20, 30]}`))
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			require.Equal(t, strings.Join(c.want, "\n"), story(h.lineage(p.Run.ID, rowOf(t, p, c.of, c.turn).ID)))
		})
	}
}

// Who and what made a value is told: the model that answered, the person who decided and
// what she changed, the event that was taken, and the version that it was done under.
func TestLineageNamesWhoMadeWhat(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		return engine.Reply{Output: []byte(`{"text": "about seven"}`), Bill: &engine.Bill{Model: "practice/standard-2", Tokens: ledger.Tokens{Input: 1, Output: 1}}}
	})})
	h.work()
	steps := []string{
		step("ask", "ai", `{"models": ["practice/standard"], "instructions": "Count", "prompt": "{{ input.n }}"}`),
		step("came", "event", `{"name": "stock", "key": "k"}`),
		step("check", "review", `{"question": "Right?", "people": [{"email": "rita@example.com"}], "editable": [
			{"field": {"name": "count", "type": "number"}, "formula": "size(steps.ask.text)"}, {"field": {"name": "note", "type": "text"}, "formula": "text(steps.came.data)"}]}`),
	}
	id := h.publish(flow("1", append(steps, setTo("end", "steps.check.count"))...))
	run := h.start(id, `{"n": 7, "list": []}`)
	h.awaitWait(run, engine.WaitEvent)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.SendEvent(ctx, tx, engine.Event{Name: "stock", Key: "k", Data: []byte(`"full"`), Sender: "The warehouse"})
		return err
	})
	_, at := h.awaitWait(run, engine.WaitReview)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 }, 10*time.Second, 10*time.Millisecond)
	h.republish(id, flow("2", append(steps, setMany("end", "a", "steps.check.count", "b", "steps.check.note", "c", "steps.check.verdict", "d", "steps.check.by"))...))
	_, err := h.move(run, 2)
	require.NoError(t, err)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, at)
		require.NoError(t, err)
		decision := h.answer(detail, review.ApproveWithEdits, "")
		decision.Edits = map[string]json.RawMessage{"count": json.RawMessage("7")}
		_, err = h.engine.DecideReview(ctx, tx, decision)
		return err
	})
	p := h.awaitEnd(run)
	l := h.lineage(run, rowOf(t, p, "end", -1).ID)
	require.Equal(t, strings.Join([]string{
		"a < steps.check.count=check", "b < steps.check.note=check", "c < steps.check.verdict=check", "d < steps.check.by=check",
		"check < steps.ask.text=ask steps.came.data=came", "ask < input.n", "came < ",
	}, "\n"), story(l))
	end, check, ask, came := l.Origins[0], l.Origins[1], l.Origins[2], l.Origins[3]
	require.Equal(t, 2, end.Version)
	require.Equal(t, 1, check.Version, "it began before the run was moved")
	require.Equal(t, []string{"practice/standard-2"}, ask.Models)
	require.Equal(t, "The warehouse", came.Event.Sender)
	require.Len(t, check.Review.Answers, 1)
	require.JSONEq(t, "7", string(check.Review.Answers[0].Edits["count"]))
	require.NotContains(t, check.Review.Answers[0].Edits, "note")

	other, _ := h.db.Tenant(t)
	require.ErrorIs(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.LineageOf(ctx, tx, run, end.Row.ID)
		return err
	}), engine.ErrNoRun)
	require.ErrorIs(t, h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.LineageOf(ctx, tx, h.start(id, `{"n": 7, "list": []}`), end.Row.ID)
		return err
	}), engine.ErrNoPart, "a step of another run")
}

// moreItems makes a list long by adding copies of its first item, with all that is in it.
func (h *house) moreItems(run engine.RunID, list string, until int) {
	h.t.Helper()
	_, err := h.super().Exec(h.t.Context(), `
		WITH first AS (
			SELECT * FROM step_runs WHERE run_id = $1 AND step_id = $2 AND kind = 'item' AND turn = 0
		), items AS (
			SELECT f.*, gen_random_uuid() AS copy, n FROM first f, generate_series(100, $3::int) n
		), added AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, input_digest, output_digest, ended_at)
			SELECT tenant_id, copy, run_id, parent_id, step_id, kind, list, n, state, input_digest, output_digest, ended_at FROM items
		)
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, output_digest, ended_at)
		SELECT s.tenant_id, gen_random_uuid(), s.run_id, i.copy, s.step_id, s.kind, s.list, s.state, s.output_digest, s.ended_at
		FROM items i JOIN step_runs s ON s.parent_id = i.id`, run, list, until)
	require.NoError(h.t, err)
}

// A value that somebody gave instead comes from nobody else, and one that another run
// handed back from that run.
func TestLineageNamesHandsAndOtherRuns(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	inner := h.publish(`{"semantics": 3, "name": "Inner", "input": [{"name": "m", "type": "number"}], "steps": [` + setTo("x", "input.m + 1") + `], "result": [{"name": "y", "formula": "steps.x.x"}]}`)
	run := h.start(h.publish(under3(flow("1", step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "wait": true, "input": [{"name": "m", "formula": "input.n"}]}`, inner)),
		step("came", "event", `{"name": "never", "key": ""}`), setMany("end", "a", "steps.sub.result.y", "b", "steps.came.data")))), `{"n": 6, "list": []}`)
	_, at := h.awaitWait(run, engine.WaitEvent)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Skip(ctx, tx, run, at, []byte(`{"data": 3}`), "", engine.Hand{By: tenants.Actor{Kind: tenants.ActorMember, Name: "Ana"}, Key: "skip"})
	})
	p := h.awaitEnd(run)
	l := h.lineage(run, rowOf(t, p, "end", -1).ID)
	require.Equal(t, "a < steps.sub.result.y=sub\nb < steps.came.data=came\nsub < input.n\ncame < ", story(l))
	require.Equal(t, "Inner", l.Origins[1].Child.Pipeline)
	require.Equal(t, engine.StepSkipped, l.Origins[2].Row.State)
	require.Equal(t, "skipped by Ana", l.Origins[2].Row.Note)
}

// However many steps a run has, where a value comes from is told at once.
func TestLineageOfALongRunIsFast(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	id := h.publish(flow("1", setTo("out", "input.n"), step("all", "each", `{"items": "input.list", "at_once": 8, "result": "steps.last.x", "steps": [`+
		setTo("one", "item")+","+setTo("last", "steps.one.x + steps.out.x")+`]}`), setTo("sum", "size(steps.all.results)")))
	run := h.start(id, numbers(20))
	h.awaitEnd(run)
	h.moreItems(run, "all", 3500)
	p := h.progress(run)
	require.Greater(t, len(p.Steps), 10_000)
	sum, late := rowOf(t, p, "sum", -1), rowOf(t, p, "last", 3300)
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		require.Len(t, h.lineage(run, sum.ID).Origins, 5)
		require.Len(t, h.lineage(run, late.ID).Origins, 4)
		took = append(took, time.Since(begun)/2)
	}
	slices.Sort(took)
	t.Logf("p95 %s", took[18])
	require.Less(t, took[18], 300*time.Millisecond)
}

// Very much that went into a value is told up to a bound, and that there is more.
func TestLineageIsBounded(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	steps := []string{setTo("s0", "input.n")}
	for i := range 60 {
		steps = append(steps, setTo(fmt.Sprintf("s%d", i+1), fmt.Sprintf("steps.s%d.x + steps.s%d.x", i, max(i-1, 0))))
	}
	p := h.awaitEnd(h.start(h.publish(flow("1", steps...)), `{"n": 0, "list": []}`))
	l := h.lineage(p.Run.ID, rowOf(t, p, "s60", -1).ID)
	require.True(t, l.Cut)
	require.Len(t, l.Origins, 40)
	require.False(t, h.lineage(p.Run.ID, rowOf(t, p, "s20", -1).ID).Cut)
}
