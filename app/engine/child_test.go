package engine_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// starts is a step that runs another pipeline with input.n.
func starts(id string, of pipeline.ID, wait bool) string {
	return step(id, "pipeline", fmt.Sprintf(`{"pipeline": %q, "input": [{"name": "n", "formula": "default(input.n, 0)"}], "wait": %v}`, of, wait))
}

// single is a pipeline that takes a number.
func single(result string, steps ...string) string {
	return fmt.Sprintf(`{"semantics": 3, "name": "Inner", "input": [{"name": "n", "type": "number", "required": true}], "steps": [%s], "result": [{"name": "r", "formula": %q}]}`,
		strings.Join(steps, ","), result)
}

func (h *house) children(run engine.RunID) []engine.RunID {
	h.t.Helper()
	var found []engine.RunID
	rows, err := h.super().Query(h.t.Context(), `SELECT id FROM runs WHERE parent_run = $1 ORDER BY id`, run)
	require.NoError(h.t, err)
	defer rows.Close()
	for rows.Next() {
		var id engine.RunID
		require.NoError(h.t, rows.Scan(&id))
		found = append(found, id)
	}
	require.NoError(h.t, rows.Err())
	return found
}

func TestChildHandsItsResultToItsParent(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	inner := h.publish(single("steps.sum.x", setTo("sum", "input.n * 2")))
	outer := h.publish(caughtFlow("steps.all.results", step("all", "each", `{"items": "input.list", "at_once": 4, "result": "steps.sub.result.r", "steps": [`+
		step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "input": [{"name": "n", "formula": "item"}], "wait": true}`, inner))+`]}`)))
	run := h.start(outer, numbers(12))
	p := h.awaitEnd(run)
	require.JSONEq(t, `[0,2,4,6,8,10,12,14,16,18,20,22]`, h.result(p))
	h.requireClean(p)
	children := h.children(run)
	require.Len(t, children, 12)
	for _, child := range children {
		one := h.progress(child).Run
		require.Equal(t, run, one.Parent)
		require.Equal(t, run, one.Root)
		require.Equal(t, 1, one.Depth)
		require.Equal(t, h.owner, one.StartedBy)
	}
	require.Zero(t, h.count(`SELECT count(*) FROM runs WHERE tells_parent`))
}

// What a child fails by is what its step fails by, so that it can be handled by name.
func TestChildsFailureIsItsParents(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	raises := h.publish(single("1", step("end", "stop", `{"outcome": "raise", "exception": "regulatory_hold", "message": "Hold {{ input.n }}."}`)))
	middle := h.publish(single("1", starts("down", raises, true)))
	handled := h.awaitEnd(h.start(h.publish(caughtFlow("steps.sub.x", handle(starts("sub", middle, true),
		`{"classes": ["regulatory_hold"], "do": "steps", "steps": [`+setTo("note", "error.name + ' ' + error.step")+`]}`))), numbers(7)))
	require.JSONEq(t, `"regulatory_hold sub"`, h.result(handled))
	require.Contains(t, h.row(handled, "sub").Failure.Message, "Hold 7.")
	p := h.awaitEnd(h.start(h.publish(caughtFlow("1", starts("sub", middle, true))), numbers(7)))
	require.Equal(t, "regulatory_hold", p.Run.Failure.Class)
	require.Equal(t, "sub", p.Run.Failure.StepID)

	slow := h.publish(single("1", step("nap", "wait", `{"for": "1h"}`)))
	run := h.start(h.publish(caughtFlow("1", starts("sub", slow, true))), numbers(1))
	h.awaitWait(run, engine.WaitChild)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Cancel(ctx, tx, h.children(run)[0], "Ana")
	})
	p = h.awaitEnd(run)
	require.Equal(t, engine.ClassChildCancelled, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "was cancelled by Ana")
}

func TestChildThatIsNotWaitedForGoesOnAlone(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	slow := h.publish(single("1", step("nap", "wait", `{"for": "1h"}`)))
	run := h.start(h.publish(caughtFlow("steps.sub.run", starts("sub", slow, false))), numbers(1))
	p := h.awaitEnd(run)
	child := h.children(run)[0]
	require.JSONEq(t, strconv.Quote(child.String()), h.result(p))
	h.awaitWait(child, engine.WaitTime)
}

// What cannot be started is the step's failure, with the limit or the reason in it.
func TestChildrenThatCannotStartSayWhy(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	own := h.publish(single("1", setTo("x", "1")))
	gone := pipeline.ID(tenants.NewID[pipeline.Pipeline]())
	for want, doc := range map[string]string{
		"is not there any more":       caughtFlow("1", starts("sub", gone, true)),
		"has no version 7":            caughtFlow("1", step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "version": 7, "input": [{"name": "n", "formula": "1"}]}`, own))),
		"“n” must be a number":        caughtFlow("1", step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "input": [{"name": "n", "formula": "'one'"}]}`, own))),
		"has no field “m”":            caughtFlow("1", step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "input": [{"name": "n", "formula": "1"}, {"name": "m", "formula": "1"}]}`, own))),
		"The input for “Inner” does ": caughtFlow("1", step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "wait": true}`, own))),
	} {
		p := h.awaitEnd(h.start(h.publishUnlooked(doc), numbers(1)))
		require.Equal(t, engine.RunFailed, p.Run.State, want)
		require.Contains(t, p.Run.Failure.Message, want)
		h.requireClean(p)
	}
	require.Zero(t, h.count(`SELECT count(*) FROM runs WHERE parent_run IS NOT NULL`))
}

// A pipeline that starts itself ends at the limit of depth, and one with a limit of runs at
// once does not wait for itself.
func TestChildrenAreBoundInDepthAndNumber(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	itself := h.publish(single("1", setTo("x", "1")))
	h.republish(itself, single("1", starts("down", itself, true)))
	p := h.awaitEnd(h.start(itself, `{"n": 1}`))
	require.Equal(t, engine.ClassTooDeep, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "16 deep")
	require.Equal(t, 16, h.count(`SELECT max(depth) FROM runs`))

	limited := h.publish(single("1", setTo("x", "1")))
	h.republish(limited, strings.Replace(single("1", starts("down", limited, true)), `"name": "Inner"`, `"name": "Inner", "concurrency": {"limit": 1, "policy": "queue"}`, 1))
	p = h.awaitEnd(h.start(limited, `{"n": 1}`))
	require.Contains(t, p.Run.Failure.Message, "would wait for itself")

	small := h.publish(single("1", setTo("x", "1")))
	top := h.start(h.publish(caughtFlow("1", step("nap", "wait", `{"for": "2s"}`), starts("sub", small, true))), numbers(1))
	h.awaitWait(top, engine.WaitTime)
	h.exec(fmt.Sprintf(`UPDATE runs SET parent_run = '%[1]s', root_run = '%[1]s', depth = 1, parent_step_run = (SELECT id FROM step_runs WHERE run_id = '%[1]s' LIMIT 1) WHERE depth = 16`, top))
	h.exec(fmt.Sprintf(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, ended_at, parent_run, parent_step_run, root_run, depth)
		SELECT tenant_id, gen_random_uuid(), pipeline_id, version, number + 1000 + n, name, 'cancelled', input_digest, start_key || n, now(), parent_run, parent_step_run, root_run, depth
		FROM runs, generate_series(1, 999) n WHERE parent_run = '%s'`, top))
	p = h.awaitEnd(top)
	require.Equal(t, engine.ClassTooMany, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "1000 runs")
}

// Workers die again and again while failures are handled and runs run others: each item
// comes out right, each step has one key, and each step that runs another has one run.
func TestHandledFailuresAndRunsOfRunsSurviveTheirWorkers(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	h := build(t, mailCaller(func(ctx context.Context, call engine.Call) engine.Reply {
		seen.add(call.Key)
		select {
		case <-ctx.Done():
			return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}, Retryable: true}
		case <-time.After(3 * time.Millisecond):
		}
		if strings.Contains(string(call.Input), "no@example.com") {
			return engine.Reply{Failure: &engine.Failure{Class: "refused", Message: "No."}}
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	const items = 24
	inner := h.publish(single("steps.x.x", sendTo("inner", "in@example.com"), setTo("x", "input.n * 2")))
	sides := handle(step("sides", "parallel", `{"branches": [{"id": "l", "name": "L", "steps": [`+sendTo("left", "l@example.com")+`]},
		{"id": "r", "name": "R", "steps": [`+sendTo("right", "no@example.com")+`]}]}`), `{"classes": ["refused"], "do": "steps", "steps": [`+sendTo("instead", "i@example.com")+`]}`)
	run := h.start(h.publish(caughtFlow("steps.all.results", step("all", "each", `{"items": "input.list", "at_once": 6, "result": "steps.sub.result.r", "steps": [`+sides+`,`+
		step("sub", "pipeline", fmt.Sprintf(`{"pipeline": %q, "input": [{"name": "n", "formula": "item"}], "wait": true}`, inner))+`]}`))), numbers(items))
	calm := h.storm([]*engine.Worker{h.work(), h.work(), h.work()})
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM runs WHERE state = 'completed'`) > items/2 }, time.Minute, 50*time.Millisecond, "it does not get through the storm")
	calm()
	p := h.awaitEnd(run)
	require.JSONEq(t, doubled(t, items), h.result(p))
	h.requireClean(p)
	require.Len(t, h.children(run), items)
	for _, row := range p.Steps {
		if row.StepID == "instead" {
			require.Equal(t, engine.StepDone, row.State)
		}
	}
	require.Equal(t, items, h.count(`SELECT count(*) FROM step_runs WHERE step_id = 'instead'`))
}

// The bar: a tree of runs with calls in flight stops within 5 s of its top being cancelled,
// each run ends once, and nothing hangs. TOLLGATE_TREE is how many runs each
// run starts, as far as the limit of runs below one allows.
func TestCancelGoesDownATreeOfRuns(t *testing.T) {
	t.Parallel()
	width := 6
	if wide, err := strconv.Atoi(os.Getenv("TOLLGATE_TREE")); err == nil {
		width = wide
	}
	below := min(width, pipeline.MaxDescendants/width-1)
	h := build(t, mailCaller(func(ctx context.Context, _ engine.Call) engine.Reply {
		<-ctx.Done()
		return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}}
	}))
	h.exec(fmt.Sprintf(`INSERT INTO tenant_quotas (tenant_id, parallel_slices, open_runs) VALUES ('%s', 5000, 20000)`, h.tenant))
	h.workWith(width * below)
	h.workWith(20)
	leaf := h.publish(single("1", sendTo("mail", "kim@example.com")))
	fan := func(of pipeline.ID, n int) string {
		return step("all", "each", fmt.Sprintf(`{"items": "%s", "at_once": 50, "steps": [%s]}`, listOf(n), starts("sub", of, true)))
	}
	middle := h.publish(single("1", fan(leaf, below)))
	top := h.start(h.publish(caughtFlow("1", fan(middle, width))), numbers(1))
	all := 1 + width + width*below
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM runs`) == all }, 2*time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM step_runs WHERE kind = 'email' AND state = 'running'`) == width*below
	}, time.Minute, 20*time.Millisecond)

	began := time.Now()
	h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, top, "Ana") })
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`) == 0 }, 20*time.Second, 20*time.Millisecond)
	ended := time.Since(began)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM slices`)+h.count(`SELECT count(*) FROM river.river_job WHERE state = 'running'`) == 0
	}, 20*time.Second, 20*time.Millisecond)
	took := time.Since(began)
	t.Logf("%d runs ended in %s, their calls in %s", all, ended.Round(time.Millisecond), took.Round(time.Millisecond))
	require.Less(t, took, 5*time.Second)
	require.Equal(t, all, h.count(`SELECT count(*) FROM runs WHERE state = 'cancelled'`))
	require.Zero(t, h.count(`SELECT count(*) FROM waits WHERE state IN ('open', 'cancelled') AND kind = 'child'`))
	require.Zero(t, h.count(`SELECT count(*) FROM step_runs WHERE state IN ('queued', 'running', 'waiting')`))
}

func listOf(n int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = "1"
	}
	return "[" + strings.Join(entries, ",") + "]"
}

// A child that waits for a branch which is cancelled for another reason is cancelled, too.
func TestChildOfALostBranchIsCancelled(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	slow := h.publish(single("1", step("nap", "wait", `{"for": "1h"}`)))
	run := h.start(h.publish(caughtFlow("1", step("p", "parallel", `{"wait_for": "first", "branches": [{"id": "a", "name": "A", "steps": [`+starts("sub", slow, true)+`]},
		{"id": "b", "name": "B", "steps": [`+step("nap", "wait", `{"for": "1s"}`)+`]}]}`))), numbers(1))
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	child := h.awaitEnd(h.children(run)[0])
	require.Equal(t, engine.RunCancelled, child.Run.State)
}

// A parent that was not told of its child's end is found, whether the child is over or gone.
func TestWatchdogTellsParentsOfTheirChildren(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"over": `UPDATE runs SET tells_parent = false, state = 'cancelled', ended_at = now() - interval '1 minute' WHERE parent_run IS NOT NULL`,
		"gone": `UPDATE runs SET parent_run = NULL, parent_step_run = NULL, root_run = NULL, depth = 0, tells_parent = false WHERE parent_run IS NOT NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			stop := h.workUntilStopped()
			slow := h.publish(single("1", step("nap", "wait", `{"for": "1h"}`)))
			run := h.start(h.publish(caughtFlow("1", starts("sub", slow, true))), numbers(1))
			h.awaitWait(run, engine.WaitChild)
			h.awaitWait(h.children(run)[0], engine.WaitTime)
			stop()
			h.exec(damage)
			h.age()
			h.exec(`UPDATE waits SET opened_at = opened_at - interval '1 minute'`)
			found, err := h.otherWorker().Watch(t.Context())
			require.NoError(t, err)
			kinds := map[engine.StuckKind]bool{}
			for _, f := range found {
				kinds[f.Kind] = true
			}
			require.True(t, kinds[engine.StuckLostChild], "%+v", found)
			h.work()
			require.Equal(t, engine.RunFailed, h.awaitEnd(run).Run.State)
		})
	}
}

// A step whose child failed starts another when it is tried again.
func TestRetriedStepStartsAnotherChild(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	inner := h.publish(single("1", step("end", "stop", `{"outcome": "raise", "exception": "on_hold", "message": "Hold."}`)))
	run := h.start(h.publish(caughtFlow("steps.sub.result.r", starts("sub", inner, true))), numbers(1))
	require.Equal(t, engine.RunFailed, h.awaitEnd(run).Run.State)
	h.republish(inner, single("input.n * 3", setTo("x", "1")))
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return h.engine.Retry(ctx, tx, run, "", hand())
	})
	require.JSONEq(t, `3`, h.result(h.awaitEnd(run)))
	require.Len(t, h.children(run), 2)
}

// S59: the pipeline of another workspace is none, whoever knows its id.
func TestChildOfAnotherWorkspaceIsNotThere(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	other, stranger := h.db.Tenant(t)
	parsed, err := pipeline.Parse([]byte(single("1", setTo("x", "1"))))
	require.NoError(t, err)
	var theirs pipeline.ID
	require.NoError(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		if theirs, err = pipeline.Create(ctx, tx, parsed, "", stranger); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, theirs, "", stranger)
		return err
	}))
	p := h.awaitEnd(h.start(h.publishUnlooked(caughtFlow("1", starts("sub", theirs, true))), numbers(1)))
	require.Equal(t, engine.ClassNoPipeline, p.Run.Failure.Class)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM runs`))
}

// publishUnlooked publishes a document as if the pipelines that it runs had been there then:
// publishing itself looks for them.
func (h *house) publishUnlooked(document string) pipeline.ID {
	h.t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(h.t, err)
	id := h.publish(single("1", setTo("x", "1")))
	_, err = h.super().Exec(h.t.Context(), `UPDATE pipeline_versions SET document = $2, semantics = $3, digest = sha256(convert_to($2, 'UTF8'))
		WHERE pipeline_id = $1`, id, string(parsed.JSON()), parsed.Semantics)
	require.NoError(h.t, err)
	return id
}

// S12: of two questions, one in a run and one in the run that it waits for, an answer to
// the first is none to the second.
func TestAnswerAboveIsNoneBelow(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	inner := h.publish(single("steps.b.verdict", askRita("b", "B?")))
	run := h.start(h.publish(caughtFlow("steps.sub.result.r", askRita("a", "A?"), starts("sub", inner, true))), numbers(1))
	_, first := h.awaitWait(run, engine.WaitReview)
	decision := h.answer(h.review(first), review.Approve, "")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.DecideReview(ctx, tx, decision)
		return err
	})
	h.awaitWait(run, engine.WaitChild)
	child := h.children(run)[0]
	_, second := h.awaitWait(child, engine.WaitReview)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		again, err := h.engine.DecideReview(ctx, tx, decision)
		require.True(t, again.Repeated)
		return err
	})
	require.False(t, h.progress(child).Run.State.Final())
	below := h.answer(h.review(second), review.Reject, "No.")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.DecideReview(ctx, tx, below)
		return err
	})
	require.JSONEq(t, `"rejected"`, h.result(h.awaitEnd(run)))
}
