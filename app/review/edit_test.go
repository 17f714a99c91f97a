package review_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
)

func editable() []review.EditableField {
	return []review.EditableField{
		{Name: "amount", Label: "Amount", Type: review.FieldMoney, Required: true, Value: raw(`{"amount": "420.00", "currency": "EUR"}`)},
		{Name: "reply", Type: review.FieldText, Long: true, Value: raw(`"Dear Jane,\nwe pay."`)},
		{Name: "count", Type: review.FieldNumber, Value: raw(`12345678901234567890.5`)},
	}
}

func TestApproveWithEdits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Editable = editable()
	id := b.open(t, q)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	decision.Edits = map[string]json.RawMessage{
		"amount": raw(`{"amount": "400.00", "currency": "EUR"}`),
		"reply":  raw(`"Dear Jane,\r\nwe pay."`), // as browsers send it: no change
		"count":  raw(`12345678901234567890.5`),
	}
	result, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, review.ApproveWithEdits, result.Recorded.Verdict)
	require.Equal(t, review.OutcomeApproved, result.Outcome)
	require.Equal(t, map[string]json.RawMessage{"amount": raw(`{"amount":"400.00","currency":"EUR"}`)}, result.Recorded.Edits)
	require.JSONEq(t, `{"amount": "400.00", "currency": "EUR"}`, string(result.Values["amount"]))
	require.Equal(t, `12345678901234567890.5`, string(result.Values["count"]))
	require.Equal(t, `"Dear Jane,\nwe pay."`, string(result.Values["reply"]))

	again, err := b.decide(t, decision)
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, result.Values, again.Values)
	decision.Edits["amount"] = raw(`{"amount": "401.00", "currency": "EUR"}`)
	_, err = b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrAlreadyDecided)
}

func TestEditsThatChangeNothingAreAPlainApproval(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Editable = editable()
	id := b.open(t, q)
	decision := b.byLink(t, id, "kim@outside.example", review.ApproveWithEdits)
	decision.Edits = map[string]json.RawMessage{"amount": raw(`{"amount":"420.00","currency":"EUR"}`)}
	result, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, review.Approve, result.Recorded.Verdict)
}

func TestBadEditsAreAllListedAndNothingIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Editable = editable()
	id := b.open(t, q)
	before := b.everything(t)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	decision.Edits = map[string]json.RawMessage{"amount": raw(`null`), "count": raw(`"many"`), "verdict_of_others": raw(`1`), "reply": raw(`{"a":`)}
	_, err := b.decide(t, decision)
	var invalid *review.Invalid
	require.ErrorAs(t, err, &invalid)
	var fields []string
	for _, problem := range invalid.Problems {
		fields = append(fields, problem.Field)
	}
	require.Equal(t, []string{"amount", "reply", "count", "verdict_of_others"}, fields)
	require.Equal(t, before, b.everything(t))

	decision.Verdict, decision.Comment = review.Reject, "No."
	result, err := b.decide(t, decision)
	require.NoError(t, err, "a refusal needs no good fields")
	require.Empty(t, result.Recorded.Edits)
	require.JSONEq(t, string(editable()[0].Value), string(result.Values["amount"]))
}

func TestNobodyEditsWhereSeveralMustAgree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Editable, q.Policy = editable(), review.Policy{Rule: review.RuleAll}
	id := b.open(t, q)
	require.False(t, b.detail(t, id).CanEdit())
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	decision.Edits = map[string]json.RawMessage{"amount": raw(`{"amount": "1.00", "currency": "EUR"}`)}
	_, err := b.decide(t, decision)
	var invalid *review.Invalid
	require.True(t, errors.As(err, &invalid))
	require.Equal(t, "verdict", invalid.Problems[0].Field)
}
