package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakeerp"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/jobs"
	"tollgate/tenants"
)

// callingHouse is a house whose steps may call the address.
func callingHouse(t *testing.T, address string) *house {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	h := build(t, nil)
	h.allow(u.Host)
	return h
}

// allow lets steps call private hosts.
func (h *house) allow(hosts ...string) {
	h.t.Helper()
	vault, err := tenants.NewVault(h.secret)
	require.NoError(h.t, err)
	caller, err := jobs.NewHTTP(h.db.DB, vault, hosts...)
	require.NoError(h.t, err)
	h.engine.Callers[pipeline.KindHTTP] = caller
}

// order is a pipeline that posts one order, and hands on its number.
func order(address, more string) string {
	return fmt.Sprintf(`{"semantics": 3, "name": "Order", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "post", "name": "Post the order", "kind": "http", "timeout": "1s", "retry": {"attempts": 3, "first": "1s"}, "with": {
			"method": "POST", "url": "%s/orders", "body": "{\"ref\": \"run-\" + text(input.n)}" %s}}],
		"result": [{"name": "no", "formula": "default(steps.post.body.no, 0)"}]}`, address, more)
}

const (
	orRepeat = `, "if_unsure": "repeat"`
	orFail   = `, "if_unsure": "fail"`
)

func orLookUp(address string) string {
	return fmt.Sprintf(`, "if_unsure": "look_up", "look_up": {"url": "%s/orders/run-{{ input.n }}", "arrived": "answer.status == 200", "value": "answer.body"}`, address)
}

// afterTaking are the ways in which an order can be taken without our knowing.
var afterTaking = map[string]fakeerp.Trouble{
	"cut": fakeerp.Cut, "500": fakeerp.Fails, "no answer": fakeerp.Hangs, "half an answer": fakeerp.Half,
}

// The bar: another system that ignores idempotency keys takes an order and is cut. Under
// "ask" nothing is posted twice without a person's word.
func TestERPThatIgnoresKeysAndIsCut_Ask(t *testing.T) {
	t.Parallel()
	for name, trouble := range afterTaking {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp, address := fakeerp.Start(t, trouble)
			h := callingHouse(t, address)
			h.work()
			run := h.start(h.publish(order(address, "")), `{"n": 1}`)
			p, step := h.awaitWait(run, engine.WaitReview)
			requireTold(t, h, p, step)
			requireOrders(t, erp, 1)

			h.arrived(step, "arrived", `{"no": 7}`)
			p = h.awaitEnd(run)
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			require.JSONEq(t, `{"no": 7}`, h.value(p.Run.Result))
			require.Contains(t, p.Steps[0].Note, "was not sent again")
			requireOrders(t, erp, 1)
			require.Len(t, h.attempts(step), 1)
		})
	}
}

// requireTold checks what the question says: what happened, and what was sent where.
func requireTold(t *testing.T, h *house, p engine.Progress, step engine.StepRunID) {
	t.Helper()
	detail := h.review(step)
	require.Contains(t, detail.Content.Title, "Post the order: did it arrive?")
	require.Contains(t, detail.Content.Body, "not sent again unless you say so")
	require.Contains(t, detail.Content.Facts[1].Value, `{"ref":"run-1"}`)
	require.Equal(t, step.String(), detail.Content.Facts[2].Value, "the idempotency key")
	require.Equal(t, engine.StepWaiting, p.Steps[0].State)
}

// Her word sends it, once, under the same key; and if that is cut again, she is asked again.
func TestERPThatIgnoresKeysAndIsCut_AskSendsOnWord(t *testing.T) {
	t.Parallel()
	erp, address := fakeerp.Start(t, fakeerp.Cut, fakeerp.Cut)
	h := callingHouse(t, address)
	h.work()
	run := h.start(h.publish(order(address, "")), `{"n": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	first := h.review(step).ID
	h.arrived(step, "not_arrived", "")
	require.Eventually(t, func() bool {
		detail, err := h.reviewIfAny(step)
		return err == nil && detail.ID != first && detail.Open()
	}, 20*time.Second, 20*time.Millisecond, "she is asked again")
	requireOrders(t, erp, 2)
	h.arrived(step, "not_arrived", "")
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	requireOrders(t, erp, 3)
	require.Contains(t, p.Steps[0].Note, "said that it had not arrived")
	require.Equal(t, 3, p.Steps[0].Attempt)
}

func TestERPThatIgnoresKeysAndIsCut_AskLetsItFail(t *testing.T) {
	t.Parallel()
	erp, address := fakeerp.Start(t, fakeerp.Cut)
	h := callingHouse(t, address)
	h.work()
	run := h.start(h.publish(order(address, "")), `{"n": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	h.decideEdited(step, review.Reject, "Leave it.", nil)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, engine.ClassUnsure, p.Run.Failure.Class)
	requireOrders(t, erp, 1)
}

// What a step does about its failure may ask as well, and the step asks anew when it is
// tried again: each question stands for itself.
func TestERPThatIgnoresKeysAndIsCut_AskAndThenCatch(t *testing.T) {
	t.Parallel()
	erp, address := fakeerp.Start(t, fakeerp.Cut)
	h := callingHouse(t, address)
	h.work()
	document := strings.Replace(order(address, ""), `"kind": "http",`, `"kind": "http", "on_error": [{"do": "ask", "ask": {"question": "Shall it go on?", "people": [{"email": "rita@example.com"}]}}],`, 1)
	run := h.start(h.publish(document), `{"n": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	first := h.review(step).ID
	h.decideEdited(step, review.Reject, "Leave it.", nil)
	require.Eventually(t, func() bool {
		detail, err := h.reviewIfAny(step)
		return err == nil && detail.ID != first && detail.Open()
	}, 20*time.Second, 20*time.Millisecond, "what is done about the failure asks, too")
	h.decideEdited(step, review.Approve, "", nil)
	h.awaitEnd(run)
	requireOrders(t, erp, 1)
}

func TestERPThatIgnoresKeysAndIsCut_LookUp(t *testing.T) {
	t.Parallel()
	for name, trouble := range afterTaking {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp, address := fakeerp.Start(t, trouble)
			h := callingHouse(t, address)
			h.work()
			run := h.start(h.publish(order(address, orLookUp(address))), `{"n": 1}`)
			p := h.awaitEnd(run)
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			require.JSONEq(t, `{"no": 1}`, h.value(p.Run.Result), "what the look-up found")
			require.Equal(t, 1, requireOrders(t, erp, 1))
			require.Contains(t, p.Steps[0].Note, "had arrived, so it was not sent again")
		})
	}
}

// What did not arrive is found out, and sent.
func TestERPThatIgnoresKeysAndIsCut_LookUpFindsNothing(t *testing.T) {
	t.Parallel()
	erp, address := fakeerp.Start(t, fakeerp.Cut)
	h := callingHouse(t, address)
	h.work()
	document := order(address, fmt.Sprintf(`, "if_unsure": "look_up", "look_up": {"url": "%s/orders/other-{{ input.n }}", "arrived": "answer.status == 200"}`, address))
	p := h.awaitEnd(h.start(h.publish(document), `{"n": 1}`))
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	requireOrders(t, erp, 2)
	require.Contains(t, p.Steps[0].Note, "had not arrived, so it was sent again")
}

func TestERPThatIgnoresKeysAndIsCut_Repeat(t *testing.T) {
	t.Parallel()
	for name, trouble := range afterTaking {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp, address := fakeerp.Start(t, trouble)
			h := callingHouse(t, address)
			h.work()
			p := h.awaitEnd(h.start(h.publish(order(address, orRepeat)), `{"n": 1}`))
			require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
			requireOrders(t, erp, 2)
			orders, _ := erp.Orders()
			require.Equal(t, orders[0].Key, orders[1].Key, "each try carries the same key")
			require.Equal(t, p.Steps[0].ID.String(), orders[0].Key)
		})
	}
}

func TestERPThatIgnoresKeysAndIsCut_Fail(t *testing.T) {
	t.Parallel()
	erp, address := fakeerp.Start(t, fakeerp.Cut)
	h := callingHouse(t, address)
	h.work()
	p := h.awaitEnd(h.start(h.publish(order(address, orFail)), `{"n": 1}`))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, engine.ClassUnsure, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "Nobody can tell whether the other side got it.")
	requireOrders(t, erp, 1)
}

// A worker that falls silent with the call in flight leaves the same doubt.
func TestERPThatIgnoresKeys_WorkerTakenOver(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]struct {
		more func(address string) string
		then int // orders in the end
	}{
		"ask":     {func(string) string { return "" }, 1},
		"look up": {orLookUp, 1},
		"repeat":  {func(string) string { return orRepeat }, 2},
		"fail":    {func(string) string { return orFail }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erp, address := fakeerp.Start(t, fakeerp.Hangs)
			h := callingHouse(t, address)
			h.work()
			run := h.start(h.publish(longer(order(address, policy.more(address)))), `{"n": 1}`)
			<-erp.Taken
			second := h.work()
			require.NoError(t, second.BuryOthers(t.Context()))
			if name == "ask" {
				_, step := h.awaitWait(run, engine.WaitReview)
				require.Contains(t, h.review(step).Content.Body, "The program stopped in the middle of this call.")
				h.arrived(step, "arrived", "")
			}
			p := h.awaitEnd(run)
			require.Equal(t, name == "fail", p.Run.State == engine.RunFailed, "%+v", p.Run.Failure)
			requireOrders(t, erp, policy.then)
			require.Equal(t, engine.AttemptInterrupted, h.attempts(p.Steps[0].ID)[0].Outcome)
		})
	}
}

// longer gives the call time, so that nothing but its worker ends it.
func longer(document string) string {
	var d map[string]any
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		panic(err)
	}
	d["steps"].([]any)[0].(map[string]any)["timeout"] = "5m"
	out, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// requireOrders checks how many orders were taken, and gives how often was looked up.
func requireOrders(t *testing.T, erp *fakeerp.Server, want int) int {
	t.Helper()
	orders, lookUps := erp.Orders()
	require.Len(t, orders, want, "orders at the other side")
	return lookUps
}

func (h *house) reviewIfAny(step engine.StepRunID) (review.Detail, error) {
	var detail review.Detail
	err := h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		detail, err = h.reviews.ByStepRun(ctx, tx, step)
		return err
	})
	return detail, err
}

func (h *house) review(step engine.StepRunID) review.Detail {
	h.t.Helper()
	detail, err := h.reviewIfAny(step)
	require.NoError(h.t, err)
	return detail
}

// arrived answers whether a call arrived.
func (h *house) arrived(step engine.StepRunID, which, answer string) {
	h.t.Helper()
	edits := map[string]json.RawMessage{"arrived": json.RawMessage(`"` + which + `"`)}
	if answer != "" {
		encoded, err := json.Marshal(answer)
		require.NoError(h.t, err)
		edits["answer"] = encoded
	}
	h.decideEdited(step, review.Approve, "", edits)
}

func (h *house) decideEdited(step engine.StepRunID, verdict review.Verdict, comment string, edits map[string]json.RawMessage) {
	h.t.Helper()
	decision := h.answer(h.review(step), verdict, comment)
	decision.Edits = edits
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.DecideReview(ctx, tx, decision)
		return err
	})
}
