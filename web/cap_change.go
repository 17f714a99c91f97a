package web

import (
	"context"
	"net/http"
	"slices"

	"tollgate/app/engine"
	"tollgate/app/trigger"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// setCap changes a cap, or lets a second person confirm it.
func (s *Server) setCap(v *visit) error {
	view, change, err := v.readChange()
	if err != nil || len(view.Form.faults()) > 0 {
		return view.again(err)
	}
	var out ledger.Outcome
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if view.Total > 0 && view.Form.StoppedRuns == stoppedSome {
			if err := engine.AskWord(ctx, tx, view.Place.runsOf()); err != nil {
				return err
			}
		}
		var err error
		if out, err = ledger.Make(ctx, tx, ledger.Change{Cap: &change}, view.Form.Reason, view.Form.Key, v.me); err != nil || out.Done {
			return err
		}
		return s.askDeciders(ctx, tx, out.Request, v.me.User.ID)
	})
	if err != nil {
		return err
	}
	if !out.Done {
		return v.redirect(v.path("money", out.Request.String()))
	}
	return view.goOn()
}

// goOn lets the stopped runs try again after a cap was changed, and leads back to it.
func (c *capView) goOn() error {
	if c.Total > 0 && c.Form.StoppedRuns != stoppedSome {
		if _, err := c.v.s.Engine.LetGoOn(c.v.ctx(), c.v.me, c.Place.runsOf()); err != nil {
			return err
		}
	}
	return c.v.redirect(c.v.capAddress(c.Place.Place, c.Funds))
}

// askCap puts a raise before those who may decide.
func (s *Server) askCap(v *visit) error {
	view, change, err := v.readChange()
	if err != nil || len(view.Form.faults()) > 0 {
		return view.again(err)
	}
	change.AlertOnly = view.standing().AlertOnly
	var id ledger.RequestID
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if id, err = ledger.Ask(ctx, tx, ledger.Change{Cap: &change}, view.Form.Reason, view.Form.Key, v.me); err != nil {
			return err
		}
		return s.askDeciders(ctx, tx, id, v.me.User.ID)
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("money", id.String()))
}

// readChange reads the cap and what is to become of it.
func (v *visit) readChange() (capView, ledger.CapChange, error) {
	view := capView{v: v}
	if err := v.inTx(view.read); err != nil {
		return view, ledger.CapChange{}, err
	}
	view.Form = view.sent()
	if !trigger.FitsAsKey(view.Form.Key) {
		return view, ledger.CapChange{}, trigger.ErrNoFormKey
	}
	if view.Form.Was != wasWords(view.standing()) {
		return view, ledger.CapChange{}, errChangedSince
	}
	change, _ := view.change()
	return view, change, nil
}

// again shows the form with what is wrong.
func (c *capView) again(err error) error {
	c.v.saved = false
	if err != nil {
		return err
	}
	return c.show(http.StatusUnprocessableEntity)
}

// letGoOn is the word that stopped runs wait for: those that were picked, or all.
func (s *Server) letGoOn(v *visit) error {
	view := capView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	all := view.Place.runsOf()
	picked := v.Request().PostForm["run"]
	if v.FormValue(stoppedTag) == stoppedAll {
		if _, err := s.Engine.LetGoOn(v.ctx(), v.me, all); err != nil {
			return err
		}
		return v.redirect(v.capAddress(view.Place.Place, view.Funds))
	}
	for _, one := range view.Stopped {
		if !slices.Contains(picked, one.Run.ID.String()) {
			continue
		}
		if _, err := s.Engine.LetGoOn(v.ctx(), v.me, engine.StoppedFilter{Run: one.Run.ID}); err != nil {
			return err
		}
	}
	return v.redirect(v.capAddress(view.Place.Place, view.Funds))
}
