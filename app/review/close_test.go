package review_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

// dueIn opens the question with a deadline that many seconds after the opening, which
// is then moved back so that ago has passed.
func (b bundle) dueIn(t testing.TB, q review.Question, due, ago time.Duration) review.ID {
	t.Helper()
	at := time.Now().Add(due)
	q.Due = &at
	id := b.open(t, q)
	b.exec(t, `UPDATE reviews SET opened_at = opened_at - $1::interval, due_at = due_at - $1::interval`, ago)
	return id
}

func TestAnswerAfterTheDeadlineIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dueIn(t, b.question(), time.Hour, 2*time.Hour)
	before := b.everything(t)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	_, err := b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrNotOpen)
	require.NotErrorIs(t, err, review.ErrAlreadyDecided)
	var settled *review.Settled
	require.ErrorAs(t, err, &settled)
	require.Equal(t, review.OutcomeTimeout, settled.Outcome)
	require.Equal(t, before, b.everything(t))
	view, err := b.visit(t, decision.Viewer)
	require.NoError(t, err)
	require.ErrorIs(t, view.Refusal, review.ErrNotOpen, "the page says so too")
	require.Empty(t, b.inbox(t, b.ben))
}

// The transaction began before the deadline and came to its turn after it.
func TestDeadlineIsJudgedWhenTheLockIsHad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dueIn(t, b.question(), time.Hour, 0)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	err := b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		b.exec(t, `UPDATE reviews SET due_at = clock_timestamp()`)
		_, err := b.room.Decide(ctx, tx, decision)
		return err
	})
	require.ErrorIs(t, err, review.ErrNotOpen)
}

func TestTimeoutComesNoEarlierThanTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dueIn(t, b.question(), time.Hour, 0)
	_, err := b.close(t, id, review.OutcomeTimeout)
	var early *review.NotDue
	require.ErrorAs(t, err, &early)
	require.WithinDuration(t, time.Now().Add(time.Hour), early.Due, time.Minute)

	b.exec(t, `UPDATE reviews SET due_at = now()`)
	closed, err := b.close(t, id, review.OutcomeTimeout)
	require.NoError(t, err)
	require.True(t, closed)
	d := b.detail(t, id)
	require.Equal(t, review.OutcomeTimeout, d.Outcome)
	for _, seat := range d.Seats {
		require.Equal(t, review.SeatClosed, seat.State)
	}
	closed, err = b.close(t, id, review.OutcomeTimeout)
	require.NoError(t, err)
	require.False(t, closed, "only one call ends it")
}

func TestReviewWithoutDeadlineNeverTimesOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	_, err := b.close(t, id, review.OutcomeTimeout)
	require.ErrorContains(t, err, "without a deadline")
	require.True(t, b.detail(t, id).Open())
}

// The mail server is slow: the time to answer counts from when a mail got through.
func TestTimeBeginsWhenSomebodyCouldAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.People = q.People[2:] // Kim, who has nothing but her mail
	id := b.dueIn(t, q, 10*time.Minute, 12*time.Minute)

	var early *review.NotDue
	_, err := b.close(t, id, review.OutcomeTimeout)
	require.ErrorAs(t, err, &early, "nobody could have answered yet")
	require.WithinDuration(t, time.Now().Add(time.Minute), early.Due, 20*time.Second)

	b.outbox.sent = time.Now()
	_, err = b.close(t, id, review.OutcomeTimeout)
	require.ErrorAs(t, err, &early)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), early.Due, 20*time.Second)
	require.WithinDuration(t, early.Due, *b.detail(t, id).DueAt, 0, "pages show the same time")
	_, err = b.decide(t, b.byLink(t, id, "kim@outside.example", review.Approve))
	require.NoError(t, err)
}

func TestMembersTimeBeginsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dueIn(t, b.question(), 10*time.Minute, 12*time.Minute)
	closed, err := b.close(t, id, review.OutcomeTimeout)
	require.NoError(t, err)
	require.True(t, closed, "Ben had it in his inbox all the time")
}

func TestCancelledReviewTakesNoAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, why := range []review.Outcome{review.OutcomeCancelled, review.OutcomeWithdrawn} {
		q := b.question()
		q.Round = i + 1
		id := b.open(t, q)
		decision := b.byLink(t, id, "kim@outside.example", review.Approve)
		closed, err := b.close(t, id, why)
		require.NoError(t, err)
		require.True(t, closed)
		_, err = b.decide(t, decision)
		var settled *review.Settled
		require.ErrorIs(t, err, review.ErrNotOpen)
		require.ErrorAs(t, err, &settled)
		require.Equal(t, why, settled.Outcome)
	}
}

func TestCloseNeverDecidesForPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	for _, why := range []review.Outcome{"", review.OutcomeApproved, review.OutcomeRejected, review.OutcomeSentBack, "done"} {
		_, err := b.close(t, id, why)
		require.Error(t, err)
	}
	require.True(t, b.detail(t, id).Open())
}

// An answer and the timer come together: one of them ends the review, and both know.
func TestAnswerAgainstTimer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for round := 1; round <= 10; round++ {
		q := b.question()
		q.Round = round
		id := b.open(t, q)
		decision := b.byLink(t, id, "kim@outside.example", review.Approve)
		var decided, closed bool
		var group sync.WaitGroup
		group.Go(func() {
			_, err := b.decide(t, decision)
			decided = err == nil
			require.True(t, decided || errors.Is(err, review.ErrNotOpen), "%v", err)
		})
		group.Go(func() {
			var err error
			closed, err = b.close(t, id, review.OutcomeCancelled)
			require.NoError(t, err)
		})
		group.Wait()
		require.NotEqual(t, decided, closed)
		want := review.OutcomeCancelled
		if decided {
			want = review.OutcomeApproved
		}
		require.Equal(t, want, b.detail(t, id).Outcome)
	}
}
