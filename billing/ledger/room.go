package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Dry answers which of several holds would fit under their caps if they came one after
// the other now, without holding anything. The zero Dry is ready.
type Dry struct {
	promised map[promise]Micros
	assumed  map[promise]*Micros
}

// promise is a place of some funds.
type promise struct {
	Place
	funds Funds
}

// Assume asks the question as if a place had this cap.
func (d *Dry) Assume(c Cap) {
	if d.assumed == nil {
		d.assumed = map[promise]*Micros{}
	}
	limit := c.Limit
	if c.AlertOnly {
		limit = nil
	}
	d.assumed[promise{c.Place, c.Funds}] = limit
}

// room is what a place with a limit has left.
type room struct {
	place       Place
	periodStart time.Time
	most, left  Micros
}

// Fits tells whether a hold would fit beside those for which it said so before: nil, or
// the cap that has least left.
func (d *Dry) Fits(ctx context.Context, tx tenants.Tx, h Hold) (*CapReached, error) {
	rooms, err := roomsOf(ctx, tx, h)
	if err != nil {
		return nil, err
	}
	var tightest *CapReached
	var through []promise
	for _, r := range rooms {
		at := promise{r.place, h.Price.Funds}
		if limit, assumed := d.assumed[at]; assumed {
			if limit == nil {
				continue
			}
			r.left, r.most = r.left+*limit-r.most, *limit
		}
		r.left -= d.promised[at]
		through = append(through, at)
		if r.left < h.Amount && (tightest == nil || r.left < tightest.Available) {
			tightest = &CapReached{Scope: r.place.Scope, ID: r.place.ID, Funds: h.Price.Funds, PeriodStart: r.periodStart,
				Limit: r.most, Needed: h.Amount, Available: r.left}
		}
	}
	if tightest != nil {
		tightest.Available = max(0, tightest.Available)
		return tightest, nil
	}
	if d.promised == nil {
		d.promised = map[promise]Micros{}
	}
	for _, at := range through {
		d.promised[at] += h.Amount
	}
	return nil, nil
}

// roomsOf are the places that a hold would count in and that have a limit.
func roomsOf(ctx context.Context, tx tenants.Tx, h Hold) ([]room, error) {
	rows, _ := tx.Query(ctx, `SELECT scope, scope_id, period_start, most, available FROM ledger_room($1)`, h.document())
	rooms, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (room, error) {
		var r room
		err := row.Scan(&r.place.Scope, &r.place.ID, &r.periodStart, &r.most, &r.left)
		r.periodStart = r.periodStart.UTC()
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("look what is left under caps: %w", err)
	}
	return rooms, nil
}
