package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// View is a seat as its holder may see it.
type View struct {
	Tenant  tenants.ID
	Review  Detail
	Seat    SeatRow
	Refusal error // why she may not answer now; nil if she may
}

// BySeatToken finds the seat that a link opens, without changing anything. The link is
// in viewer.Token. ErrUnknownLink is the answer to every token that opens nothing: made
// up, cut, altered, replaced by a newer one, or of a removed member.
//
// A right link may still come with a Refusal. Nothing of the question is in the View
// if that is ErrLinkExpired or ErrProofNeeded.
func (r *Room) BySeatToken(ctx context.Context, db *tenants.DB, viewer Viewer) (View, error) {
	tenant, seat, err := findSeat(ctx, db, viewer.Token)
	if err != nil {
		return View{}, err
	}
	var view View
	err = db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		view, err = r.viewSeat(ctx, tx, seat, viewer)
		return err
	})
	return view, err
}

// ForMember is the view of a signed-in member who is asked. ErrNotYours tells that the
// review asks others.
func (r *Room) ForMember(ctx context.Context, tx tenants.Tx, id ID, viewer Viewer) (View, error) {
	detail, err := r.load(ctx, tx, id)
	if err != nil {
		return View{}, err
	}
	seat, ok := detail.SeatOf(viewer.User)
	if !ok {
		return View{}, ErrNotYours
	}
	viewer.Token = ""
	return detail.view(tx.Tenant, seat, viewer)
}

// Renew makes a new link for an open seat and mails it; the old one opens nothing any
// more. How often that may be asked for is the caller's to limit.
func (r *Room) Renew(ctx context.Context, tx tenants.Tx, id SeatID) error {
	review, err := lockOfSeat(ctx, tx, id)
	if err != nil {
		return err
	}
	detail, err := r.load(ctx, tx, review)
	if err != nil {
		return err
	}
	seat, _ := detail.SeatByID(id)
	removed := !seat.User.IsZero() && !seat.Member
	if !detail.Open() || detail.pastDue() || seat.State != SeatOpen || removed {
		return ErrNotOpen
	}
	seat.Generation++
	seat.ExpiresAt = linkEnd(detail.Now, detail.DueAt)
	var b tenants.Batch
	b.Guarded(`
		UPDATE seats SET generation = $3, token_hash = $4, expires_at = $5
		WHERE tenant_id = $1 AND id = $2 AND state = 'open' RETURNING id`,
		tx.Tenant, id, seat.Generation, r.hash(seat), seat.ExpiresAt)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("renew a review link: %w", err)
	}
	return r.outbox.Invite(ctx, tx, detail.invitation(seat))
}

// findSeat looks a token up among all workspaces, by its hash.
func findSeat(ctx context.Context, db *tenants.DB, token string) (tenants.ID, SeatID, error) {
	var tenant tenants.ID
	var seat SeatID
	err := db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		const query = `SELECT tenant_id, id FROM seats WHERE token_hash = $1`
		err := tx.QueryRow(ctx, query, tenants.HashToken(token)).Scan(&tenant, &seat)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrUnknownLink
		}
		if err != nil {
			return fmt.Errorf("look a review link up: %w", err)
		}
		return nil
	})
	return tenant, seat, err
}

func (r *Room) viewSeat(ctx context.Context, tx tenants.Tx, id SeatID, viewer Viewer) (View, error) {
	var review ID
	err := tx.QueryRow(ctx, `SELECT review_id FROM seats WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id).Scan(&review)
	if err := found(err, "find a seat's review"); err != nil {
		return View{}, err
	}
	detail, err := r.load(ctx, tx, review)
	if err != nil {
		return View{}, err
	}
	seat, _ := detail.SeatByID(id)
	return detail.view(tx.Tenant, seat, viewer)
}

func (d Detail) view(tenant tenants.ID, seat SeatRow, viewer Viewer) (View, error) {
	_, refusal := d.judge(seat, viewer)
	if errors.Is(refusal, ErrUnknownLink) {
		return View{}, refusal
	}
	if errors.Is(refusal, ErrLinkExpired) || errors.Is(refusal, ErrProofNeeded) {
		d = Detail{ID: d.ID, Proof: d.Proof, OpenedAt: d.OpenedAt, DueAt: d.DueAt, Outcome: d.Outcome, ClosedAt: d.ClosedAt, Now: d.Now}
	}
	return View{Tenant: tenant, Review: d, Seat: seat, Refusal: refusal}, nil
}
