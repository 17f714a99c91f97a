package web

import (
	"time"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

func (c capsView) title() string {
	if c.Total > 0 {
		return count(c.Total, "run is", "runs are") + " stopped by a cap."
	}
	return "AI spend caps"
}

func (c capsView) lead() ui.Sentence {
	if c.Total > 0 {
		return ui.Words(nothingLost(c.Total) + " No call was started over a cap.")
	}
	return ui.Words("Money is reserved before each call of a model, so no call starts that could pass a cap. A run that meets one stops there and goes on when there is room.")
}

// nothingLost says what becomes of the runs that a cap stopped.
func nothingLost(runs int) string {
	if runs == 1 {
		return "Nothing is lost: it goes on at the step it stopped at as soon as the cap allows it."
	}
	return "Nothing is lost: they go on at the step they stopped at as soon as the cap allows it."
}

func (c capsView) actions() ui.Actions {
	return ui.Actions{ui.Button{Text: "Prices of models", Kind: ui.Quiet, Href: c.v.path("prices")}, ui.Button{Text: "Rules about caps", Icon: ui.IconSettings, Href: c.v.path("settings", "money")}}
}

// table compares the places.
func (c capsView) table() ui.Table {
	table := ui.Table{ID: "caps", Caption: "What was spent of each cap in its month or day", CaptionUnseen: true, Columns: []ui.Column{
		{Title: "Cap of"}, {Title: "Spent", Number: true}, {Title: "Reserved", Number: true}, {Title: "Cap", Number: true}, {Title: "Used"},
	}}
	for _, line := range c.Places {
		table.Rows = append(table.Rows, ui.TableRow{Cells: line.cells(c.v, c.Funds)})
	}
	return table
}

// cells are the figures of one place. What is not counted yet has none.
func (l capLine) cells(v *visit, funds ledger.Funds) []ui.Cell {
	name := ui.Cell{Text: l.title(), Href: v.capAddress(l.Place, funds)}
	spent, held := ui.Dollars(int64(l.Spent)), ui.Dollars(int64(l.Held))
	if l.Limit == nil && !alwaysCounted(l.Scope) && l.Spent+l.Held == 0 {
		spent, held = "–", "–"
	}
	limit, used := ui.Cell{Text: "no cap"}, ui.Cell{}
	if l.Limit != nil {
		limit = ui.Cell{Text: ui.Dollars(int64(*l.Limit))}
		if l.AlertOnly {
			limit.Small = "alerts only"
		} else if !l.Until.IsZero() {
			limit.Small = "until the end of " + inSentence(ui.Day(l.Until.Add(-time.Second), v.now, v.workspaceZone()))
		}
		if *l.Limit > 0 {
			meter := meterOf(l.title(), l.Standing)
			meter.Little = true
			used.Part = meter
		}
	}
	return []ui.Cell{name, {Text: spent}, {Text: held}, limit, used}
}

// alwaysCounted tells of which places the ledger knows what was spent without a cap.
func alwaysCounted(scope ledger.Scope) bool {
	return scope == ledger.ScopeTenant || scope == ledger.ScopePipeline || scope == ledger.ScopeRun
}

// stoppedTable lists runs that wait for money.
func stoppedTable(v *visit, stopped []engine.Stopped) ui.Table {
	table := ui.Table{ID: "stopped", Caption: "Runs that a cap has stopped, the longest stopped first", CaptionUnseen: true, Columns: []ui.Column{
		{Title: "Run"}, {Title: "Which cap"}, {Title: "Started by"}, {Title: "Since", Number: true}, {Title: "To go on", Number: true},
	}}
	for _, one := range stopped {
		why := ui.Sentence{ui.Plain(one.Reason)}
		if one.AsksWord {
			why = append(why, ui.Plain(" It waits for a word of yours."))
		}
		needs := "–"
		if one.Needs > 0 {
			needs = "up to " + ui.Dollars(int64(one.Needs))
		}
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{
			{Text: one.Run.Name, Href: v.path("runs", one.Run.ID.String()), Small: runTitle(one.Run)},
			{Rich: why}, {Text: one.Run.StartedName}, {Text: ui.WhenBrief(one.Since, v.now, v.zone())}, {Text: needs},
		}})
	}
	return table
}

// needsWords say how many runs are stopped, and what those that are listed need at once.
func needsWords(stopped []engine.Stopped, total int) string {
	var needs ledger.Micros
	for _, one := range stopped {
		needs += one.Needs
	}
	words := ui.Plural(int64(total), "run", "runs")
	if needs > 0 && len(stopped) == total {
		words += ", up to " + ui.Dollars(int64(needs)) + " for what is called next"
	}
	return words
}

// requests are what people ask for.
func (c capsView) requests() []ui.Row {
	var rows []ui.Row
	for _, request := range c.Requests {
		rows = append(rows, ui.Row{
			Name: c.requestWords(request), Href: c.v.path("money", request.ID.String()),
			Reason:  ui.Sentence{ui.Name(c.Names[request.AskedBy]), ui.Plain(" asks" + quoted(request.Reason))},
			EndNote: inSentence(ui.WhenBrief(request.AskedAt, c.v.now, c.v.zone())),
		})
	}
	return rows
}

func (c capsView) requestWords(request ledger.Request) string {
	switch {
	case request.Change.Price != nil:
		return "Change the prices of models"
	case request.Change.Cap == nil:
		return "Change the rules about caps"
	}
	return "AI spend cap of " + c.Asked[request.ID].inText() + ": " + limitWords(request.Change.Cap.Limit, request.Change.Cap.Place)
}

// limitWords say what a limit is: "$90.00 a month", "no cap".
func limitWords(limit *ledger.Micros, place ledger.Place) string {
	if limit == nil {
		return "no cap"
	}
	return ui.Dollars(int64(*limit)) + perWords(place)
}

// quoted puts what somebody wrote behind a sentence.
func quoted(words string) string {
	if words == "" {
		return ""
	}
	return ": “" + words + "”"
}

// mayDecide tells whether the person may change caps.
func (v *visit) maySetCaps() bool { return v.me.Role.May(tenants.SetCaps) }

func (c capsView) crumbs() []ui.Link {
	return []ui.Link{{Text: "Usage", Href: c.v.path("usage")}, {Text: "AI spend caps"}}
}

func (c capsView) address(funds ledger.Funds) string {
	return c.v.path("caps") + queryOf(fundsName, string(funds))
}
