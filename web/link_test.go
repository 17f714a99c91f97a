package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// seatOf gives the link of a run's open review for the n-th person who is asked.
func (s *site) linkOf(in workspace, run [16]byte, n int) (string, review.Detail) {
	s.t.Helper()
	var detail review.Detail
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		asked, err := s.reviews.OpenOfRuns(ctx, tx, [][16]byte{run})
		require.NoError(s.t, err)
		require.NotEmpty(s.t, asked[run], "nobody is asked")
		detail, err = s.reviews.ByID(ctx, tx, asked[run][0].Review)
		return err
	})
	seat := detail.Seats[n]
	return "/r/" + s.secret.SeatToken(seat.ID, seat.Generation), detail
}

// review by id, as it is now.
func (s *site) reviewNow(in workspace, id review.ID) review.Detail {
	s.t.Helper()
	var detail review.Detail
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		detail, err = s.reviews.ByID(ctx, tx, id)
		return err
	})
	return detail
}

// asked starts a run of a document and works until its question is open.
func (s *site) asked(document pipeline.Document, topic string) (string, review.Detail) {
	s.t.Helper()
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": topic})
	s.work()
	return s.linkOf(s.home, run.ID, 0)
}

// answer presses the button of a page that asks, with the given fields changed.
func (p *page) answer(pairs ...string) *page {
	p.t.Helper()
	form := append([]string{"digest", p.field("digest"), "key", p.field("key")}, pairs...)
	return p.browser.post(p.path, form...)
}

func TestApprovingByLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press releases"), "the new shop")
	b := s.visitor()
	b.get(link).is(http.StatusOK).says("Shall we publish the new shop?", "You can decide once.")
	b.get(link).answer("choice", "approve").leadsTo(link)
	b.get(link).is(http.StatusOK).says("You approved this")
	require.Equal(t, review.OutcomeApproved, s.reviewNow(s.home, detail.ID).Outcome)
}
