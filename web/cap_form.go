package web

import (
	"errors"
	"strings"

	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// The names of the fields of a cap's form.
const (
	limitName  = "limit"
	modeName   = "mode"
	lengthName = "length"
	stoppedTag = "stopped"
	reasonName = "reason"
	wasName    = "was"
)

// Values of its choices.
const (
	modeStop    = "stop"
	modeAlert   = "alert"
	forPeriod   = "period"
	forGood     = "good"
	stoppedAll  = "all"
	stoppedSome = "choose"
)

// capForm is what was typed to change a cap or to ask for it.
type capForm struct {
	Key, Was               string
	Limit, Mode, Length    string
	StoppedRuns, Reason    string
	LimitFault, ModeFault  string
	LengthFault, RunsFault string
}

// fresh is the form as it is first shown.
func (c capView) fresh() capForm {
	s := c.standing()
	form := capForm{Key: newFormKey(), Was: wasWords(s), Mode: modeStop, Length: forGood, StoppedRuns: stoppedAll}
	if s.Limit != nil {
		form.Limit = plainAmount(*s.Limit)
	}
	if s.AlertOnly {
		form.Mode = modeAlert
	}
	if !s.Until.IsZero() {
		form.Length = forPeriod
	}
	return form
}

// sent reads the form as it came.
func (c capView) sent() capForm {
	v := c.v
	return capForm{Key: v.FormValue(formKeyName), Was: v.FormValue(wasName), Limit: v.FormValue(limitName), Mode: v.FormValue(modeName),
		Length: v.FormValue(lengthName), StoppedRuns: v.FormValue(stoppedTag), Reason: v.FormValue(reasonName)}
}

// plainAmount writes an amount as people type it: "90.00".
func plainAmount(m ledger.Micros) string {
	return strings.ReplaceAll(strings.TrimPrefix(m.Exact(), "$"), ",", "")
}

// wasWords are what the cap was when the form was drawn, so that nobody changes what she
// has not seen.
func wasWords(s ledger.Standing) string {
	was := "none"
	if s.Limit != nil {
		was = s.Limit.Exact()
	}
	if s.AlertOnly {
		was += " alerts"
	}
	if !s.Until.IsZero() {
		was += " until " + s.Until.String()
	}
	return was
}

// change reads the form, and says beside each field what is wrong with it.
func (c *capView) change() (ledger.CapChange, bool) {
	change := ledger.CapChange{Place: c.Place.Place, Funds: c.Funds}
	limit, err := ledger.ParseLimit(c.Form.Limit)
	if amount, ok := errors.AsType[*ledger.AmountError](err); ok {
		c.Form.LimitFault = amount.Reason
	}
	change.Limit = limit
	switch c.Form.Mode {
	case modeAlert:
		change.AlertOnly = limit != nil
	case modeStop, "":
	default:
		c.Form.ModeFault = "Choose what happens at the cap."
	}
	switch c.Form.Length {
	case forPeriod:
		c.expire(&change)
	case forGood, "":
	default:
		c.Form.LengthFault = "Choose how long it holds."
	}
	if runs := c.Form.StoppedRuns; runs != "" && runs != stoppedAll && runs != stoppedSome {
		c.Form.RunsFault = "Choose what the stopped runs do."
	}
	return change, len(c.Form.faults()) == 0
}

// expire lets the new limit end with the period; then the one before holds again.
func (c *capView) expire(change *ledger.CapChange) {
	s := c.standing()
	switch {
	case c.Status.To.IsZero() || change.Limit == nil || s.Limit == nil:
		c.Form.LengthFault = "This cap has no month to end with. Choose the other one."
		return
	case !s.Until.IsZero():
		change.After = s.After
	default:
		change.After = s.Limit
	}
	change.Until = c.Status.To
}

func (f capForm) faults() []ui.Fault {
	var faults []ui.Fault
	for _, one := range []struct{ name, fault string }{
		{limitName, f.LimitFault}, {modeName, f.ModeFault}, {lengthName, f.LengthFault}, {stoppedTag, f.RunsFault},
	} {
		if one.fault != "" {
			faults = append(faults, ui.Fault{Anchor: ui.Field{Name: one.name}.Anchor(), Message: one.fault})
		}
	}
	return faults
}

// fields ask for the new cap.
func (c capView) fields() []ui.Field {
	label := "New cap"
	if period := c.period(); period != "" {
		label = "New cap for " + period
	}
	fields := []ui.Field{{Kind: ui.MoneyField, Name: limitName, Label: label, Currency: "USD", Value: c.Form.Limit, Error: c.Form.LimitFault,
		Optional: true, Needed: "empty means no cap", MaxLength: 20}}
	if c.mayExpire() {
		fields = append(fields, ui.Field{Kind: ui.ChoiceField, Name: lengthName, Label: "How long", Value: c.Form.Length, Error: c.Form.LengthFault, Options: []ui.Option{
			{Value: forPeriod, Label: "Until " + c.lastDay(), Help: "then " + ui.Dollars(int64(c.base())) + " again"}, {Value: forGood, Label: c.everyWords()},
		}})
	}
	if c.v.maySetCaps() {
		fields = append(fields, ui.Field{Kind: ui.ChoiceField, Name: modeName, Label: "At the cap", Value: c.Form.Mode, Error: c.Form.ModeFault, Options: []ui.Option{
			{Value: modeStop, Label: "Stop", Help: "no new call starts that could pass it"},
			{Value: modeAlert, Label: "Alert only", Help: "this does not stop spending"},
		}})
		if c.Total > 0 {
			fields = append(fields, ui.Field{Kind: ui.ChoiceField, Name: stoppedTag, Label: "The " + ui.Plural(int64(c.Total), "stopped run", "stopped runs"),
				Value: c.Form.StoppedRuns, Error: c.Form.RunsFault, Options: []ui.Option{{Value: stoppedAll, Label: "Go on now, as far as the cap allows"}, {Value: stoppedSome, Label: "I choose which"}}})
		}
	}
	return append(fields, ui.Field{Kind: ui.TextField, Name: reasonName, Label: "Note for the record", Value: c.Form.Reason, Optional: true, MaxLength: ledger.MaxReason})
}

// mayExpire tells whether a raise can end with the period.
func (c capView) mayExpire() bool { return !c.Status.To.IsZero() && c.standing().Limit != nil }

func (c capView) everyWords() string {
	if c.Place.Scope == ledger.ScopeTenantDay {
		return "Every day"
	}
	return "Every month"
}

func (c capView) hidden() []ui.Hidden {
	return []ui.Hidden{{Name: formKeyName, Value: c.Form.Key}, {Name: wasName, Value: c.Form.Was}, {Name: fundsName, Value: string(c.Funds)}}
}

// base is the limit that holds when what is set now ends.
func (c capView) base() ledger.Micros {
	s := c.standing()
	if !s.Until.IsZero() && s.After != nil {
		return *s.After
	}
	return *s.Limit
}
