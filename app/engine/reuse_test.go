package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// asksModel is a document that asks a model, and then says how long its answer is.
func asksModel(models, more, prompt string) string {
	return under3(flow("steps.ask.text", step("ask", "ai", fmt.Sprintf(`{"models": [%q], %s "instructions": "Say it", "prompt": %q}`, models, more, prompt)), setTo("after", "size(steps.ask.text)")))
}

const reusing = `"reuse": true, "reuse_for": "1d",`

// parrot answers each prompt with what was asked and how often it was asked so far.
func parrot(count *calls) map[pipeline.Kind]engine.Caller {
	return map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		var input engine.AIInput
		if err := json.Unmarshal(call.Input, &input); err != nil || input.Prompt == "fail" {
			return engine.Reply{Failure: &engine.Failure{Class: "input", Message: "No."}}
		}
		count.add(input.Prompt)
		output, _ := json.Marshal(map[string]any{"text": fmt.Sprintf("%s, %d", input.Prompt, count.all()[input.Prompt])})
		return engine.Reply{Output: output, Bill: &engine.Bill{Model: input.Models[0], Tokens: ledger.Tokens{Input: 1000, Output: 1000}}}
	})}
}

// An answer to the same question is taken again within its time: without a call, a hold or
// a charge, and saying where it comes from. Whatever is asked otherwise is asked anew.
func TestAnIdenticalAnswerIsTakenAgain(t *testing.T) {
	t.Parallel()
	var count calls
	h := build(t, parrot(&count))
	h.work()
	id := h.publish(asksModel("practice/standard", reusing, "n is {{ input.n }}"))
	first := h.awaitEnd(h.start(id, `{"n": 1, "list": []}`))
	require.Equal(t, `"n is 1, 1"`, h.result(first))
	source := rowOf(t, first, "ask", -1)
	require.Positive(t, source.CostMicros)

	again := h.awaitEnd(h.start(id, `{"n": 1, "list": [7]}`))
	require.Equal(t, `"n is 1, 1"`, h.result(again))
	taken := rowOf(t, again, "ask", -1)
	require.Equal(t, source.ID, taken.ReusedFrom)
	require.Zero(t, taken.CostMicros)
	require.Zero(t, h.count(`SELECT count(*) FROM holds WHERE run_id = $1`, again.Run.ID))
	require.Zero(t, h.count(`SELECT count(*) FROM charges WHERE run_id = $1`, again.Run.ID))
	require.Zero(t, h.count(`SELECT count(*) FROM tries WHERE step_run_id = $1`, taken.ID))
	require.Equal(t, "9", string(h.value(rowOf(t, again, "after", -1).Output)[5:6]), "later steps read it")
	require.Equal(t, 1, h.count(`SELECT count(*) FROM step_results`), "what was taken over is not kept again")
	lineage := h.lineage(again.Run.ID, taken.ID)
	require.Equal(t, first.Run.Number, lineage.Origins[0].Reused.Number)
	require.Equal(t, source.CostMicros, lineage.Origins[0].Reused.CostMicros)
	require.Equal(t, []string{"practice/standard"}, lineage.Origins[0].Models)

	other := h.publish(asksModel("practice/standard", reusing, "n is {{ input.n }}"))
	require.Equal(t, `"n is 1, 1"`, h.result(h.awaitEnd(h.start(other, `{"n": 1, "list": []}`))), "another pipeline that asks the same")
	for name, differs := range map[string]string{
		"another model": asksModel("openai/gpt-5.6-terra", reusing, "n is {{ input.n }}"), "a longer answer": asksModel("practice/standard", reusing+`"max_tokens": 99,`, "n is {{ input.n }}"),
		"not marked": asksModel("practice/standard", "", "n is {{ input.n }}"), "another prompt": asksModel("practice/standard", reusing, "n was {{ input.n }}"),
	} {
		p := h.awaitEnd(h.start(h.publish(differs), `{"n": 1, "list": []}`))
		require.Zero(t, rowOf(t, p, "ask", -1).ReusedFrom, name)
	}
	require.Equal(t, map[string]int{"n is 1": 4, "n was 1": 1}, count.all())
	require.Equal(t, 4, h.count(`SELECT count(*) FROM step_results`), "what is not marked is not kept")
}

// What is too old is asked again, on demand everything is, and another workspace's answer
// is never taken.
func TestAnEarlierAnswerIsNotTaken(t *testing.T) {
	t.Parallel()
	var count calls
	h := build(t, parrot(&count))
	h.work()
	id := h.publish(asksModel("practice/standard", reusing, "n is {{ input.n }}"))
	result := func(run engine.RunID) string { return h.result(h.awaitEnd(run)) }
	require.Equal(t, `"n is 1, 1"`, result(h.start(id, `{"n": 1, "list": []}`)))

	var fresh engine.Started
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		fresh, err = h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(`{"n": 1, "list": []}`), By: h.owner, Key: "fresh", Fresh: true})
		return err
	})
	require.Equal(t, `"n is 1, 2"`, result(fresh.Run.ID))
	require.Equal(t, `"n is 1, 2"`, result(h.start(id, `{"n": 1, "list": []}`)), "the newest is taken")

	briefly := h.publish(asksModel("practice/standard", `"reuse": true, "reuse_for": "1h",`, "n is {{ input.n }}"))
	_, err := h.super().Exec(t.Context(), `UPDATE step_results SET kept_at = kept_at - interval '2 hours', expires_at = expires_at - interval '2 hours'`)
	require.NoError(t, err)
	require.Equal(t, `"n is 1, 3"`, result(h.start(briefly, `{"n": 1, "list": []}`)), "too old for who asks")
	require.Equal(t, `"n is 1, 3"`, result(h.start(id, `{"n": 1, "list": []}`)), "young enough for who asks")
	_, err = h.super().Exec(t.Context(), `UPDATE step_results SET expires_at = now() - interval '1 second'`)
	require.NoError(t, err)
	require.Equal(t, `"n is 1, 4"`, result(h.start(id, `{"n": 1, "list": []}`)), "too old for who kept it")
	pruned, err := h.engine.PruneResults(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, pruned)
	require.Equal(t, 1, h.count(`SELECT count(*) FROM step_results`))

	ours, owner := h.tenant, h.owner
	h.tenant, h.owner = h.db.Tenant(t)
	theirs := h.publish(asksModel("practice/standard", reusing, "n is {{ input.n }}"))
	require.Equal(t, `"n is 1, 5"`, result(h.start(theirs, `{"n": 1, "list": []}`)), "another workspace asks itself")
	require.Equal(t, `"n is 1, 5"`, result(h.start(theirs, `{"n": 1, "list": []}`)))
	h.tenant, h.owner = ours, owner
	require.Equal(t, `"n is 1, 4"`, result(h.start(id, `{"n": 1, "list": []}`)))
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var seen int
		require.NoError(t, tx.QueryRow(ctx, `SELECT count(*) FROM step_results`).Scan(&seen))
		require.Equal(t, 1, seen, "row-level security")
		return nil
	})
}

// A failure is not kept, steps of one run take each other's answers, and where there is no
// money for a call none is needed.
func TestTakingAnAnswerNeedsNoMoney(t *testing.T) {
	t.Parallel()
	var count calls
	h := build(t, parrot(&count))
	h.work()
	failing := h.awaitEnd(h.start(h.publish(asksModel("practice/standard", reusing, "fail")), `{"n": 1, "list": []}`))
	require.Equal(t, engine.RunFailed, failing.Run.State)
	require.Zero(t, h.count(`SELECT count(*) FROM step_results`))
	ask := `{"models": ["practice/standard"], "reuse": true, "instructions": "Say it", "prompt": "twice"}`
	twice := h.publish(under3(flow("steps.b.text", step("a", "ai", ask), step("b", "ai", ask))))
	p := h.awaitEnd(h.start(twice, `{"n": 1, "list": []}`))
	require.Equal(t, `"twice, 1"`, h.result(p))
	require.Equal(t, rowOf(t, p, "a", -1).ID, rowOf(t, p, "b", -1).ReusedFrom)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		limit := ledger.Micros(0)
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(h.tenant), Funds: ledger.Pretend, Limit: &limit})
	})
	require.Equal(t, `"twice, 1"`, h.result(h.awaitEnd(h.start(twice, `{"n": 1, "list": []}`))))
}

// Runs that ask the same at the same moment do not wait for each other: each asks, and
// whichever answer is there later is taken.
func TestTheSameIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	var count calls
	h := build(t, parrot(&count))
	h.work()
	id := h.publish(under3(flow("size(steps.all.results)", step("all", "each", `{"items": "input.list", "at_once": 8, "steps": [`+
		step("ask", "ai", `{"models": ["practice/standard"], "reuse": true, "instructions": "Say it", "prompt": "{{ item % 5 }}"}`)+`]}`))))
	var over sync.WaitGroup
	for range 4 {
		over.Go(func() {
			p := h.awaitEnd(h.start(id, numbers(50)))
			require.Equal(t, "50", h.result(p))
		})
	}
	over.Wait()
	for prompt, times := range count.all() {
		require.Less(t, times, 40, prompt)
	}
	require.Len(t, count.all(), 5)
	require.Equal(t, 200, h.count(`SELECT count(*) FROM step_runs WHERE step_id = 'ask' AND state = 'done' AND (reused_from IS NULL) = EXISTS (
		SELECT 1 FROM charges c WHERE c.step_run_id = step_runs.id)`))
}

// Calls that get data are taken again, too; those that send some cannot be marked.
func TestWhatMayBeTakenAgain(t *testing.T) {
	t.Parallel()
	var count calls
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindHTTP: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		count.add("call")
		return engine.Reply{Output: []byte(`{"status": 200, "headers": {}, "body": {"rate": 7}}`)}
	})})
	h.work()
	call := func(method, more string) string {
		return under3(flow("steps.rate.body.rate", step("rate", "http", fmt.Sprintf(`{"method": %q, "url": "https://rates.example/eur", "reuse": true %s}`, method, more))))
	}
	id := h.publish(call("GET", ""))
	for range 3 {
		require.Equal(t, "7", h.result(h.awaitEnd(h.start(id, `{"n": 1, "list": []}`))))
	}
	require.Equal(t, map[string]int{"call": 1}, count.all())
	for says, document := range map[string]string{"sends data": call("POST", ""), "is a file": call("GET", `, "answer": "file"`)} {
		parsed, err := pipeline.Parse([]byte(document))
		require.NoError(t, err)
		problems := pipeline.Blocking(pipeline.Check(parsed))
		require.Len(t, problems, 1)
		require.True(t, strings.Contains(problems[0].Message, says), problems[0].Message)
	}
}
