package web

import (
	"time"

	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// lead says what a reader should know first: what most of it went to, and how the month
// compares with the one before.
func (u usageView) lead() ui.Sentence {
	if u.Total.Calls == 0 {
		return ui.Words("No model was called in this month.")
	}
	var out ui.Sentence
	if top := u.By[ledger.ByPipeline]; len(top) > 1 && top[0].Cost*2 >= u.Total.Cost && u.Total.Cost > 0 {
		out = append(out, ui.Name(u.names.of(ledger.ByPipeline, top[0].Key)), ui.Plain(" made "+ui.Percent(int64(top[0].Cost), int64(u.Total.Cost))+" of it. "))
	}
	if u.Before.Calls > 0 {
		out = append(out, ui.Plain("The month before cost "+ui.Dollars(int64(u.Before.Cost))+"."))
	}
	if u.Funds == ledger.Pretend {
		out = append(out, ui.Plain(" These are pretend dollars: what the practice model would have cost."))
	}
	return out
}

func (u usageView) actions() ui.Actions {
	actions := ui.Actions{
		ui.Button{Text: "AI spend caps", Icon: ui.IconCap, Href: u.v.path("caps")},
		ui.Button{Text: "Statement", Icon: ui.IconFile, Href: statementView{v: u.v}.address(u.Month.From, u.Funds)},
	}
	actions = append(actions, ui.Button{Text: u.neighbour(-1), Kind: ui.Quiet, Icon: ui.IconLeft, Href: u.address(u.Month.From.Add(-time.Hour), u.Funds)})
	if !u.Current {
		actions = append(actions, ui.Button{Text: u.neighbour(1), Kind: ui.Quiet, Icon: ui.IconRight, Href: u.address(u.Month.To.Add(time.Hour), u.Funds)})
	}
	if u.Total.Calls > 0 {
		actions = append(actions, ui.Button{Text: "Download CSV", Icon: ui.IconDownload, Href: u.address(u.Month.From, u.Funds, "csv"), TestID: "usage-csv"})
	}
	return actions
}

// neighbour is the name of the month before or after.
func (u usageView) neighbour(step int) string {
	at := u.Month.From.Add(-time.Hour)
	if step > 0 {
		at = u.Month.To.Add(time.Hour)
	}
	return at.In(u.v.workspaceZone()).Format("January")
}

func (u usageView) figures() ui.Figures {
	spent := ui.Figure{Label: "Spent", Value: ui.Dollars(int64(u.Total.Cost))}
	if u.Current {
		spent.Label = "Spent so far"
		if u.Cap != nil {
			spent.Small = "of " + ui.Dollars(int64(*u.Cap))
		}
	}
	figures := ui.Figures{spent}
	if u.Current && u.Course.Known {
		course := ui.Figure{Label: "On course for", Value: ui.Dollars(int64(u.Course.Total)), Small: "from the last " + ui.Plural(int64(u.Course.Days), "day", "days")}
		figures = append(figures, course)
	}
	figures = append(figures, ui.Figures{
		{Label: "Runs", Value: ui.Count(u.Total.Runs), Small: eachRun(u.Total)},
		{Label: "Calls of models", Value: ui.Count(u.Total.Calls)},
		{Label: "Tokens", Value: ui.Tokens(u.Total.Input), Small: "read, " + ui.Tokens(u.Total.Output) + " written"},
	}...)
	if u.Total.Own > 0 {
		figures = append(figures, ui.Figure{Label: "Billed by your providers", Value: ui.Dollars(int64(u.Total.Own))})
	}
	return figures
}

// eachRun is what a run cost on average.
func eachRun(line ledger.UsageLine) string {
	if line.Runs == 0 {
		return ""
	}
	return ui.Dollars(int64(line.Cost)/line.Runs) + " each"
}

// chart draws the days; the last one of a current month is not over.
func (u usageView) chart() ui.Chart {
	days := u.days()
	chart, dearest := ui.Chart{}, 0
	for i, day := range days {
		chart.Bars = append(chart.Bars, ui.Bar{When: dayWords(day.Key), Amount: int64(day.Cost)})
		if day.Cost > days[dearest].Cost {
			dearest = i
		}
		if i%7 == 0 {
			chart.Ticks = append(chart.Ticks, i)
		}
	}
	chart.Says = "AI cost by day in " + u.monthName() + ". The dearest day was " + dayWords(days[dearest].Key) + " with " + ui.Dollars(int64(days[dearest].Cost)) + "."
	if u.Current {
		chart.Now = u.passed(days) - 1
		today := ui.Dollars(int64(days[chart.Now].Cost))
		chart.Recent = "Today " + today
		chart.Says += " Today cost " + today + " so far."
	}
	return chart
}

// dayTable has the figures of the chart.
func (u usageView) dayTable() ui.Table {
	table := ui.Table{ID: "usage-days-table", Caption: "Cost by day, in the days of " + u.v.me.Tenant.Zone, Brief: true, Columns: []ui.Column{
		{Title: "Day"}, {Title: "Runs", Number: true}, {Title: "Calls", Number: true}, {Title: "Cost", Number: true},
	}}
	days := u.days()
	for _, day := range days[:u.passed(days)] {
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{
			{Text: dayWords(day.Key)}, {Text: ui.Count(day.Runs)}, {Text: ui.Count(day.Calls)}, {Text: ui.Dollars(int64(day.Cost))},
		}})
	}
	return table
}

// shownLines is how many lines a table has before the rest becomes one line.
const shownLines = 10

// table are the sums of one kind, the dearest first, with what the rest came to.
func (u usageView) table(by ledger.UsageBy, id, title string) ui.Table {
	table := ui.Table{ID: id, Caption: "Usage in " + u.monthName() + " by " + string(by), CaptionUnseen: true, Brief: true, Columns: []ui.Column{
		{Title: title}, {Title: "Runs", Number: true}, {Title: "Calls", Number: true}, {Title: "Tokens in", Number: true},
		{Title: "Tokens out", Number: true}, {Title: "Cost", Number: true, Sorted: "descending"}, {Title: "Share"},
	}}
	lines, rest := u.By[by], ledger.UsageLine{}
	if len(lines) > shownLines {
		for _, line := range lines[shownLines-1:] {
			rest.Calls, rest.Input, rest.Output, rest.Cost = rest.Calls+line.Calls, rest.Input+line.Input, rest.Output+line.Output, rest.Cost+line.Cost
		}
		rest.Key = ui.Count(int64(len(lines)-shownLines+1)) + " others"
		lines = lines[:shownLines-1]
	}
	for _, line := range lines {
		cells := u.cells(line, ui.Cell{Text: u.names.of(by, line.Key), Href: u.link(by, line.Key)})
		cells[1].Text = ui.Count(line.Runs)
		table.Rows = append(table.Rows, ui.TableRow{Cells: cells})
	}
	if rest.Calls > 0 {
		table.Rows = append(table.Rows, ui.TableRow{Cells: u.cells(rest, ui.Cell{Text: rest.Key})})
	}
	return table
}

// cells are the figures of a line, without its runs: sums over lines may count one
// twice.
func (u usageView) cells(line ledger.UsageLine, name ui.Cell) []ui.Cell {
	if line.Own > 0 {
		name.Small = ui.Dollars(int64(line.Own)) + " billed by your provider"
	}
	return []ui.Cell{name, {}, {Text: ui.Count(line.Calls)}, {Text: ui.Tokens(line.Input)}, {Text: ui.Tokens(line.Output)},
		{Text: ui.Dollars(int64(line.Cost))}, {Part: ui.Share{Part: int64(line.Cost), Whole: int64(u.Total.Cost)}}}
}

// several tells whether a table by something says more than that there is nothing to tell
// apart.
func (u usageView) several(by ledger.UsageBy) bool {
	lines := u.By[by]
	return len(lines) > 1 || len(lines) == 1 && lines[0].Key != ""
}

// link leads from a line to the pipeline.
func (u usageView) link(by ledger.UsageBy, key string) string {
	if by == ledger.ByPipeline && u.names.pipelines[key] != "" {
		return u.v.path("pipelines", key)
	}
	return ""
}

// note says how far the figures can be trusted.
func (u usageView) note() string {
	if n := u.Total.Estimated; n > 0 {
		return ui.Plural(n, "call is", "calls are") + " booked at what was reserved, since the provider did not tell what was used."
	}
	return ""
}
