package web

import (
	"context"
	"errors"
	"net/http"

	"tollgate/app/trigger"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// requestView is a change of money that waits for a person, or what became of it.
type requestView struct {
	v       *visit
	Request ledger.Request
	About   string
	Facts   []ui.Pair
	Names   map[tenants.UserID]string
	Total   int // runs that are stopped in its place
	Place   *namedPlace
	Key     string
	May     error // why the person cannot decide it
	Fault   string
	Limit   string // as typed
	Note    string
}

func (s *Server) requestPage(v *visit) error {
	view := requestView{v: v, Key: newFormKey()}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return view.show(http.StatusOK)
}

func (r *requestView) show(status int) error {
	title := sentenceCase(r.About)
	if r.Fault != "" {
		title = "Error: 1 thing to fix"
	}
	frame := r.v.frame(title, inUsage)
	frame.Narrow = true
	return r.v.page(status, frame, requestBody(*r))
}

func (r *requestView) read(ctx context.Context, tx tenants.Tx) error {
	id, err := idParam[ledger.Request](r.v, "request")
	if err != nil {
		return err
	}
	if r.Request, err = ledger.RequestByID(ctx, tx, id); err != nil {
		return err
	}
	if r.Facts, r.About, err = r.v.requestFacts(ctx, tx, r.Request); err != nil {
		return err
	}
	r.May = r.Request.MayDecide(r.v.me)
	if change := r.Request.Change.Cap; change != nil {
		place, err := r.v.nameOf(ctx, tx, change.Place)
		if err != nil {
			return err
		}
		r.Place = &place
		if change.Limit != nil {
			r.Limit = plainAmount(*change.Limit)
		}
		if _, r.Total, err = r.v.s.Engine.StoppedRuns(ctx, tx, place.runsOf()); err != nil {
			return err
		}
	}
	r.Names, err = tenants.Names(ctx, tx, []tenants.UserID{r.Request.AskedBy, r.Request.FirstBy, r.Request.DecidedBy})
	return err
}

// grantRequest agrees; where a second person is needed still, she is asked.
func (s *Server) grantRequest(v *visit) error {
	view := requestView{v: v, Key: v.FormValue(formKeyName), Note: v.FormValue(reasonName)}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	if !trigger.FitsAsKey(view.Key) {
		return trigger.ErrNoFormKey
	}
	change, ok := view.granted()
	if !ok {
		v.saved = false
		return view.show(http.StatusUnprocessableEntity)
	}
	var out ledger.Outcome
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if out, err = ledger.Grant(ctx, tx, view.Request.ID, change, view.Note, v.me); err != nil {
			return err
		}
		if !out.Done {
			return s.askDeciders(ctx, tx, view.Request.ID, v.me.User.ID)
		}
		return s.tellAsker(ctx, tx, view.Request.ID, v.me)
	})
	if err != nil {
		return err
	}
	if out.Done && view.Place != nil {
		if _, err := s.Engine.LetGoOn(v.ctx(), v.me, view.Place.runsOf()); err != nil {
			return err
		}
	}
	return v.redirect(v.path("money", view.Request.ID.String()))
}

// granted is the change as the one who agrees typed it; the amount may be another than
// was asked for.
func (r *requestView) granted() (ledger.Change, bool) {
	change := r.Request.Change
	if change.Cap == nil || !r.Request.FirstBy.IsZero() {
		return change, true
	}
	r.Limit = r.v.FormValue(limitName)
	limit, err := ledger.ParseLimit(r.Limit)
	if amount, bad := errors.AsType[*ledger.AmountError](err); bad {
		r.Fault = amount.Reason
		return change, false
	}
	changed := *change.Cap
	changed.Limit = limit
	return ledger.Change{Cap: &changed}, true
}

// declineRequest refuses it; whoever asked takes it back with the same form.
func (s *Server) declineRequest(v *visit) error {
	view := requestView{v: v, Note: v.FormValue(reasonName)}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	if !trigger.FitsAsKey(v.FormValue(formKeyName)) {
		return trigger.ErrNoFormKey
	}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if err := ledger.Decline(ctx, tx, view.Request.ID, view.Note, v.me); err != nil {
			return err
		}
		return s.tellAsker(ctx, tx, view.Request.ID, v.me)
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("money", view.Request.ID.String()))
}

// says tells how far the request is.
func (r requestView) says() ui.Sentence {
	asked := ui.Sentence{ui.Name(r.Names[r.Request.AskedBy]), ui.Plain(" asked " + inSentence(ui.When(r.Request.AskedAt, r.v.now, r.v.zone())) + quoted(r.Request.Reason) + ". ")}
	switch r.Request.State {
	case ledger.RequestGranted:
		return append(asked, ui.Strong("Agreed"), ui.Plain(" by "), ui.Name(r.Names[r.Request.DecidedBy]), ui.Plain("."+noteWords(r.Request.Note)))
	case ledger.RequestDeclined:
		return append(asked, ui.Strong("Declined"), ui.Plain(" by "), ui.Name(r.Names[r.Request.DecidedBy]), ui.Plain("."+noteWords(r.Request.Note)))
	case ledger.RequestWithdrawn:
		return append(asked, ui.Strong("Taken back"), ui.Plain("."))
	}
	if !r.Request.FirstBy.IsZero() {
		return append(asked, ui.Name(r.Names[r.Request.FirstBy]), ui.Plain(" agreed. "), ui.Strong("A second person must confirm it"), ui.Plain(", since it is above the amount from which two are needed."))
	}
	return append(asked, ui.Strong("Nobody has decided yet"), ui.Plain("."))
}

func noteWords(note string) string {
	if note == "" {
		return ""
	}
	return " “" + note + "”"
}

// why tells a person who cannot decide who could.
func (r requestView) why() string {
	switch {
	case errors.Is(r.May, ledger.ErrSamePerson):
		return "You agreed already. Somebody else who may change spend caps must confirm it."
	case r.Request.State != ledger.RequestOpen || r.May == nil:
		return ""
	}
	return "Owners, admins and finance members decide about it. They got a mail."
}
