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
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// flow is a document of steps with a list and a number to read.
func flow(result string, steps ...string) string {
	return fmt.Sprintf(`{"semantics": 2, "name": "Flow", "input": [{"name": "n", "type": "number"}, {"name": "list", "type": "list", "of": {"type": "number"}}],
		"steps": [%s], "result": [{"name": "r", "formula": %q}]}`, strings.Join(steps, ","), result)
}

func step(id, kind, with string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "kind": %q, "with": %s}`, id, id, kind, with)
}

func setTo(id, formula string) string {
	return step(id, "set", fmt.Sprintf(`{"values": [{"name": "x", "formula": %q}]}`, formula))
}

func sendTo(id, to string) string {
	return step(id, "email", fmt.Sprintf(`{"to": [%q], "subject": "s", "body": "b"}`, to))
}

func askRita(id, question string) string {
	return step(id, "review", fmt.Sprintf(`{"question": %q, "people": [{"email": "rita@example.com"}]}`, question))
}

// numbers is an input with a list of n numbers.
func numbers(n int) string {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	encoded, err := json.Marshal(map[string]any{"n": n, "list": list})
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// result is what the run gave as r.
func (h *house) result(p engine.Progress) string {
	h.t.Helper()
	require.Equal(h.t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	var out struct{ R json.RawMessage }
	require.NoError(h.t, json.Unmarshal([]byte(h.value(p.Run.Result)), &out))
	return string(out.R)
}

// requireClean checks what must hold behind the end of a run with many branches.
func (h *house) requireClean(p engine.Progress) {
	h.t.Helper()
	for _, row := range p.Steps {
		require.False(h.t, row.State.Open(), "step %q is open", row.StepID)
	}
	require.Eventually(h.t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, p.Run.ID) == 0 },
		10*time.Second, 10*time.Millisecond, "slices that come late end by themselves")
	require.Zero(h.t, h.count(`SELECT count(*) FROM waits WHERE run_id = $1 AND state = 'open'`, p.Run.ID))
	require.Zero(h.t, h.count(`SELECT count(*) FROM reviews WHERE run_id = $1 AND state = 'open'`, p.Run.ID))
	h.requireSound()
}

// echo answers each mail with its address, after letting fn see it.
func echo(fn func(ctx context.Context, to string) *engine.Failure) map[pipeline.Kind]engine.Caller {
	return mailCaller(func(ctx context.Context, call engine.Call) engine.Reply {
		var input engine.EmailInput
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return engine.Reply{Failure: &engine.Failure{Class: "input", Message: err.Error()}}
		}
		if failure := fn(ctx, input.To[0]); failure != nil {
			return engine.Reply{Failure: failure}
		}
		return engine.Reply{Output: []byte(fmt.Sprintf(`{"to": %q}`, input.To[0]))}
	})
}

func quiet(context.Context, string) *engine.Failure { return nil }

// S10: items end in any order and at the same moment; they are joined once, and the
// results are in the order of the items.
func TestItemsAreJoinedInTheirOrder(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	h.work()
	id := h.publish(flow("steps.all.results", step("all", "each",
		`{"items": "input.list", "at_once": 8, "result": "steps.send.to + \"/\" + text(item) + \"/\" + text(index)", "steps": [`+sendTo("send", "k{{ item }}@example.com")+`]}`)))
	for _, n := range []int{500, 1, 0} {
		p := h.awaitEnd(h.start(id, numbers(n)))
		want := []string{}
		for i := range n {
			want = append(want, fmt.Sprintf("k%d@example.com/%d/%d", i, i, i))
		}
		encoded, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(encoded), h.result(p))
		h.requireClean(p)
	}
}

// An item that fails is left out, as many as may; one more ends the list, and what else
// is under way there.
func TestItemsMayFailAsManyAsTheStepAllows(t *testing.T) {
	t.Parallel()
	h := build(t, echo(func(_ context.Context, to string) *engine.Failure {
		if to == "k3@example.com" || to == "k7@example.com" {
			return &engine.Failure{Class: "refused", Message: "No."}
		}
		return nil
	}))
	h.work()
	doc := func(may int) string {
		return flow("steps.all", step("all", "each", fmt.Sprintf(
			`{"items": "input.list", "at_once": 3, "max_failed": %d, "result": "item", "steps": [%s]}`, may, sendTo("send", "k{{ item }}@example.com"))))
	}
	p := h.awaitEnd(h.start(h.publish(doc(2)), numbers(10)))
	require.JSONEq(t, `{"results": [0,1,2,null,4,5,6,null,8,9], "failed": [{"index": 3, "message": "No."}, {"index": 7, "message": "No."}]}`, h.result(p))
	h.requireClean(p)
	p = h.awaitEnd(h.start(h.publish(doc(1)), numbers(200)))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, "More items failed than the 1 that may. The first was item 4: No.", p.Run.Failure.Message)
	require.Equal(t, "send", p.Run.Failure.StepID)
	h.requireClean(p)
	p = h.awaitEnd(h.start(h.publish(doc(0)), numbers(200)))
	require.Regexp(t, "^Item (4|8) failed: No.$", p.Run.Failure.Message)
	h.requireClean(p)
}

// A list whose last items end together is joined by one of its slices, also where what
// comes next is written in a transaction of its own, as a question to people is.
func TestAListIsJoinedIntoAQuestion(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	id := h.publish(flow("1", step("all", "each", `{"items": "input.list", "at_once": 8, "steps": [`+setTo("one", "item")+","+setTo("two", "steps.one.x")+`]}`), askRita("ask", "Well?")))
	for range 40 {
		run := h.start(id, numbers(20))
		h.awaitWait(run, engine.WaitReview)
		require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 },
			10*time.Second, 10*time.Millisecond, "slices that come late end by themselves")
	}
	require.Zero(t, h.count(`SELECT count(*) FROM watch_findings`))
}

// Items that wait leave the window: with one at a time, all of many get to ask.
func TestItemsThatWaitMakeRoomForOthers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	under, most := 0, 0
	h := build(t, echo(func(ctx context.Context, to string) *engine.Failure {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		under--
		mu.Unlock()
		return nil
	}))
	h.work()
	run := h.start(h.publish(flow("steps.all.results", step("all", "each", `{"items": "input.list", "at_once": 2, "result": "steps.ok.verdict", "steps": [`+
		sendTo("before", "b@example.com")+","+askRita("ok", "Item {{ item }}?")+","+sendTo("after", "a@example.com")+`]}`))), numbers(12))
	p := h.await(run, "twelve questions", func(p engine.Progress) bool { return len(p.Waits) == 12 })
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM slices WHERE run_id = $1`, run) == 0 },
		10*time.Second, 10*time.Millisecond, "what waits holds no slice")
	for of := range p.Waits {
		h.decide(of, review.Approve, "")
	}
	p = h.awaitEnd(run)
	require.Equal(t, 12, strings.Count(h.result(p), "approved"))
	require.LessOrEqual(t, most, 2, "never more at once than the step says")
	h.requireClean(p)
}

// The first good branch wins; the others are cut, and what they may have cost is booked.
func TestFirstGoodBranchWins(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(ctx context.Context, call engine.Call) engine.Reply {
		var input engine.AIInput
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return engine.Reply{Failure: &engine.Failure{Class: "input", Message: err.Error()}}
		}
		if input.Prompt == "good" {
			<-asked
		}
		if input.Prompt == "slow" {
			<-ctx.Done()
			return engine.Reply{Failure: &engine.Failure{Class: "connection", Message: "Cut."}, Bill: &engine.Bill{Unknown: true}}
		}
		return engine.Reply{Output: []byte(`{"text": "` + input.Prompt + `"}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 1, Output: 1}}}
	})})
	h.work()
	ask := func(id, prompt string) string {
		return step(id, "ai", fmt.Sprintf(`{"models": ["practice/standard"], "instructions": "Answer.", "prompt": %q, "max_tokens": 100}`, prompt))
	}
	lane := func(id string, steps ...string) string {
		return fmt.Sprintf(`{"id": %q, "name": %q, "steps": [%s]}`, id, id, strings.Join(steps, ","))
	}
	doc := flow("steps.p", step("p", "parallel", `{"wait_for": "first", "good": "item.text == \"good\"", "branches": [`+
		lane("a", ask("a1", "slow"))+","+lane("b", ask("b1", "bad"))+","+lane("c", askRita("c1", "Well?"))+","+lane("d", ask("d1", "good"))+`]}`), setTo("behind", "steps.p.combined.text"))
	run := h.start(h.publish(doc), `{"n": 1}`)
	h.await(run, "all branches under way", func(p engine.Progress) bool { return len(p.Waits) == 1 && len(p.Steps) == 9 })
	close(asked)
	p := h.awaitEnd(run)
	require.JSONEq(t, `{"results": {"d": {"text": "good"}}, "combined": {"text": "good"}}`, h.result(p))
	h.requireClean(p)
	states := map[string]engine.StepState{}
	for _, row := range p.Steps {
		states[row.StepID+string(row.List)] = row.State
	}
	require.Equal(t, engine.StepCancelled, states["c1c"])
	require.Equal(t, engine.StepDone, states["b1b"])
	require.Equal(t, engine.StepDone, states["pd"])
	require.Equal(t, engine.StepCancelled, states["a1a"])
	h.requireCharges(run, 2)
}

// A loop goes on until its condition holds, and its steps see the round before.
func TestLoopEndsByItsCondition(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	p := h.awaitEnd(h.start(h.publish(flow("[steps.again, steps.sum.x, steps.send.to]", step("again", "repeat",
		`{"until": "steps.sum.x >= 10", "max_rounds": 20, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "result": "steps.sum.x", "steps": [`+
			setTo("sum", "default(steps.last.x, 0) + round")+","+sendTo("send", "r{{ round }}@example.com")+","+setTo("last", "steps.sum.x")+`]}`))), `{"n": 1}`))
	require.JSONEq(t, `[{"rounds": 4, "reason": "until", "best": 10}, 10, "r4@example.com"]`, h.result(p))
	h.requireClean(p)
}

// Each of the limits ends a loop (S50): with its best round, by a question, or failing.
func TestCaseS50LoopsKeepTheirLimits(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Output: []byte(`{"text": "a"}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 1000, Output: 1000}}}
	})})
	h.work()
	loop := func(more string, steps ...string) pipeline.ID {
		return h.publish(flow("[steps.again, steps.mark.x]", step("again", "repeat", `{"until": "false", `+more+`, "steps": [`+strings.Join(steps, ",")+`]}`)))
	}
	// the marks are 3, 5.50, 4: the second round is the best
	mark := setTo("mark", "round == 1 ? 3 : (round == 2 ? 5.50 : 4)")
	id := loop(`"max_rounds": 3, "max_cost": 1000000, "max_time": "1h", "at_limit": "best", "score": "steps.mark.x", "result": "steps.mark.x"`, mark)
	p := h.awaitEnd(h.start(id, `{"n": 1}`))
	require.JSONEq(t, `[{"rounds": 3, "reason": "rounds", "best": 5.50}, 5.50]`, h.result(p))

	question := step("q", "ai", `{"models": ["practice/standard"], "instructions": "Answer.", "prompt": "Well?", "max_tokens": 100}`)
	id = loop(`"max_rounds": 100, "max_cost": 3000, "max_time": "1h", "at_limit": "best", "score": "round"`, question, mark)
	p = h.awaitEnd(h.start(id, `{"n": 1}`))
	require.Contains(t, h.result(p), `"cost"`)
	require.Less(t, len(p.Steps), 100)

	id = loop(`"max_rounds": 2, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail"`, mark)
	p = h.awaitEnd(h.start(id, `{"n": 1}`))
	require.Equal(t, "“again” reached its limit of 2 rounds. Its end condition never held.", p.Run.Failure.Message)
	require.Equal(t, engine.ClassLimit, p.Run.Failure.Class)

	id = loop(`"max_rounds": 2, "max_cost": 1000000, "max_time": "1h", "at_limit": "ask", "ask": [{"email": "rita@example.com"}], "score": "steps.mark.x", "result": "steps.mark.x"`, mark)
	for verdict, want := range map[review.Verdict]string{review.Approve: `[{"rounds": 2, "reason": "rounds", "best": 5.50}, 5.50]`, review.Reject: ""} {
		run := h.start(id, `{"n": 1}`)
		_, step := h.awaitWait(run, engine.WaitReview)
		h.decide(step, verdict, "so be it")
		p = h.awaitEnd(run)
		if want == "" {
			require.Contains(t, p.Run.Failure.Message, "did not take the best so far")
			continue
		}
		require.JSONEq(t, want, h.result(p))
		h.requireClean(p)
	}
}

// S12, nested: an answer to the first question is none to the second, whatever is around.
func TestAnswersInNestedGroupsCountForTheirOwnQuestion(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(flow("steps.all.results", step("all", "each", `{"items": "[1, 2]", "at_once": 2, "result": "steps.a.verdict + steps.again.best.verdict", "steps": [`+
		askRita("a", "A {{ item }}?")+","+step("again", "repeat", `{"until": "true", "max_rounds": 2, "max_cost": 1, "max_time": "1d", "at_limit": "fail", "steps": [`+askRita("b", "B {{ item }}?")+`]}`)+`]}`))), `{"n": 1}`)
	p := h.await(run, "two questions", func(p engine.Progress) bool { return len(p.Waits) == 2 })
	var answers []review.Decision
	for of := range p.Waits {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			detail, err := h.reviews.ByStepRun(ctx, tx, of)
			answers = append(answers, h.answer(detail, review.Approve, ""))
			return err
		})
	}
	for range 2 { // the second time changes nothing
		for _, answer := range answers {
			h.in(func(ctx context.Context, tx tenants.Tx) error {
				_, err := h.engine.DecideReview(ctx, tx, answer)
				return err
			})
		}
		p = h.await(run, "two other questions", func(p engine.Progress) bool {
			open := 0
			for _, row := range p.Steps {
				if row.StepID == "b" && row.State == engine.StepWaiting {
					open++
				}
			}
			return open == 2 && len(p.Waits) == 2
		})
	}
	for of := range p.Waits {
		h.decide(of, review.Reject, "no")
	}
	p = h.awaitEnd(run)
	require.JSONEq(t, `["approvedrejected", "approvedrejected"]`, h.result(p))
	h.requireClean(p)
}

// Groups stand in groups to the depth that documents may have.
func TestGroupsNestToTheDepthThatDocumentsMayHave(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	inner := sendTo("send", "{{ item }}-{{ round }}@example.com") + "," + setTo("out", "item * 10 + round")
	for depth := range 2 {
		loop := step(fmt.Sprint("again", depth), "repeat", `{"until": "round >= 2", "max_rounds": 3, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "steps": [`+inner+`]}`)
		each := step(fmt.Sprint("each", depth), "each", `{"items": "[1, 2]", "at_once": 2, "steps": [`+loop+`]}`)
		both := step(fmt.Sprint("both", depth), "parallel", fmt.Sprintf(
			`{"branches": [{"id": "l", "name": "L", "steps": [%s]}, {"id": "r", "name": "R", "steps": [%s]}]}`, each, setTo(fmt.Sprint("side", depth), "1")))
		inner = both
	}
	inner = step("top", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "true", "steps": [`+inner+`]}]}`)
	p := h.awaitEnd(h.start(h.publish(flow("size(steps.both1.combined)", inner)), `{"n": 1}`))
	require.Equal(t, "2", h.result(p))
	sent := 0
	for _, row := range p.Steps {
		if row.StepID == "send" {
			sent++
		}
	}
	require.Equal(t, 2*2*2*2, sent)
	h.requireClean(p)
}

// A stop ends the run from wherever it stands, and everything else that is open in it.
func TestStopEndsTheRunFromInside(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	doc := func(stop string) string {
		return flow("default(steps.p.combined, \"none\")", step("p", "parallel", `{"branches": [{"id": "l", "name": "L", "steps": [`+askRita("a", "A?")+`]},
			{"id": "m", "name": "M", "steps": [`+step("nap", "wait", `{"for": "1s"}`)+","+step("end", "stop", stop)+`]}]}`))
	}
	p := h.awaitEnd(h.start(h.publish(doc(`{"message": "Enough, {{ input.n }}."}`)), `{"n": 1}`))
	require.Equal(t, `"none"`, h.result(p))
	h.requireClean(p)
	p = h.awaitEnd(h.start(h.publish(doc(`{"outcome": "raise", "exception": "regulatory_hold", "message": "Hold {{ input.n }}."}`)), `{"n": 7}`))
	require.Equal(t, &engine.Failure{Class: "regulatory_hold", Message: "Hold 7.", StepID: "end", Raised: true}, p.Run.Failure)
	h.requireClean(p)
}

// Branches come together by a vote, by a score, or as a list.
func TestBranchesAreCombined(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	h.work()
	for how, want := range map[string]string{
		`"combine": "majority"`:                           `{"v": 1.0}`,
		`"combine": "best", "score": "item.v * 1.000001"`: `{"v": 2}`,
		`"combine": "collect"`:                            `[{"v": 1.0}, {"v": 2}, {"v": 1}]`,
	} {
		value := func(id, v string) string {
			return fmt.Sprintf(`{"id": %q, "name": %q, "result": "{'v': %s}", "steps": [%s]}`, id, id, v, sendTo(id+"1", id+"@example.com"))
		}
		doc := flow("steps.p.combined", step("p", "parallel", `{`+how+`, "branches": [`+value("a", "1.0")+","+value("b", "2")+","+value("c", "1")+`]}`))
		p := h.awaitEnd(h.start(h.publish(doc), `{"n": 1}`))
		require.JSONEq(t, want, h.result(p), how)
		h.requireClean(p)
	}
}

// An event's wait in an item takes no room, and its deadline counts.
func TestEventsWakeItems(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(flow("steps.all.results", step("all", "each", `{"items": "[1, 2]", "at_once": 1, "result": "steps.paid.outcome", "steps": [`+
		step("paid", "event", `{"name": "paid", "key": "order-{{ item }}", "deadline": "1d", "on_deadline": "continue"}`)+`]}`))), `{"n": 1}`)
	h.await(run, "two waits", func(p engine.Progress) bool { return len(p.Waits) == 2 })
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.SendEvent(ctx, tx, engine.Event{Name: "paid", Key: "order-2", Data: []byte(`{}`), Sender: "test"})
		return err
	})
	h.await(run, "one wait", func(p engine.Progress) bool { return len(p.Waits) == 1 })
	h.exec(`UPDATE waits SET due_at = now() - interval '1 second' WHERE state = 'open'`)
	p := h.awaitEnd(run)
	require.JSONEq(t, `["timeout", "received"]`, h.result(p))
	h.requireClean(p)
}
