package review_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

func TestApproveByLink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	result, err := b.decide(t, b.byLink(t, id, "kim@outside.example", review.Approve))
	require.NoError(t, err)
	require.True(t, result.Closed)
	require.False(t, result.Repeated)
	require.Equal(t, review.OutcomeApproved, result.Outcome)
	require.Equal(t, id, result.Review)
	require.Equal(t, b.run, result.RunID)
	require.Equal(t, b.stepRun, result.StepRunID)

	d := b.detail(t, id)
	require.Equal(t, review.OutcomeApproved, d.Outcome)
	require.NotNil(t, d.ClosedAt)
	require.Len(t, d.Answers, 1)
	answer := d.Answers[0]
	require.Equal(t, review.ProofLink, answer.Proof)
	require.Equal(t, "kim@outside.example", answer.Address)
	require.Equal(t, "192.0.2.7", answer.Client)
	require.Equal(t, d.Digest, answer.Digest)
	require.True(t, answer.User.IsZero())
	require.Equal(t, review.SeatAnswered, b.seat(t, id, "kim@outside.example").State)
	require.Equal(t, review.SeatClosed, b.seat(t, id, "ben@example.com").State)
}

func TestApproveBySignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Proof, q.People = review.ProofSignIn, q.People[:2]
	id := b.open(t, q)

	_, err := b.decide(t, b.byLink(t, id, "ben@example.com", review.Approve))
	require.ErrorIs(t, err, review.ErrProofNeeded, "the link alone is not enough")

	decision := b.byLink(t, id, "ben@example.com", review.Approve)
	decision.Viewer = review.Viewer{User: b.ben}
	result, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, review.ProofSignIn, result.Recorded.Proof)
	require.Equal(t, b.ben, result.Recorded.User)
}

func TestCodeServesWhereItIsAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Proof = review.ProofLinkCode
	id := b.open(t, q)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	_, err := b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrProofNeeded)
	decision.Viewer.CodeChecked = true
	result, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, review.ProofLinkCode, result.Recorded.Proof)
}

func TestNobodyAnswersFromSomebodyElsesSeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	good := b.byLink(t, id, "kim@outside.example", review.Approve)
	ben := b.byLink(t, id, "ben@example.com", review.Approve)
	before := b.everything(t)
	tests := map[string]struct {
		viewer review.Viewer
		want   error
	}{
		"no proof at all":                {review.Viewer{}, review.ErrNotYours},
		"code without link":              {review.Viewer{CodeChecked: true}, review.ErrNotYours},
		"another seat's link":            {review.Viewer{Token: ben.Viewer.Token}, review.ErrUnknownLink},
		"a made-up link":                 {review.Viewer{Token: strings.Repeat("A", 43)}, review.ErrUnknownLink},
		"a member who has no seat":       {review.Viewer{User: b.owner}, review.ErrNotYours},
		"a member who has another seat":  {review.Viewer{User: b.ben}, review.ErrNotYours},
		"Ben, by Kim's link too":         {review.Viewer{User: b.ben, Token: good.Viewer.Token}, review.ErrNotYours},
		"who started it, by Kim's link":  {review.Viewer{User: b.owner, Token: good.Viewer.Token}, review.ErrRequester},
		"somebody of another workspace":  {review.Viewer{User: b.otherTenantBy}, review.ErrNotYours},
		"signed in, with a made-up link": {review.Viewer{User: b.ben, Token: "x"}, review.ErrUnknownLink},
	}
	for name, test := range tests {
		decision := good
		decision.Viewer = test.viewer
		_, err := b.decide(t, decision)
		require.ErrorIs(t, err, test.want, name)
	}
	require.Equal(t, before, b.everything(t))
}

// The starter's ban holds on every way, also where she has a link of her own.
func TestRequesterMayNotDecideByAnyWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	b.exec(t, `UPDATE reviews SET requester_id = $1`, b.ben) // Ben has a seat already
	decision := b.byLink(t, id, "ben@example.com", review.Approve)
	for _, viewer := range []review.Viewer{{User: b.ben}, {User: b.ben, Token: decision.Viewer.Token}, {User: b.ben, Token: decision.Viewer.Token, CodeChecked: true}} {
		decision.Viewer = viewer
		_, err := b.decide(t, decision)
		require.ErrorIs(t, err, review.ErrRequester)
	}
	b.exec(t, `UPDATE reviews SET allow_requester = true`)
	_, err := b.decide(t, decision)
	require.NoError(t, err)
}

func TestRemovedMemberLosesHerSeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	decision := b.byLink(t, id, "ben@example.com", review.Approve)
	b.exec(t, `DELETE FROM members WHERE user_id = $1`, b.ben)
	before := b.everything(t)
	_, err := b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrUnknownLink)
	decision.Viewer = review.Viewer{User: b.ben}
	_, err = b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrNotYours)
	_, err = b.room.BySeatToken(t.Context(), b.db.DB, review.Viewer{Token: b.token(t, id, "ben@example.com")})
	require.ErrorIs(t, err, review.ErrUnknownLink)
	require.Equal(t, before, b.everything(t))
}

func TestAnswerToSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	good := b.byLink(t, id, "kim@outside.example", review.Approve)
	flipped := append([]byte(nil), good.Digest...)
	flipped[0] ^= 1
	for _, digest := range [][]byte{nil, {}, good.Digest[:31], flipped, append(append([]byte(nil), good.Digest...), 0)} {
		decision := good
		decision.Digest = digest
		_, err := b.decide(t, decision)
		require.ErrorIs(t, err, review.ErrChanged)
	}
	require.Empty(t, b.detail(t, id).Answers)
}

func TestSameAnswerAgainGivesWhatWasRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, policy := range []review.Policy{{}, {Rule: review.RuleAll}} {
		for _, verdict := range []review.Verdict{review.Approve, review.Reject, review.SendBack} {
			q := b.question()
			q.Policy, q.StepRunID = policy, tenants.NewID[string]()
			id := b.open(t, q)
			decision := b.byLink(t, id, "kim@outside.example", verdict)
			first, err := b.decide(t, decision)
			require.NoError(t, err)
			before := b.everything(t)

			decision.Comment = " " + decision.Comment + "\r\n"
			again, err := b.decide(t, decision)
			require.NoError(t, err)
			require.True(t, again.Repeated)
			require.Equal(t, first.Outcome, again.Outcome)
			require.Equal(t, first.Recorded.ID, again.Recorded.ID)
			require.WithinDuration(t, first.Recorded.At, again.Recorded.At, 0)

			other := b.byLink(t, id, "kim@outside.example", review.Reject)
			other.Comment = "Something else."
			_, err = b.decide(t, other)
			require.ErrorIs(t, err, review.ErrAlreadyDecided)
			require.NotErrorIs(t, err, review.ErrNotOpen)
			var settled *review.Settled
			require.ErrorAs(t, err, &settled)
			require.True(t, settled.Own)
			require.Equal(t, first.Recorded.Verdict, settled.Verdict)
			require.Equal(t, "Kim Lee", settled.By)
			require.Equal(t, before, b.everything(t))
		}
	}
}

func TestLateAnswerIsToldWhatHappened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	_, err := b.decide(t, b.byLink(t, id, "ben@example.com", review.Approve))
	require.NoError(t, err)
	before := b.everything(t)

	_, err = b.decide(t, b.byLink(t, id, "kim@outside.example", review.Approve))
	var settled *review.Settled
	require.ErrorIs(t, err, review.ErrAlreadyDecided)
	require.ErrorAs(t, err, &settled)
	require.Equal(t, review.OutcomeApproved, settled.Outcome)
	require.False(t, settled.Own)
	require.Empty(t, settled.By, "outsiders are not told who decided")
	require.False(t, settled.At.IsZero())

	chi := b.byLink(t, id, "chi@example.com", review.Reject)
	chi.Viewer = review.Viewer{User: b.chi}
	_, err = b.decide(t, chi)
	require.ErrorAs(t, err, &settled)
	require.Equal(t, "Ben Okonkwo", settled.By, "members are")
	require.Equal(t, before, b.everything(t))
}

func TestManyMustAgree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type step struct {
		by      string
		verdict review.Verdict
		want    review.Outcome
	}
	const ben, chi, kim = "ben@example.com", "chi@example.com", "kim@outside.example"
	tests := map[string]struct {
		policy review.Policy
		steps  []step
	}{
		"all":          {review.Policy{Rule: review.RuleAll}, []step{{chi, review.Approve, ""}, {kim, review.Approve, ""}, {ben, review.Approve, review.OutcomeApproved}}},
		"all, refused": {review.Policy{Rule: review.RuleAll}, []step{{chi, review.Approve, ""}, {kim, review.Reject, review.OutcomeRejected}}},
		"two of three": {review.Policy{Rule: review.RuleN, N: 2}, []step{{kim, review.Approve, ""}, {ben, review.Approve, review.OutcomeApproved}}},
		"sent back":    {review.Policy{Rule: review.RuleN, N: 2}, []step{{kim, review.Approve, ""}, {ben, review.SendBack, review.OutcomeSentBack}}},
	}
	for name, test := range tests {
		q := b.question()
		q.Policy, q.StepRunID = test.policy, tenants.NewID[string]()
		id := b.open(t, q)
		for _, step := range test.steps {
			result, err := b.decide(t, b.byLink(t, id, step.by, step.verdict))
			require.NoError(t, err, name)
			require.Equal(t, step.want, result.Outcome, name)
			require.Equal(t, step.want != "", result.Closed, name)
			require.Equal(t, step.want, b.detail(t, id).Outcome, name)
		}
	}
}

// Two answers at once, again and again: one decides, the other is told.
func TestTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 10 {
		q := b.question()
		q.StepRunID = tenants.NewID[string]()
		id := b.open(t, q)
		decisions := []review.Decision{
			b.byLink(t, id, "ben@example.com", review.Approve), b.byLink(t, id, "kim@outside.example", review.Reject),
			b.byLink(t, id, "chi@example.com", review.SendBack), b.byLink(t, id, "chi@example.com", review.Approve),
		}
		results, errs := make([]review.Result, len(decisions)), make([]error, len(decisions))
		var group sync.WaitGroup
		for i, decision := range decisions {
			group.Go(func() { results[i], errs[i] = b.decide(t, decision) })
		}
		group.Wait()
		won := 0
		for i := range decisions {
			if errs[i] == nil {
				won++
				require.True(t, results[i].Closed)
				require.Equal(t, results[i].Outcome, b.detail(t, id).Outcome)
				continue
			}
			require.ErrorIs(t, errs[i], review.ErrAlreadyDecided)
		}
		require.Equal(t, 1, won)
		require.Len(t, b.detail(t, id).Answers, 1)
	}
}

func TestSameAnswerTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	var group sync.WaitGroup
	repeated := make([]bool, 6)
	for i := range repeated {
		group.Go(func() {
			result, err := b.decide(t, decision)
			require.NoError(t, err)
			repeated[i] = result.Repeated
		})
	}
	group.Wait()
	fresh := 0
	for _, r := range repeated {
		if !r {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
}

func TestAllAgreeAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Policy = review.Policy{Rule: review.RuleAll}
	id := b.open(t, q)
	var group sync.WaitGroup
	closed := make([]bool, 3)
	for i, by := range []string{"ben@example.com", "chi@example.com", "kim@outside.example"} {
		decision := b.byLink(t, id, by, review.Approve)
		group.Go(func() {
			result, err := b.decide(t, decision)
			require.NoError(t, err)
			closed[i] = result.Closed
		})
	}
	group.Wait()
	n := 0
	for _, c := range closed {
		if c {
			n++
		}
	}
	require.Equal(t, 1, n, "exactly one answer ends the review")
}

func TestReasonsAndVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.SendBack = false
	id := b.open(t, q)
	tests := map[string]struct {
		verdict review.Verdict
		comment string
		field   string
	}{
		"no verdict":          {"", "", "verdict"},
		"unknown verdict":     {"maybe", "", "verdict"},
		"outcome as verdict":  {"approved", "", "verdict"},
		"reject, no reason":   {review.Reject, " \r\n", "comment"},
		"send back not asked": {review.SendBack, "again", "verdict"},
		"long comment":        {review.Approve, strings.Repeat("é", 5001), "comment"},
	}
	before := b.everything(t)
	for name, test := range tests {
		decision := b.byLink(t, id, "kim@outside.example", test.verdict)
		decision.Comment = test.comment
		_, err := b.decide(t, decision)
		var invalid *review.Invalid
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, test.field, invalid.Problems[0].Field, name)
	}
	require.Equal(t, before, b.everything(t))
	decision := b.byLink(t, id, "kim@outside.example", review.Reject)
	decision.Comment = "Not\r\nthis\x00 one\xff"
	result, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, "Not\nthis\uFFFD one\uFFFD", result.Recorded.Comment)
}

func TestOtherWorkspaceCannotDecide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	before := b.everything(t)
	err := b.db.InTx(t.Context(), b.otherTenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := b.room.Decide(ctx, tx, decision)
		require.ErrorIs(t, err, review.ErrNotFound)
		_, err = b.room.Close(ctx, tx, id, review.OutcomeCancelled)
		require.ErrorIs(t, err, review.ErrNotFound)
		_, err = b.room.ByID(ctx, tx, id)
		require.ErrorIs(t, err, review.ErrNotFound)
		_, err = b.room.ByStepRun(ctx, tx, b.stepRun)
		require.ErrorIs(t, err, review.ErrNotFound)
		require.ErrorIs(t, b.room.Renew(ctx, tx, decision.Seat), review.ErrNotFound)
		_, err = b.room.ForMember(ctx, tx, id, review.Viewer{User: b.ben})
		require.ErrorIs(t, err, review.ErrNotFound)
		list, err := b.room.Inbox(ctx, tx, b.ben)
		require.NoError(t, err)
		require.Empty(t, list)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, before, b.everything(t))
}

func TestDecisionsAreNeverChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	_, err := b.decide(t, b.byLink(t, id, "kim@outside.example", review.Approve))
	require.NoError(t, err)
	for _, statement := range []string{`UPDATE decisions SET verdict = 'reject'`, `DELETE FROM decisions`, `TRUNCATE decisions`, `DELETE FROM reviews`, `DELETE FROM seats`} {
		err := b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			_, err := tx.Exec(ctx, statement)
			return err
		})
		require.ErrorContains(t, err, "permission denied", statement)
	}
}
