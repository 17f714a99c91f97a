package web

import (
	"context"
	"net/http"
	"time"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// capView is one cap: where it stands, who it stops, what happened to it, and the form
// that changes it or asks for that.
type capView struct {
	v       *visit
	Place   namedPlace
	Funds   ledger.Funds
	Both    bool
	Status  ledger.PeriodStatus
	Stopped []engine.Stopped
	Total   int
	Open    []ledger.Request // of this cap
	Names   map[tenants.UserID]string
	History []tenants.Entry
	Rules   ledger.Settings
	Course  ledger.Forecast
	Alerts  []ledger.Alert // of this cap, the newest first
	Form    capForm
}

func (s *Server) capPage(v *visit) error {
	view := capView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	view.Form = view.fresh()
	return view.show(http.StatusOK)
}

func (c *capView) show(status int) error {
	title := "AI spend cap of " + c.Place.inText()
	if len(c.Form.faults()) > 0 {
		title = "Error: " + ui.Plural(int64(len(c.Form.faults())), "thing", "things") + " to fix"
	}
	return c.v.page(status, c.v.frame(title, inUsage), capBody(*c))
}

func (c *capView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if c.Place, err = c.v.placeParam(ctx, tx); err != nil {
		return err
	}
	if c.Status, err = ledger.Stand(ctx, tx, c.Place.Place); err != nil {
		return err
	}
	c.Both = inUse(c.Status.Pretend)
	c.Funds = c.v.fundsParam(inUse(c.Status.Real), c.Both)
	if c.Stopped, c.Total, err = c.v.s.Engine.StoppedRuns(ctx, tx, c.Place.runsOf()); err != nil {
		return err
	}
	if c.Rules, err = ledger.SettingsOf(ctx, tx); err != nil {
		return err
	}
	if c.History, err = tenants.AuditOf(ctx, tx, c.Place.Target(), tenants.AuditID{}); err != nil {
		return err
	}
	if err := c.readCourse(ctx, tx); err != nil {
		return err
	}
	return c.readOpen(ctx, tx)
}

// monthly tells whether a place counts by month.
func monthly(scope ledger.Scope) bool {
	return scope != ledger.ScopeTenantDay && scope != ledger.ScopeRun && scope != ledger.ScopeStep
}

// readCourse reads where things are going, and what was told of the cap in the last
// months.
func (c *capView) readCourse(ctx context.Context, tx tenants.Tx) error {
	if monthly(c.Place.Scope) {
		var err error
		if c.Course, err = ledger.ForecastOf(ctx, tx, c.Place.Place, c.Funds, c.standing().Limit); err != nil {
			return err
		}
	}
	all, err := ledger.AlertsSince(ctx, tx, tx.Now.AddDate(0, -3, 0))
	for _, alert := range all {
		if alert.Place == c.Place.Place && alert.Funds == c.Funds {
			c.Alerts = append(c.Alerts, alert)
		}
	}
	return err
}

// inUse tells whether there is anything to say of a standing.
func inUse(s ledger.Standing) bool { return s.Limit != nil || s.Spent > 0 || s.Held > 0 }

func (c *capView) readOpen(ctx context.Context, tx tenants.Tx) error {
	all, err := ledger.OpenRequests(ctx, tx)
	if err != nil {
		return err
	}
	var ids []tenants.UserID
	for _, request := range all {
		if asked := request.Change.Cap; asked != nil && asked.Place == c.Place.Place && asked.Funds == c.Funds {
			c.Open = append(c.Open, request)
			ids = append(ids, request.AskedBy)
		}
	}
	c.Names, err = tenants.Names(ctx, tx, ids)
	return err
}

func (c capView) standing() ledger.Standing { return c.Status.Of(c.Funds) }

// reached tells whether the cap leaves no room at all.
func (c capView) reached() bool {
	left, capped := c.standing().Left()
	return capped && left == 0
}

// title is the news: that the cap is spent, or how much of it.
func (c capView) title() string {
	name := c.Place.inText()
	if c.reached() && c.Total > 0 {
		return sentenceCase(name) + " has spent its cap. " + count(c.Total, "run is", "runs are") + " stopped."
	}
	return "AI spend cap of " + name
}

func (c capView) lead() ui.Sentence {
	s := c.standing()
	switch {
	case c.Total > 0 && c.reached():
		return ui.Words(nothingLost(c.Total) + " No call was started over the cap.")
	case s.Limit == nil:
		return ui.Words("There is no cap here. Other caps may still stop a call.")
	case s.AlertOnly:
		return ui.Words("This cap does not stop spending. People are told when it is reached.")
	}
	return ui.Words("No call starts that could pass it. A run that meets it stops there, loses nothing, and goes on when there is room.")
}

// period is the name of the month or the day that counts; empty for a run.
func (c capView) period() string {
	if c.Status.From.IsZero() {
		return ""
	}
	begin := c.Status.From.In(c.v.workspaceZone())
	if c.Status.To.Sub(c.Status.From) < 48*time.Hour {
		return begin.Format("2 January")
	}
	return begin.Format("January")
}

// lastDay is the last day of the period: "30 November".
func (c capView) lastDay() string {
	return c.Status.To.Add(-time.Second).In(c.v.workspaceZone()).Format("2 January")
}
