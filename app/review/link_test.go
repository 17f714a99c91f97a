package review_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

func (b bundle) visit(t testing.TB, viewer review.Viewer) (review.View, error) {
	t.Helper()
	return b.room.BySeatToken(t.Context(), b.db.DB, viewer)
}

// Scanners open every link, many times and in parallel, before anybody reads the mail.
func TestHundredViewsChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	before := b.everything(t)
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	for range 100 {
		view, err := b.visit(t, decision.Viewer)
		require.NoError(t, err)
		require.NoError(t, view.Refusal)
	}
	require.Equal(t, before, b.everything(t))
	_, err := b.decide(t, decision)
	require.NoError(t, err, "the link still works")
}

func TestLinkShowsItsSeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	view, err := b.visit(t, review.Viewer{Token: b.token(t, id, "kim@outside.example")})
	require.NoError(t, err)
	require.NoError(t, view.Refusal)
	require.Equal(t, b.tenant, view.Tenant)
	require.Equal(t, id, view.Review.ID)
	require.Equal(t, "kim@outside.example", view.Seat.Address)
	require.Equal(t, "Send this reply?", view.Review.Content.Title)
}

func TestBadLinksAreOneAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	token := b.token(t, id, "kim@outside.example")
	altered := []byte(token)
	altered[10] ^= 1
	padding := []byte(token) // the last character has two bits that say nothing
	padding[42]++
	for name, bad := range map[string]string{
		"empty": "", "cut": token[:37], "altered": string(altered), "spare bits": string(padding), "longer": token + "A", "with space": token + " ",
		"made up": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "padded": token + "=", "not ASCII": "é" + token, "nul": token[:20] + "\x00" + token[21:],
		"huge": string(make([]byte, 1<<20)), "seat id": b.seat(t, id, "kim@outside.example").ID.String(), "next generation": b.secret.SeatToken(b.seat(t, id, "kim@outside.example").ID, 2),
	} {
		view, err := b.visit(t, review.Viewer{Token: bad, User: b.ben})
		require.ErrorIs(t, err, review.ErrUnknownLink, name)
		require.Equal(t, review.View{}, view, name)
	}
}

func TestExpiredLinkIsToldOnlyToItsHolder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	decision := b.byLink(t, id, "kim@outside.example", review.Approve)
	b.exec(t, `UPDATE seats SET expires_at = now() - interval '1 second'`)
	view, err := b.visit(t, decision.Viewer)
	require.NoError(t, err)
	require.ErrorIs(t, view.Refusal, review.ErrLinkExpired)
	require.Empty(t, view.Review.Content)
	require.Empty(t, view.Review.Seats)
	require.Equal(t, "kim@outside.example", view.Seat.Address)
	_, err = b.decide(t, decision)
	require.ErrorIs(t, err, review.ErrLinkExpired)
	_, err = b.visit(t, review.Viewer{Token: decision.Viewer.Token[:37]})
	require.ErrorIs(t, err, review.ErrUnknownLink, "cut is not called expired")

	_, err = b.visit(t, review.Viewer{Token: b.token(t, id, "ben@example.com"), User: b.ben})
	require.NoError(t, err)
	member := b.byLink(t, id, "ben@example.com", review.Approve)
	member.Viewer = review.Viewer{User: b.ben}
	_, err = b.decide(t, member)
	require.NoError(t, err, "a signed-in member needs no link")
}

func TestRenewedLinkReplacesTheOld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	old := b.byLink(t, id, "kim@outside.example", review.Approve)
	b.exec(t, `UPDATE seats SET expires_at = now() - interval '1 second'`)
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error { return b.room.Renew(ctx, tx, old.Seat) }))

	last := b.outbox.invited[len(b.outbox.invited)-1]
	require.Equal(t, old.Seat, last.Seat)
	require.Equal(t, 2, last.Generation)
	_, err := b.visit(t, old.Viewer)
	require.ErrorIs(t, err, review.ErrUnknownLink)
	_, err = b.decide(t, old)
	require.ErrorIs(t, err, review.ErrUnknownLink)
	fresh := b.byLink(t, id, "kim@outside.example", review.Approve)
	view, err := b.visit(t, fresh.Viewer)
	require.NoError(t, err)
	require.NoError(t, view.Refusal)
	_, err = b.decide(t, fresh)
	require.NoError(t, err)
	err = b.in(t, func(ctx context.Context, tx tenants.Tx) error { return b.room.Renew(ctx, tx, old.Seat) })
	require.ErrorIs(t, err, review.ErrNotOpen)
}

func TestContentIsHiddenUntilTheProofIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Proof = review.ProofLinkCode
	id := b.open(t, q)
	viewer := review.Viewer{Token: b.token(t, id, "kim@outside.example")}
	view, err := b.visit(t, viewer)
	require.NoError(t, err)
	require.ErrorIs(t, view.Refusal, review.ErrProofNeeded)
	require.Equal(t, review.ProofLinkCode, view.Review.Proof)
	require.Empty(t, view.Review.Content)
	require.Empty(t, view.Review.Digest)
	viewer.CodeChecked = true
	view, err = b.visit(t, viewer)
	require.NoError(t, err)
	require.NoError(t, view.Refusal)
	require.NotEmpty(t, view.Review.Content.Title)
}

func TestOldLinkShowsWhatHappened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	_, err := b.decide(t, b.byLink(t, id, "kim@outside.example", review.Approve))
	require.NoError(t, err)
	for address, own := range map[string]bool{"kim@outside.example": true, "ben@example.com": false} {
		view, err := b.visit(t, review.Viewer{Token: b.token(t, id, address)})
		require.NoError(t, err)
		require.ErrorIs(t, view.Refusal, review.ErrAlreadyDecided)
		var settled *review.Settled
		require.ErrorAs(t, view.Refusal, &settled)
		require.Equal(t, own, settled.Own)
		require.Equal(t, review.OutcomeApproved, settled.Outcome)
		require.NotEmpty(t, view.Review.Content.Title)
	}
}

func TestLinkOfAnotherReviewSteersNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.open(t, b.question())
	old := b.byLink(t, first, "kim@outside.example", review.Approve)
	_, err := b.decide(t, old)
	require.NoError(t, err)
	q := b.question()
	q.StepRunID = tenants.NewID[string]()
	second := b.open(t, q)
	again, err := b.decide(t, old)
	require.NoError(t, err)
	require.True(t, again.Repeated)
	old.Seat = b.seat(t, second, "kim@outside.example").ID
	_, err = b.decide(t, old)
	require.ErrorIs(t, err, review.ErrUnknownLink)
	require.True(t, b.detail(t, second).Open())
}

func TestSystemRoleSeesOfASeatOnlyWhatALinkNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.open(t, b.question())
	for _, query := range []string{`SELECT address FROM seats`, `SELECT content FROM reviews`, `SELECT comment FROM decisions`, `UPDATE seats SET state = 'closed'`} {
		err := b.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
			_, err := tx.Exec(ctx, query)
			return err
		})
		require.ErrorContains(t, err, "permission denied", query)
	}
}

func TestMemberAnswersFromTheInbox(t *testing.T) {
	t.Parallel()
	b := setup(t)
	soon, later := time.Now().Add(time.Hour), time.Now().Add(48*time.Hour)
	open := func(due *time.Time) review.ID {
		q := b.question()
		q.StepRunID, q.Due = tenants.NewID[string](), due
		return b.open(t, q)
	}
	never, last, first := open(nil), open(&later), open(&soon)
	require.Equal(t, []review.ID{first, last, never}, b.inbox(t, b.ben))
	require.Empty(t, b.inbox(t, b.owner))

	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		view, err := b.room.ForMember(ctx, tx, first, review.Viewer{User: b.ben, Token: "ignored"})
		require.NoError(t, err)
		require.NoError(t, view.Refusal)
		require.Equal(t, b.ben, view.Seat.User)
		_, err = b.room.ForMember(ctx, tx, first, review.Viewer{User: b.owner})
		require.ErrorIs(t, err, review.ErrNotYours)
		_, err = b.room.ForMember(ctx, tx, first, review.Viewer{})
		require.ErrorIs(t, err, review.ErrNotYours, "nobody is not a person from outside")
		return nil
	}))
	decision := b.byLink(t, first, "chi@example.com", review.Approve)
	_, err := b.decide(t, decision)
	require.NoError(t, err)
	require.Equal(t, []review.ID{last, never}, b.inbox(t, b.ben), "what others decided waits for nobody")
	b.exec(t, `DELETE FROM members WHERE user_id = $1`, b.ben)
	require.Empty(t, b.inbox(t, b.ben))
}

func (b bundle) inbox(t testing.TB, user tenants.UserID) []review.ID {
	t.Helper()
	var ids []review.ID
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		list, err := b.room.Inbox(ctx, tx, user)
		require.NoError(t, err)
		n, err := b.room.OpenCount(ctx, tx, user)
		require.NoError(t, err)
		require.Len(t, list, n)
		for _, waiting := range list {
			ids = append(ids, waiting.Review)
		}
		return nil
	}))
	return ids
}
