package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/tenants"
)

// triage is a small pipeline with every kind that runs now.
const triage = `{
	"semantics": 1, "name": "Triage", "run_name": "{{ input.subject }}",
	"input": [{"name": "subject", "type": "text", "required": true}, {"name": "amount", "type": "number"}],
	"steps": [
		{"id": "sort", "name": "Sort it", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Sort.", "prompt": "{{ input.subject }}",
			"answer": [{"name": "kind", "type": "choice", "required": true, "choices": [{"value": "complaint"}, {"value": "order"}]}]}},
		{"id": "size", "name": "Note the size", "kind": "set", "with": {"values": [{"name": "double", "formula": "input.amount * 2"}]}},
		{"id": "check", "name": "Check it", "kind": "review", "with": {"question": "Answer {{ input.subject }}?", "people": [{"email": "rita@example.com"}]}},
		{"id": "route", "name": "Decide", "kind": "branch", "with": {"cases": [
			{"id": "yes", "name": "If approved", "when": "steps.check.verdict == 'approved'", "steps": [
				{"id": "tell", "name": "Tell them", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Re: {{ input.subject }}", "body": "Fine."}}]}],
			"otherwise": [{"id": "note", "name": "Keep the reason", "kind": "set", "with": {"values": [{"name": "reason", "formula": "steps.check.comment"}]}}]}}
	],
	"result": [{"name": "double", "formula": "steps.size.double"}, {"name": "verdict", "formula": "steps.check.verdict"}]
}`

// decide answers the open review of a step run.
func (h *house) decide(step engine.StepRunID, verdict review.Verdict, comment string) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		if err != nil {
			return err
		}
		_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, verdict, comment))
		return err
	})
}

func TestRunGoesThroughApproval(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(triage), `{"subject": "Broken lamp", "amount": 9007199254740993}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	h.decide(step, review.Approve, "")
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, []string{"sort", "size", "check", "route", "tell"}, stepIDs(p))
	require.Equal(t, "Broken lamp", p.Run.Name)
	require.JSONEq(t, `{"double": 18014398509481986, "verdict": "approved"}`, h.value(p.Run.Result))
}

func TestRunGoesThroughRejection(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	run := h.start(h.publish(triage), `{"subject": "Broken lamp", "amount": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	h.decide(step, review.Reject, "not ours")
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, []string{"sort", "size", "check", "route", "note"}, stepIDs(p))
	require.JSONEq(t, `{"reason": "not ours"}`, h.value(p.Steps[4].Output))
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		require.NoError(t, err)
		require.Equal(t, review.OutcomeRejected, page.Lines[0].Verdict, "a list must not show it like an approved run")
		require.Equal(t, "rita@example.com", page.Lines[0].VerdictBy)
		return nil
	})
}

func stepIDs(p engine.Progress) []string {
	var ids []string
	for _, step := range p.Steps {
		ids = append(ids, step.StepID)
	}
	return ids
}

func (h *house) value(digest engine.Digest) string {
	h.t.Helper()
	var content engine.Content
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		content, err = engine.Value(ctx, tx, digest)
		return err
	})
	require.True(h.t, json.Valid(content.Bytes))
	return string(content.Bytes)
}
