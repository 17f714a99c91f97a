package review_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
	"tollgate/app/review"
	"tollgate/migrations"
	"tollgate/tenants"
)

// byMail joins the two rooms, as the program does.
type byMail struct{ outbox *mail.Outbox }

func (m byMail) Invite(ctx context.Context, tx tenants.Tx, i review.Invitation) error {
	body := mail.ReviewRequest{
		Requester: i.Requester, Why: i.Why, PipelineName: i.PipelineName, Title: i.Title,
		Proposal: i.Proposal.Text, ProposalBy: i.Proposal.By, ProposalAI: i.Proposal.AI, CanEdit: i.CanEdit,
		ApproveLabel: i.Labels.Approve, RejectLabel: i.Labels.Reject,
		OnApprove: i.Consequences.Approve, OnReject: i.Consequences.Reject, OnSilence: i.Consequences.Silence,
		Needed: i.Needed, Asked: i.Asked, Due: i.Due, Zone: i.Zone,
	}
	for _, fact := range i.Facts {
		body.Facts = append(body.Facts, mail.Fact(fact))
	}
	_, err := m.outbox.Queue(ctx, tx, mail.Message{
		To: mail.Address{Name: i.ToName, Email: i.ToAddress}, RunID: i.RunID, StepRunID: i.StepRunID,
		SeatID: i.Seat, Generation: i.Generation, Body: body,
	})
	return err
}

func (m byMail) FirstSent(ctx context.Context, tx tenants.Tx, seats []review.SeatID) (time.Time, error) {
	ids := make([][16]byte, 0, len(seats))
	for _, seat := range seats {
		ids = append(ids, seat)
	}
	return m.outbox.FirstSent(ctx, tx, ids)
}

// collector takes every mail.
type collector struct {
	mu   sync.Mutex
	sent []mail.Composed
}

func (c *collector) Send(_ context.Context, composed mail.Composed) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, composed)
	return nil
}

// joined is the bundle with the real outbox and the rows of a run.
func joined(t *testing.T) (bundle, *mail.Outbox, *collector) {
	t.Helper()
	b := setup(t)
	inserter, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: migrations.RiverSchema})
	require.NoError(t, err)
	sender := &collector{}
	outbox, err := mail.New(mail.Config{
		Sender: sender, Inserter: inserter, From: mail.Address{Email: "no-reply@tollgate.example"},
		Links: mail.Links{Secret: b.secret, BaseURL: "https://tollgate.example"},
	})
	require.NoError(t, err)
	b.room = review.New(b.secret, byMail{outbox})
	pipeline := tenants.NewID[string]()
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO pipelines (tenant_id, id, name, draft) VALUES ($1, $2, 'Triage', '{}')`, b.tenant, pipeline)
		batch.Queue(`INSERT INTO pipeline_versions (tenant_id, pipeline_id, number, document, digest, semantics)
			VALUES ($1, $2, 1, '{}', sha256('{}'), 1)`, b.tenant, pipeline)
		batch.Queue(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key)
			VALUES ($1, $2, $3, 1, 1, 'Run', 'running', sha256('{}'), 'k')`, b.tenant, b.run, pipeline)
		batch.Queue(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state) VALUES ($1, $2, $3, 'ask', 'review', 'waiting')`,
			b.tenant, b.stepRun, b.run)
		return tx.SendBatch(ctx, batch).Close()
	}))
	return b, outbox, sender
}

func deliverAll(t *testing.T, b bundle, outbox *mail.Outbox) {
	t.Helper()
	var list []mail.Mail
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		list, err = outbox.OfStepRun(ctx, tx, b.stepRun)
		return err
	}))
	for _, m := range list {
		require.NoError(t, outbox.Deliver(t.Context(), b.db.DB, mail.SendMail{Mail: m.ID, Tenant: b.tenant}, tenants.NewID[string]()))
	}
}

var anyLink = regexp.MustCompile(`https?://[^\s"<>]+`)

// From the question to the decision, by nothing but what stands in the mail: a scanner
// opens every link of it first, again and again.
func TestFromMailToDecision(t *testing.T) {
	t.Parallel()
	b, outbox, sender := joined(t)
	q := b.question()
	q.Labels = review.Labels{Approve: "Pay it"}
	id := b.open(t, q)
	deliverAll(t, b, outbox)
	require.Len(t, sender.sent, 3, "one mail for each seat")

	before := b.everything(t)
	for _, composed := range sender.sent {
		links := anyLink.FindAllString(composed.Text+composed.HTML, -1)
		require.Len(t, links, 4, "one in the text, three in the HTML")
		for _, link := range links {
			for range 20 {
				view, err := b.visit(t, review.Viewer{Token: tokenOf(t, link)})
				require.NoError(t, err)
				require.NoError(t, view.Refusal)
				require.Equal(t, composed.To[0].Email, view.Seat.Address)
			}
		}
	}
	require.Equal(t, before, b.everything(t))

	kim := sender.sent[2]
	require.Equal(t, "kim@outside.example", kim.To[0].Email)
	require.Contains(t, kim.HTML, "Pay it…")
	require.Contains(t, kim.Text, "Olga Owner asks you")
	view, err := b.visit(t, review.Viewer{Token: tokenOf(t, anyLink.FindString(kim.Text))})
	require.NoError(t, err)
	result, err := b.decide(t, review.Decision{
		Seat: view.Seat.ID, Viewer: review.Viewer{Token: tokenOf(t, anyLink.FindString(kim.Text))},
		Digest: view.Review.Digest, Verdict: review.Approve,
	})
	require.NoError(t, err)
	require.Equal(t, id, result.Review)
	require.Equal(t, review.OutcomeApproved, result.Outcome)
}

func tokenOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	token, found := strings.CutPrefix(u.Path, "/r/")
	require.True(t, found, link)
	return token
}

func TestDeadlineOfOutsidersCountsFromTheirMail(t *testing.T) {
	t.Parallel()
	b, outbox, _ := joined(t)
	q := b.question()
	q.People = q.People[2:]
	id := b.dueIn(t, q, 10*time.Minute, 12*time.Minute)
	var early *review.NotDue
	_, err := b.close(t, id, review.OutcomeTimeout)
	require.ErrorAs(t, err, &early)
	deliverAll(t, b, outbox)
	_, err = b.close(t, id, review.OutcomeTimeout)
	require.ErrorAs(t, err, &early)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), early.Due, 20*time.Second)
}

func TestRenewedLinkComesByANewMail(t *testing.T) {
	t.Parallel()
	b, outbox, sender := joined(t)
	id := b.open(t, b.question())
	deliverAll(t, b, outbox)
	seat := b.seat(t, id, "kim@outside.example")
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error { return b.room.Renew(ctx, tx, seat.ID) }))
	deliverAll(t, b, outbox)
	require.Len(t, sender.sent, 4)
	_, err := b.visit(t, review.Viewer{Token: tokenOf(t, anyLink.FindString(sender.sent[2].Text))})
	require.ErrorIs(t, err, review.ErrUnknownLink)
	view, err := b.visit(t, review.Viewer{Token: tokenOf(t, anyLink.FindString(sender.sent[3].Text))})
	require.NoError(t, err)
	require.Equal(t, seat.ID, view.Seat.ID)
	require.NotEqual(t, sender.sent[2].MessageID, sender.sent[3].MessageID)
}
