package jobs

import (
	"context"
	"time"

	"tollgate/app/mail"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Invitations lets reviews ask people by the outbox's mails.
type Invitations struct{ Outbox *mail.Outbox }

// Invite queues the mail that asks one person.
func (i Invitations) Invite(ctx context.Context, tx tenants.Tx, invitation review.Invitation) error {
	_, err := i.Outbox.Queue(ctx, tx, mail.Message{
		To:    mail.Address{Name: invitation.ToName, Email: invitation.ToAddress},
		RunID: invitation.RunID, StepRunID: invitation.StepRunID,
		SeatID: invitation.Seat, Generation: invitation.Generation,
		Body: reviewRequest(invitation),
	})
	return err
}

// FirstSent tells when the first of the mails to the seats was taken by its server.
func (i Invitations) FirstSent(ctx context.Context, tx tenants.Tx, seats []review.SeatID) (time.Time, error) {
	ids := make([][16]byte, len(seats))
	for n, seat := range seats {
		ids[n] = seat
	}
	return i.Outbox.FirstSent(ctx, tx, ids)
}

func reviewRequest(invitation review.Invitation) mail.ReviewRequest {
	request := mail.ReviewRequest{
		Requester: invitation.Requester, Why: invitation.Why, PipelineName: invitation.PipelineName, Title: invitation.Title,
		Proposal: invitation.Proposal.Text, ProposalBy: invitation.Proposal.By, ProposalAI: invitation.Proposal.AI,
		CanEdit: invitation.CanEdit, ApproveLabel: invitation.Labels.Approve, RejectLabel: invitation.Labels.Reject,
		OnApprove: invitation.Consequences.Approve, OnReject: invitation.Consequences.Reject, OnSilence: invitation.Consequences.Silence,
		Needed: invitation.Needed, Asked: invitation.Asked, Due: invitation.Due, Zone: invitation.Zone,
	}
	for _, fact := range invitation.Facts {
		request.Facts = append(request.Facts, mail.Fact{Label: fact.Label, Value: fact.Value})
	}
	return request
}
