package web

import (
	"encoding/json"
	"time"

	"github.com/a-h/templ"

	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

func (c capView) crumbs() []ui.Link {
	return []ui.Link{{Text: "Usage", Href: c.v.path("usage")}, {Text: "AI spend caps", Href: c.v.path("caps")}, {Text: c.Place.title()}}
}

func (c capView) address(funds ledger.Funds) string {
	return c.v.path("caps", placeName(c.Place.Place)) + queryOf(fundsName, string(funds))
}

func (c capView) standsTitle() string {
	title := sentenceCase(c.Place.inText())
	if period := c.period(); period != "" {
		title += ", " + period
	}
	if c.Funds == ledger.Pretend {
		title += ", pretend dollars"
	}
	return title
}

func (c capView) badge() templ.Component {
	if c.reached() {
		return ui.Badge{Status: ui.Cap}
	}
	return nil
}

// words are the figures that the bar shows.
func (c capView) words() ui.Sentence {
	s := c.standing()
	if s.Limit == nil && !alwaysCounted(c.Place.Scope) && s.Spent+s.Held == 0 {
		return ui.Words("What is spent here is counted from the first cap on.")
	}
	words := meterOf("", s).Words()
	if s.Limit != nil && *s.Limit == 0 {
		words = ui.Sentence{ui.Strong(ui.Dollars(int64(s.Spent))), ui.Plain(" spent. The cap is "), ui.Strong("$0.00"), ui.Plain(", which allows no AI calls")}
	}
	if c.Course.Known {
		words = append(words, ui.Plain(" · on course for "), ui.Strong(ui.Dollars(int64(c.Course.Total))), ui.Plain(" by "+c.lastDay()))
		if !c.Course.Passes.IsZero() {
			words = append(words, ui.Plain(", reached about "+c.Course.Passes.In(c.v.workspaceZone()).Format("2 January")))
		}
	}
	if s.Overrun > 0 {
		words = append(words, ui.Plain(" · "+ui.Dollars(int64(s.Overrun))+" beyond what was reserved"))
	}
	return words
}

func (c capView) meter() templ.Component {
	s := c.standing()
	if s.Limit == nil || *s.Limit == 0 {
		return nil
	}
	meter := meterOf(c.standsTitle(), s)
	if c.Course.Known {
		meter.Forecast = int64(c.Course.Total)
	}
	return meter
}

// basis says what the figures rest on.
func (c capView) basis() string {
	words := "Reserved is the most that calls under way can cost."
	if c.Course.Known {
		words += " The forecast is from the last " + ui.Plural(int64(c.Course.Days), "day", "days") + ": " + ui.Dollars(int64(c.Course.Daily)) + " a day."
	}
	if c.Rules.SecondAbove != nil {
		words += " Above " + ui.Dollars(int64(*c.Rules.SecondAbove)) + " a second person confirms a raise."
	}
	if !c.standing().Until.IsZero() {
		words += " This cap ends " + inSentence(ui.When(c.standing().Until, c.v.now, c.v.zone())) + "."
	}
	return words
}

func (c capView) formTitle() string {
	switch {
	case !c.v.maySetCaps():
		return "Ask for another cap"
	case c.standing().Limit == nil:
		return "Set a cap"
	}
	return "Change the cap"
}

func (c capView) formAction() string {
	if c.v.maySetCaps() {
		return c.v.path("caps", placeName(c.Place.Place))
	}
	return c.v.path("caps", placeName(c.Place.Place), "ask")
}

// mayAsk tells whether a person who cannot change it may ask for a change.
func (c capView) mayAsk() bool { return c.v.me.Role.May(tenants.StartRuns) }

func (c capView) afterWords() string {
	if c.Rules.SecondAbove != nil {
		return "Logged with your name. A raise above " + ui.Dollars(int64(*c.Rules.SecondAbove)) + " holds once a second person has confirmed it."
	}
	return "Holds at once, and is logged with your name."
}

// asksWord tells whether any of the stopped runs waits for a word.
func (c capView) asksWord() bool {
	for _, one := range c.Stopped {
		if one.AsksWord || c.Rules.TurnAsks && !c.Status.From.IsZero() && one.Since.Before(c.Status.From) {
			return true
		}
	}
	return false
}

func (c capView) picks() ui.Picks {
	picks := ui.Picks{Name: "run", Label: "Which go on", Help: "Each tries its call again, and stops anew where a cap has no room for it."}
	for _, one := range c.Stopped {
		picks.Options = append(picks.Options, ui.Pick{Value: one.Run.ID.String(), Label: one.Run.Name, Help: runTitle(one.Run), On: true})
	}
	return picks
}

// mostHistory is how many lines of what happened a page has.
const mostHistory = 20

// history are the changes of this cap, the newest first.
func (c capView) history() []ui.Row {
	var rows []ui.Row
	alerts := c.Alerts
	told := func(before func(ledger.Alert) bool) {
		for len(alerts) > 0 && before(alerts[0]) {
			rows = append(rows, ui.Row{Reason: c.told(alerts[0]), EndNote: ui.WhenBrief(alerts[0].At, c.v.now, c.v.zone())})
			alerts = alerts[1:]
		}
	}
	for _, entry := range c.History {
		told(func(a ledger.Alert) bool { return a.At.After(entry.At) })
		rows = append(rows, ui.Row{Reason: c.happened(entry), EndNote: ui.WhenBrief(entry.At, c.v.now, c.v.zone())})
	}
	told(func(ledger.Alert) bool { return true })
	return rows[:min(len(rows), mostHistory)]
}

// told says which alert went out.
func (c capView) told(alert ledger.Alert) ui.Sentence {
	sent := " Owners, admins and finance members got a mail."
	if !alert.Told {
		sent = ""
	}
	switch alert.Kind {
	case ledger.AlertStopped:
		return ui.Sentence{ui.LinkTo("The first run", c.v.path("runs", alert.Run.String())), ui.Plain(" was stopped by this cap." + sent)}
	case ledger.AlertOnCourse:
		return ui.Words("On course for " + ui.Dollars(int64(alert.Forecast)) + ", above the cap of " + ui.Dollars(int64(alert.Limit)) + "." + sent)
	}
	share := map[ledger.AlertKind]string{ledger.AlertHalf: "50 %", ledger.AlertMost: "80 %", ledger.AlertAll: "100 %"}[alert.Kind]
	return ui.Words(share + " of " + ui.Dollars(int64(alert.Limit)) + " was spent." + sent)
}

func (c capView) happened(entry tenants.Entry) ui.Sentence {
	who := ui.Name(entry.Actor.Name)
	var detail struct {
		Cap    *ledger.CapChange `json:"cap"`
		Reason string            `json:"reason"`
		Note   string            `json:"note"`
	}
	if raw, err := json.Marshal(entry.Detail); err != nil || json.Unmarshal(raw, &detail) != nil {
		detail.Cap = nil
	}
	limit := ""
	if detail.Cap != nil {
		limit = limitWords(detail.Cap.Limit, c.Place.Place) + alertWords(detail.Cap.AlertOnly)
		if detail.Cap.Funds == ledger.Pretend {
			limit += " of pretend dollars"
		}
		if !detail.Cap.Until.IsZero() {
			limit += " until the end of " + ui.Day(detail.Cap.Until.Add(-time.Second), c.v.now, c.v.workspaceZone())
		}
	}
	switch entry.Action {
	case "cap.set":
		return ui.Sentence{who, ui.Plain(" set it to "), ui.Strong(limit), ui.Plain(quoted(detail.Reason))}
	case "cap.asked":
		return ui.Sentence{who, ui.Plain(" asked for "), ui.Strong(limit), ui.Plain(quoted(detail.Reason))}
	case "cap.declined":
		return ui.Sentence{who, ui.Plain(" declined what was asked for" + quoted(detail.Note))}
	case "cap.withdrawn":
		return ui.Sentence{who, ui.Plain(" took the request back")}
	}
	return ui.Sentence{who, ui.Plain(": " + entry.Action)}
}
