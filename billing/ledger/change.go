package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"tollgate/tenants"
)

// CapChange is what a cap is to become.
type CapChange struct {
	Place     Place   `json:"place"`
	Funds     Funds   `json:"funds"`
	Limit     *Micros `json:"limit"` // nil: no cap
	AlertOnly bool    `json:"alert_only,omitempty"`
	// Until ends the limit at an instant, from which on After is the limit again. Zero
	// means that it stays.
	Until time.Time `json:"until,omitzero"`
	After *Micros   `json:"after,omitempty"`
}

// Change is one change of money: exactly one of its parts is set.
type Change struct {
	Cap      *CapChange   `json:"cap,omitempty"`
	Price    *PriceChange `json:"price,omitempty"`
	Settings *Settings    `json:"settings,omitempty"`
}

// kind is the column of the request that carries the change.
func (c Change) kind() string {
	switch {
	case c.Settings != nil:
		return "settings"
	case c.Price != nil:
		return "price"
	}
	return "cap"
}

// ErrNoSecond tells that a change needs a second person who may decide about money, and
// that the workspace has none.
var ErrNoSecond = errors.New("nobody else may confirm this")

// Outcome is what became of a change: it holds, or it waits for a second person under a
// request.
type Outcome struct {
	Done    bool
	Request RequestID
}

// Make makes a change by somebody who may, or asks a second person first where the
// tenant's settings want one. The form's key makes sending it twice one request. reason
// goes on record.
func Make(ctx context.Context, tx tenants.Tx, change Change, reason, formKey string, by tenants.Membership) (Outcome, error) {
	if err := by.Require(tenants.SetCaps); err != nil {
		return Outcome{}, err
	}
	if err := change.check(); err != nil {
		return Outcome{}, err
	}
	second, err := change.asksSecond(ctx, tx, by.User.ID)
	if err != nil {
		return Outcome{}, err
	}
	if second {
		id, err := insertRequest(ctx, tx, Request{Change: change, Reason: reason, AskedBy: by.User.ID, FirstBy: by.User.ID}, formKey)
		return Outcome{Request: id}, err
	}
	return Outcome{Done: true}, change.apply(ctx, tx, reason, by)
}

func (c Change) check() error {
	if c.Settings != nil {
		return c.Settings.check()
	}
	if c.Price != nil {
		return c.Price.check()
	}
	if c.Cap == nil {
		return fmt.Errorf("%w: there is nothing to change", ErrBadCap)
	}
	return c.Cap.cap(tenants.UserID{}).check()
}

// asksSecond tells whether another person than the given one must agree.
func (c Change) asksSecond(ctx context.Context, tx tenants.Tx, first tenants.UserID) (bool, error) {
	settings, err := SettingsOf(ctx, tx)
	if err != nil || settings.SecondAbove == nil {
		return false, err
	}
	others, err := decidersBesides(ctx, tx, first)
	if err != nil {
		return false, err
	}
	switch {
	case c.Settings != nil:
		// Alone, one may always loosen the rule: else nobody ever could.
		return settings.loosens(*c.Settings) && others > 0, nil
	case c.Cap != nil:
		wants, err := c.Cap.asksSecond(ctx, tx, settings)
		if !wants || err != nil {
			return false, err
		}
	}
	if others == 0 {
		return false, ErrNoSecond
	}
	return true, nil // prices always: one that is too low lets everything through
}

// asksSecond compares what the cap would become, now and when a limit ends, with what
// it is. A cap that only alerts stops nothing, as if there were none.
func (c CapChange) asksSecond(ctx context.Context, tx tenants.Tx, settings Settings) (bool, error) {
	now, err := Stand(ctx, tx, c.Place)
	if err != nil {
		return false, err
	}
	standing := now.Of(c.Funds)
	from := standing.Limit
	if standing.AlertOnly {
		from = nil
	}
	to := c.Limit
	if c.AlertOnly {
		to = nil
	}
	wants := settings.asksSecond(from, to)
	if !c.Until.IsZero() && !c.AlertOnly {
		wants = wants || settings.asksSecond(from, c.After)
	}
	return wants, nil
}

// apply writes the change and puts it on record.
func (c Change) apply(ctx context.Context, tx tenants.Tx, reason string, by tenants.Membership) error {
	entry := tenants.Entry{Actor: tenants.ByMember(by), Action: "money.settings_changed", Target: tenants.Target{Kind: "money"}, Detail: map[string]any{"reason": reason}}
	if c.Settings != nil {
		entry.Detail["settings"] = c.Settings
		if err := writeSettings(ctx, tx, *c.Settings, by.User.ID); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, entry)
	}
	if c.Price != nil {
		entry.Action, entry.Detail["price"] = "price.changed", c.Price
		if err := c.Price.apply(ctx, tx, by.User.ID); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, entry)
	}
	entry.Action, entry.Target = "cap.set", c.Cap.Place.Target()
	entry.Detail["cap"] = c.Cap
	if err := tenants.Audit(ctx, tx, entry); err != nil {
		return err
	}
	return SetCap(ctx, tx, c.Cap.cap(by.User.ID)) // last: the tenant's money stands still from here on
}

// Target is what the audit log knows a place as.
func (p Place) Target() tenants.Target {
	id, err := tenants.ParseID[Place](p.ID)
	if err != nil {
		digest := sha256.Sum256([]byte(p.ID))
		copy(id[:], digest[:])
	}
	return tenants.Target{Kind: "cap_" + string(p.Scope), ID: id}
}

// decidersBesides counts who else may decide about money.
func decidersBesides(ctx context.Context, tx tenants.Tx, one tenants.UserID) (int, error) {
	members, err := tenants.Members(ctx, tx)
	n := 0
	for _, member := range members {
		if member.Role.May(tenants.SetCaps) && member.User.ID != one {
			n++
		}
	}
	return n, err
}

// cap is the change as the cap it makes.
func (c CapChange) cap(by tenants.UserID) Cap {
	return Cap{Place: c.Place, Funds: c.Funds, Limit: c.Limit, AlertOnly: c.AlertOnly, Until: c.Until, After: c.After, By: by}
}
