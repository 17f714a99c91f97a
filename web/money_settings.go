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

// rulesView are the workspace's rules about caps.
type rulesView struct {
	v           *visit
	Rules       ledger.Settings
	Key         string
	Second      string // as typed
	RunCap      string
	TurnAsks    string
	SecondFault string
	RunCapFault string
}

// The names of the rules' fields.
const (
	secondName = "second-above"
	runCapName = "run-cap"
	turnName   = "turn-asks"
)

func (s *Server) rulesPage(v *visit) error {
	view := rulesView{v: v, Key: newFormKey()}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return view.show(http.StatusOK)
}

func (r *rulesView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	r.Rules, err = ledger.SettingsOf(ctx, tx)
	r.Second, r.RunCap, r.TurnAsks = amountOrNone(r.Rules.SecondAbove), amountOrNone(r.Rules.RunCap), "false"
	if r.Rules.TurnAsks {
		r.TurnAsks = "true"
	}
	return err
}

func amountOrNone(amount *ledger.Micros) string {
	if amount == nil {
		return ""
	}
	return plainAmount(*amount)
}

func (r *rulesView) show(status int) error {
	title := "Rules about caps"
	if n := len(ui.Faults(r.fields()...)); n > 0 {
		title = "Error: " + ui.Plural(int64(n), "thing", "things") + " to fix"
	}
	frame := r.v.frame(title, inUsage)
	frame.Narrow = true
	return r.v.page(status, frame, rulesBody(*r))
}

// setRules changes them; what asks for a second person less often needs one.
func (s *Server) setRules(v *visit) error {
	view := rulesView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	view.Key = v.FormValue(formKeyName)
	if !trigger.FitsAsKey(view.Key) {
		return trigger.ErrNoFormKey
	}
	view.Second, view.RunCap, view.TurnAsks = v.FormValue(secondName), v.FormValue(runCapName), v.FormValue(turnName)
	rules := ledger.Settings{TurnAsks: view.TurnAsks == "true"}
	rules.SecondAbove, view.SecondFault = limitOrFault(view.Second)
	rules.RunCap, view.RunCapFault = limitOrFault(view.RunCap)
	if view.SecondFault+view.RunCapFault != "" {
		v.saved = false
		return view.show(http.StatusUnprocessableEntity)
	}
	var out ledger.Outcome
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if out, err = ledger.Make(ctx, tx, ledger.Change{Settings: &rules}, "", view.Key, v.me); err != nil || out.Done {
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
	return v.redirect(v.path("settings", "money"))
}

func limitOrFault(text string) (*ledger.Micros, string) {
	limit, err := ledger.ParseLimit(text)
	if amount, ok := errors.AsType[*ledger.AmountError](err); ok {
		return nil, amount.Reason
	}
	return limit, ""
}

func (r rulesView) fields() []ui.Field {
	return []ui.Field{
		{Kind: ui.MoneyField, Name: secondName, Label: "A second person confirms raises above", Currency: "USD", Value: r.Second, Error: r.SecondFault,
			Optional: true, Needed: "empty means that one person is enough", MaxLength: 20,
			Help: "Who confirms must be another person who may change spend caps. Each change of a price then needs two people, too."},
		{Kind: ui.MoneyField, Name: runCapName, Label: "Cap of one run", Currency: "USD", Value: r.RunCap, Error: r.RunCapFault,
			Optional: true, Needed: "empty means no cap", MaxLength: 20,
			Help: "For runs of pipelines that name no cap of their own. It holds for runs that start from now on."},
		{Kind: ui.ChoiceField, Name: turnName, Label: "When a new month begins", Value: r.TurnAsks, Options: []ui.Option{
			{Value: "true", Label: "Runs that a cap stopped in the old month wait for a word", Help: "so that nobody is surprised by what the new month pays first"},
			{Value: "false", Label: "They go on by themselves with the new month’s money"},
		}},
	}
}
