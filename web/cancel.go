package web

import (
	"context"
	"errors"
	"net/http"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// cancelView asks before a run is cancelled, and says what that means.
type cancelView struct {
	v     *visit
	Line  engine.Line
	News  news
	Sent  int // mails that went out and stay out
	Below int // runs that it waits for
}

// cancelPage asks; only its form cancels.
func (s *Server) cancelPage(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	view := cancelView{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) })
	if err != nil {
		return err
	}
	if view.Line.Run.State.Final() {
		return v.redirect(v.path("runs", id.String()))
	}
	frame := v.frame("Cancel "+view.Line.Run.Name, inRuns)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, cancelBody(view))
}

func (c *cancelView) read(ctx context.Context, tx tenants.Tx, id engine.RunID) error {
	var err error
	if c.Line, err = engine.LineByID(ctx, tx, id); err != nil {
		return err
	}
	all, err := c.v.newsOf(ctx, tx, []engine.Line{c.Line})
	if err != nil {
		return err
	}
	c.News = all[0]
	if c.Below, err = engine.AwaitedBelow(ctx, tx, id); err != nil {
		return err
	}
	c.Sent, err = engine.SentMails(ctx, tx, id)
	return err
}

// consequences are what stops, what cannot be undone, and what it has cost.
func (c cancelView) consequences() []ui.Row {
	rows := []ui.Row{{Reason: append(ui.Sentence{ui.Plain("Now: ")}, c.News.sentence(c.v.now, c.v.zone())...)}}
	if len(c.News.Asked) > 0 {
		rows = append(rows, ui.Row{Reason: ui.Sentence{ui.Plain("Nobody is asked any more: the links that were sent to "), ui.Name(c.News.people("you", " and ")), ui.Plain(" say that no decision is needed.")}})
	}
	if c.Below > 0 {
		rows = append(rows, ui.Row{Reason: ui.Words(ui.Plural(int64(c.Below), "run that it waits for is", "runs that it waits for are") + " cancelled with it, and whatever those wait for.")})
	}
	if c.Sent > 0 {
		rows = append(rows, ui.Row{Reason: ui.Words(ui.Plural(int64(c.Sent), "e-mail that was sent stays", "e-mails that were sent stay") + " sent.")})
	}
	rows = append(rows, ui.Row{Reason: ui.Words("Steps that are done stay on the run’s page, with their results.")})
	if c.v.maySeeMoney() {
		rows = append(rows, ui.Row{Reason: ui.Words(ui.Dollars(c.Line.CostMicros) + " is spent so far. A call that is under way may still cost what is reserved for it.")})
	}
	return rows
}

// cancelRun cancels the run. Sending it again, or after somebody else did, shows the
// run that is cancelled.
func (s *Server) cancelRun(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if err := s.Engine.Cancel(ctx, tx, id, v.me.User.Name); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: "run.cancelled", Target: tenants.Target{Kind: "run", ID: id},
		})
	})
	if errors.Is(err, engine.ErrEnded) {
		return s.cancelledBefore(v, id)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("runs", id.String()))
}

// cancelledBefore tells a second press, which has what it wanted, from a run that ended
// by itself.
func (s *Server) cancelledBefore(v *visit, id engine.RunID) error {
	var run engine.Run
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		run, err = engine.RunByID(ctx, tx, id)
		return err
	})
	if err == nil && run.State != engine.RunCancelled {
		err = engine.ErrEnded
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("runs", id.String()))
}
