package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// tellAlerts mails the alerts of caps that nobody was told of to those who may decide
// about money. An alert is marked as told in the transaction that queues its mails, so
// each goes out once, whatever dies. It returns how many alerts that were.
func tellAlerts(ctx context.Context, db *tenants.DB, outbox *mail.Outbox) (int, error) {
	var waiting []tenants.ID
	err := db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		waiting, err = ledger.UntoldAlerts(ctx, tx)
		return err
	})
	if err != nil {
		return 0, err
	}
	told := 0
	var failures []error
	for _, tenant := range waiting {
		err := db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
			n, err := tellAlertsOf(ctx, tx, outbox)
			told += n
			return err
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("tell the alerts of %v: %w", tenant, err))
		}
	}
	return told, errors.Join(failures...)
}

func tellAlertsOf(ctx context.Context, tx tenants.Tx, outbox *mail.Outbox) (int, error) {
	alerts, err := ledger.TakeAlerts(ctx, tx)
	if err != nil || len(alerts) == 0 {
		return 0, err
	}
	members, err := tenants.Members(ctx, tx)
	if err != nil {
		return 0, err
	}
	for _, alert := range loudest(alerts) {
		said, err := alertMail(ctx, tx, alert)
		if err != nil {
			return 0, err
		}
		for _, member := range members {
			if !member.Role.May(tenants.SetCaps) {
				continue
			}
			to := mail.Address{Name: member.User.Name, Email: member.User.Email}
			if _, err := outbox.Queue(ctx, tx, mail.Message{To: to, Body: said}); err != nil {
				return 0, err
			}
		}
	}
	return len(alerts), nil
}

// loudness orders the alerts that tell how much is gone: where several became due at
// once, people get one mail.
var loudness = map[ledger.AlertKind]int{ledger.AlertHalf: 1, ledger.AlertMost: 2, ledger.AlertAll: 3}

// loudest leaves out the alerts that a louder one of the same cap says already.
func loudest(alerts []ledger.Alert) []ledger.Alert {
	type capOf struct {
		ledger.Place
		funds ledger.Funds
		start time.Time
	}
	most := map[capOf]int{}
	for _, a := range alerts {
		at := capOf{a.Place, a.Funds, a.PeriodStart}
		most[at] = max(most[at], loudness[a.Kind])
	}
	var out []ledger.Alert
	for _, a := range alerts {
		if own := loudness[a.Kind]; own == 0 || own == most[capOf{a.Place, a.Funds, a.PeriodStart}] {
			out = append(out, a)
		}
	}
	return out
}

func alertMail(ctx context.Context, tx tenants.Tx, a ledger.Alert) (mail.Money, error) {
	about, path, err := capOfAlert(ctx, tx, a)
	if err != nil {
		return mail.Money{}, err
	}
	said := mail.Money{What: mail.KindSpendAlert, Button: "Look at the cap", Path: path, Facts: []mail.Fact{
		{Label: "Cap", Value: a.Limit.String() + pretendWords(a.Funds)}, {Label: "Spent", Value: a.Spent.String()},
	}}
	switch a.Kind {
	case ledger.AlertOnCourse:
		said.Title = "The AI spend cap of " + about + " is likely to be passed"
		said.Lead = "If things go on as in the last days, it is reached before its month ends. No call starts that could pass it."
		said.Facts = append(said.Facts, mail.Fact{Label: "On course for", Value: a.Forecast.String()})
	case ledger.AlertStopped:
		said.Title = "The AI spend cap of " + about + " has stopped a run"
		said.Lead = "Nothing is lost: the run goes on at the step it stopped at as soon as the cap allows it."
	case ledger.AlertAll:
		said.Title = "The AI spend cap of " + about + " is spent"
		said.Lead = "Runs that meet it stop and lose nothing, unless the cap only alerts."
	default:
		said.Title = fmt.Sprintf("%d %% of the AI spend cap of %s is spent", map[ledger.AlertKind]int{ledger.AlertHalf: 50, ledger.AlertMost: 80}[a.Kind], about)
		said.Lead = "Nothing is stopped by this mail; it is told once for each month or day of the cap."
	}
	return said, nil
}

func pretendWords(funds ledger.Funds) string {
	if funds == ledger.Pretend {
		return " of pretend dollars"
	}
	return ""
}

// capOfAlert is what the cap is of, in words, and the page about it.
func capOfAlert(ctx context.Context, tx tenants.Tx, a ledger.Alert) (about, path string, err error) {
	base := "/w/" + tx.Tenant.String() + "/caps"
	switch a.Scope {
	case ledger.ScopeTenant:
		return "the workspace", base + "/workspace", nil
	case ledger.ScopeTenantDay:
		return "the workspace for a day", base + "/day", nil
	case ledger.ScopeTest:
		return "tests by builders", base + "/tests", nil
	case ledger.ScopeKey:
		return "a provider key", base + "/key-" + a.ID, nil
	case ledger.ScopeCostCentre:
		return "the cost centre “" + a.ID + "”", base, nil
	case ledger.ScopePipeline:
		id, err := tenants.ParseID[pipeline.Pipeline](a.ID)
		if err != nil {
			return "", "", err
		}
		found, err := pipeline.ByID(ctx, tx, id)
		return "“" + found.Name + "”", base + "/pipeline-" + a.ID, err
	case ledger.ScopeRun, ledger.ScopeStep:
		run, err := engine.RunByID(ctx, tx, engine.RunID(a.Run))
		if errors.Is(err, engine.ErrNoRun) { // cleaned up meanwhile
			return "a run", base, nil
		}
		return "the run “" + run.Name + "”", "/w/" + tx.Tenant.String() + "/runs/" + run.ID.String(), err
	}
	return "something", base, nil
}
