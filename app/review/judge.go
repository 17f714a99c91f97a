package review

import (
	"crypto/subtle"

	"tollgate/tenants"
)

// judge tells whether the viewer may answer from the seat now, and by which proof. It
// is the only place where that is decided; pages and answers both ask it. First it
// asks who the viewer is, then what became of the review, so that nobody learns about
// a review through a seat that is not hers.
func (d Detail) judge(seat SeatRow, viewer Viewer) (Proof, error) {
	proof, err := d.prove(seat, viewer)
	if err != nil {
		return "", err
	}
	if answer, ok := d.AnswerOf(seat.ID); ok {
		return proof, &Settled{Outcome: d.Outcome, Verdict: answer.Verdict, Own: true, By: answer.Name, At: answer.At}
	}
	if !d.Open() {
		return proof, &Settled{Outcome: d.Outcome, By: d.decider(viewer), At: *d.ClosedAt}
	}
	if d.pastDue() {
		return proof, &Settled{Outcome: OutcomeTimeout, At: *d.DueAt}
	}
	return proof, nil
}

// prove tells how the viewer shows that the seat is hers.
func (d Detail) prove(seat SeatRow, viewer Viewer) (Proof, error) {
	proof, err := d.identify(seat, viewer)
	switch {
	case err != nil:
		return "", err
	case !d.AllowRequester && !viewer.User.IsZero() && viewer.User == d.Requester:
		return "", ErrRequester
	case d.hasOtherSeat(seat, viewer.User):
		return "", ErrNotYours
	case !proof.serves(d.Proof):
		return "", ErrProofNeeded
	case proof != ProofSignIn && !d.Now.Before(seat.ExpiresAt):
		return "", ErrLinkExpired
	}
	return proof, nil
}

func (d Detail) identify(seat SeatRow, viewer Viewer) (Proof, error) {
	removed := !seat.User.IsZero() && !seat.Member
	byLink := viewer.Token != ""
	switch {
	case byLink && (removed || !seat.opensWith(viewer.Token)):
		return "", ErrUnknownLink
	case !viewer.User.IsZero() && viewer.User == seat.User && !removed:
		return ProofSignIn, nil
	case byLink && viewer.CodeChecked:
		return ProofLinkCode, nil
	case byLink:
		return ProofLink, nil
	}
	return "", ErrNotYours
}

func (s SeatRow) opensWith(token string) bool {
	return subtle.ConstantTimeCompare(tenants.HashToken(token), s.tokenHash) == 1
}

// hasOtherSeat stops a member who was asked herself from answering a second time
// through somebody else's link.
func (d Detail) hasOtherSeat(seat SeatRow, user tenants.UserID) bool {
	own, ok := d.SeatOf(user)
	return ok && own.ID != seat.ID
}

// decider names who decided, to members only.
func (d Detail) decider(viewer Viewer) string {
	own, ok := d.SeatOf(viewer.User)
	if !ok || !own.Member || !d.Outcome.ByPeople() || len(d.Answers) == 0 {
		return ""
	}
	return d.Answers[len(d.Answers)-1].Name
}
