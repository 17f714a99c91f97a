package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"tollgate/tenants"
)

// MayDecide tells what a member may do about an open request, which ErrSamePerson,
// ErrNotAsking or a *tenants.Forbidden says otherwise.
func (r Request) MayDecide(by tenants.Membership) error {
	switch {
	case by.Require(tenants.SetCaps) != nil:
		return by.Require(tenants.SetCaps)
	case r.State != RequestOpen:
		return ErrNotAsking
	case r.FirstBy == by.User.ID:
		return ErrSamePerson
	}
	return nil
}

// Grant agrees to a request, with the change as the one who agrees wants it. It holds at
// once, or waits on for a second person: the one who confirms must be another than the
// one who agreed first, and confirms exactly what that one wrote.
func Grant(ctx context.Context, tx tenants.Tx, id RequestID, change Change, note string, by tenants.Membership) (Outcome, error) {
	request, err := lockRequest(ctx, tx, id)
	if err != nil {
		return Outcome{}, err
	}
	if err := request.MayDecide(by); err != nil {
		return Outcome{}, err
	}
	if !request.FirstBy.IsZero() {
		change = request.Change
	}
	if err := change.sameAs(request.Change); err != nil {
		return Outcome{}, err
	}
	if err := change.check(); err != nil {
		return Outcome{}, err
	}
	if request.FirstBy.IsZero() {
		second, err := change.asksSecond(ctx, tx, by.User.ID)
		if err != nil {
			return Outcome{}, err
		}
		if second {
			return Outcome{Request: id}, agreeFirst(ctx, tx, id, change, by.User.ID)
		}
	}
	if err := decideRequest(ctx, tx, id, RequestGranted, note, by.User.ID); err != nil {
		return Outcome{}, err
	}
	return Outcome{Done: true, Request: id}, change.apply(ctx, tx, request.Reason, by)
}

// sameAs keeps a request about one place from being granted for another.
func (c Change) sameAs(asked Change) error {
	if c.kind() != asked.kind() || c.Cap != nil && asked.Cap != nil && (c.Cap.Place != asked.Cap.Place || c.Cap.Funds != asked.Cap.Funds) {
		return fmt.Errorf("%w: it is not what was asked for", ErrBadCap)
	}
	return nil
}

// Decline refuses a request; whoever asked may withdraw it herself.
func Decline(ctx context.Context, tx tenants.Tx, id RequestID, note string, by tenants.Membership) error {
	request, err := lockRequest(ctx, tx, id)
	if err != nil {
		return err
	}
	state := RequestDeclined
	switch {
	case request.State != RequestOpen:
		return ErrNotAsking
	case request.AskedBy == by.User.ID:
		state = RequestWithdrawn
	default:
		if err := by.Require(tenants.SetCaps); err != nil {
			return err
		}
	}
	if err := decideRequest(ctx, tx, id, state, note, by.User.ID); err != nil {
		return err
	}
	target := tenants.Target{Kind: "money"}
	if request.Change.Cap != nil {
		target = request.Change.Cap.Place.Target()
	}
	return tenants.Audit(ctx, tx, tenants.Entry{Actor: tenants.ByMember(by), Action: "cap." + string(state), Target: target,
		Detail: map[string]any{"request": id, "note": cleanReason(note)}})
}

// lockRequest reads a request so that two who decide come one after the other.
func lockRequest(ctx context.Context, tx tenants.Tx, id RequestID) (Request, error) {
	found, err := requests(ctx, tx, requestColumns+` AND id = $3 FOR UPDATE`, tx.Tenant, tenants.UserID{}, id)
	if err == nil && len(found) == 0 {
		err = ErrNoRequest
	}
	if err != nil {
		return Request{}, err
	}
	return found[0], nil
}

func agreeFirst(ctx context.Context, tx tenants.Tx, id RequestID, change Change, by tenants.UserID) error {
	written, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("agree to a request about money: %w", err)
	}
	return changeRequest(ctx, tx, `UPDATE money_requests SET first_by = $3, change = $4 WHERE tenant_id = $1 AND id = $2 AND state = 'open' AND first_by IS NULL`,
		tx.Tenant, id, by, written)
}

func decideRequest(ctx context.Context, tx tenants.Tx, id RequestID, state RequestState, note string, by tenants.UserID) error {
	return changeRequest(ctx, tx, `UPDATE money_requests SET state = $3, note = $4, decided_by = $5, decided_at = $6 WHERE tenant_id = $1 AND id = $2 AND state = 'open'`,
		tx.Tenant, id, state, cleanReason(note), by, tx.Now)
}

// changeRequest runs a guarded change of one request.
func changeRequest(ctx context.Context, tx tenants.Tx, query string, args ...any) error {
	tag, err := tx.Exec(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("decide a request about money: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return ErrNotAsking
	}
	return nil
}
