package review

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// Open asks the question: it makes the review, a seat for everybody who may decide, and
// a mail for each seat, all in the caller's transaction. ErrNobodyToAsk and
// ErrBadQuestion are the question's own fault, and asking again does not help; nothing
// was written then.
func (r *Room) Open(ctx context.Context, tx tenants.Tx, q Question) (ID, error) {
	if q.Proof == "" {
		q.Proof = ProofLink
	}
	if q.Proof.rank() == 0 {
		return ID{}, fmt.Errorf("%w: %q is no proof", ErrBadQuestion, q.Proof)
	}
	people, err := q.invite(ctx, tx)
	if err != nil {
		return ID{}, err
	}
	if err := q.Policy.check(len(people.seats)); err != nil {
		return ID{}, err
	}
	content, err := q.content(people.requester.Name)
	if err != nil {
		return ID{}, err
	}
	detail := Detail{
		ID: tenants.NewID[Review](), RunID: q.RunID, StepRunID: q.StepRunID, Content: content,
		Policy: q.Policy, Proof: q.Proof, Requester: q.Requester, AllowRequester: q.AllowRequester,
		SendBack: q.SendBack, OpenedAt: tx.Now, DueAt: q.Due, Seats: people.seats,
	}
	for i := range detail.Seats {
		seat := &detail.Seats[i]
		seat.ID, seat.Generation, seat.ExpiresAt = tenants.NewID[Seat](), 1, linkEnd(tx.Now, q.Due)
		seat.tokenHash = r.hash(*seat)
	}
	if err := insertReview(ctx, tx, detail); err != nil {
		return ID{}, err
	}
	for _, seat := range detail.Seats {
		if err := r.outbox.Invite(ctx, tx, detail.invitation(seat)); err != nil {
			return ID{}, fmt.Errorf("invite a reviewer: %w", err)
		}
	}
	return detail.ID, nil
}

// hash is what the database keeps of a seat's link.
func (r *Room) hash(seat SeatRow) []byte {
	return tenants.HashToken(r.secret.SeatToken(seat.ID, seat.Generation))
}

func (d Detail) invitation(seat SeatRow) Invitation {
	return Invitation{
		Seat: seat.ID, Generation: seat.Generation, RunID: d.RunID, StepRunID: d.StepRunID,
		ToAddress: seat.Address, ToName: seat.Name, Why: seat.Group, Zone: seat.Zone,
		Requester: d.Content.Requester, PipelineName: d.Content.PipelineName, Title: d.Content.Title,
		Facts: d.Content.Facts, Proposal: d.Content.Proposal, CanEdit: d.CanEdit(),
		Labels: d.Content.Labels, Consequences: d.Content.Consequences,
		Needed: d.Policy.Needs(len(d.Seats)), Asked: len(d.Seats), Due: d.DueAt,
	}
}
