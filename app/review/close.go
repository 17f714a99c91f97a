package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/tenants"
)

// unreachedPause is how long to wait before looking again whether a review that is due
// has reached anybody.
const unreachedPause = time.Minute

// Close ends a review without people: as timed out, cancelled or withdrawn. It tells
// whether it was this call that ended it; false means that an answer, or another
// Close, came first. Timing out is refused with *NotDue before the deadline, and while
// nobody could have answered yet because every mail is still on its way.
func (r *Room) Close(ctx context.Context, tx tenants.Tx, id ID, why Outcome) (bool, error) {
	if why != OutcomeTimeout && why != OutcomeCancelled && why != OutcomeWithdrawn {
		return false, fmt.Errorf("a review cannot be closed as %q", why)
	}
	if err := lockReview(ctx, tx, id); err != nil {
		return false, err
	}
	detail, err := r.load(ctx, tx, id)
	if err != nil {
		return false, err
	}
	if !detail.Open() {
		return false, nil
	}
	if why == OutcomeTimeout && !detail.pastDue() {
		if detail.DueAt == nil {
			return false, errors.New("a review without a deadline cannot time out")
		}
		return false, &NotDue{Due: *detail.DueAt}
	}
	return true, closeReview(ctx, tx, id, why)
}

// settleDue moves the deadline of an open review on by the time that passed until
// somebody could answer it. Members find it in their inbox at once; people from
// outside have only their mail.
func (r *Room) settleDue(ctx context.Context, tx tenants.Tx, d *Detail) error {
	if d.DueAt == nil || !d.Open() {
		return nil
	}
	ids := make([]SeatID, 0, len(d.Seats))
	for _, seat := range d.Seats {
		if !seat.User.IsZero() {
			return nil
		}
		ids = append(ids, seat.ID)
	}
	sent, err := r.outbox.FirstSent(ctx, tx, ids)
	if err != nil {
		return fmt.Errorf("ask when reviewers were reached: %w", err)
	}
	due := *d.DueAt
	switch {
	case !sent.IsZero():
		due = due.Add(max(sent.Sub(d.OpenedAt), 0))
	case d.pastDue():
		due = d.Now.Add(unreachedPause)
	}
	d.DueAt = &due
	return nil
}
