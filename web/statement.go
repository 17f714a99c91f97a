package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// statementView is what a month came to, for the books.
type statementView struct {
	v           *visit
	Month       ledger.UsageMonth
	Current     bool
	Both        bool
	Funds       ledger.Funds
	Statement   ledger.Statement
	Corrections []ledger.CorrectionLine
	Pipelines   []ledger.UsageLine
	Centres     []ledger.UsageLine
	names       usageNames
}

func (s *Server) statementPage(v *visit) error {
	view := statementView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	frame := v.frame("Statement, "+view.monthName(), inUsage)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, statementBody(view))
}

func (m *statementView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if m.Month, err = m.v.monthParam(ctx, tx); err != nil {
		return err
	}
	m.Current = tx.Now.Before(m.Month.To)
	found := map[ledger.Funds]ledger.Statement{}
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		if found[funds], err = ledger.StatementOf(ctx, tx, m.Month, funds); err != nil {
			return err
		}
	}
	m.Both = found[ledger.Pretend].Calls+found[ledger.Pretend].Correction > 0
	m.Funds = m.v.fundsParam(found[ledger.Real].Calls+found[ledger.Real].Correction > 0, m.Both)
	m.Statement = found[m.Funds]
	if m.Corrections, err = ledger.CorrectionsIn(ctx, tx, m.Month, m.Funds); err != nil {
		return err
	}
	if m.Pipelines, err = ledger.UsageOf(ctx, tx, m.Month, m.Funds, ledger.ByPipeline); err != nil {
		return err
	}
	if m.Centres, err = ledger.UsageOf(ctx, tx, m.Month, m.Funds, ledger.ByCostCentre); err != nil {
		return err
	}
	return m.names.read(ctx, tx, nil)
}

func (m statementView) monthName() string {
	return m.Month.From.In(m.v.workspaceZone()).Format("January 2006")
}

// badge says whether the figures can change.
func (m statementView) badge() ui.Badge {
	if m.Statement.Closed {
		return ui.Badge{Status: ui.Done, Words: "Closed"}
	}
	return ui.Badge{Status: ui.Waiting, Words: "Provisional"}
}

func (m statementView) lead() ui.Sentence {
	s := m.Statement
	switch {
	case s.Closed:
		return ui.Words("This month is closed: its figures do not change any more. What is learnt later is booked in the month of that day.")
	case s.Open > 0 && !m.Current:
		return ui.Words("Provisional: " + ui.Plural(s.Open, "call of this month is", "calls of this month are") + " still under way, with " + ui.Dollars(int64(s.Held)) + " reserved.")
	}
	return ui.Words("Provisional: the month is not over, or its last calls are being booked.")
}

func (m statementView) figures() []ui.Pair {
	s := m.Statement
	pairs := []ui.Pair{
		{Label: "Calls of models", Value: ui.Count(s.Calls)},
		{Label: "Charged for them", Value: s.Charged.Exact()},
		{Label: "Corrections of earlier lines", Value: s.Corrected.Exact()},
		{Label: "Together", Value: s.Total().Exact(), Strong: true},
	}
	if m.Funds == ledger.Real {
		pairs = append(pairs, ui.Pair{Label: "Billed by your providers", Value: s.Own.Exact()}, ui.Pair{Label: "Billed by us", Value: (s.Total() - s.Own).Exact()})
	}
	if s.Overrun != 0 {
		pairs = append(pairs, ui.Pair{Label: "Beyond what was reserved", Value: s.Overrun.Exact()})
	}
	if s.Estimated > 0 {
		pairs = append(pairs, ui.Pair{Label: "Estimated", Value: ui.Plural(s.Estimated, "call", "calls") + ", booked at what was reserved until the provider’s figure is known"})
	}
	if s.Open > 0 {
		pairs = append(pairs, ui.Pair{Label: "Under way", Value: ui.Plural(s.Open, "call", "calls") + ", " + s.Held.Exact() + " reserved"})
	}
	if m.Funds == ledger.Pretend {
		pairs = append(pairs, ui.Pair{Label: "Dollars", Value: "pretend: nobody pays them"})
	}
	return pairs
}

// table are exact sums by one thing.
func (m statementView) table(by ledger.UsageBy, id, title string, lines []ledger.UsageLine) ui.Table {
	table := ui.Table{ID: id, Caption: title, CaptionUnseen: true, Keep: true, Columns: []ui.Column{{Title: title}, {Title: "Calls", Number: true}, {Title: "Cost", Number: true}}}
	for _, line := range lines {
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{{Text: m.names.of(by, line.Key)}, {Text: ui.Count(line.Calls)}, {Text: line.Cost.Exact()}}})
	}
	return table
}

// corrections are lines of their own, with the call that each is about.
func (m statementView) corrections() []ui.Row {
	var rows []ui.Row
	for _, line := range m.Corrections {
		rows = append(rows, ui.Row{
			Name: m.names.of(ledger.ByPipeline, line.Pipeline.String()), Href: m.v.path("runs", line.Run.String()), End: line.Added.Exact(),
			EndNote: ui.WhenBrief(line.BookedAt, m.v.now, m.v.zone()),
			Reason:  ui.Sentence{ui.Name(line.Model), ui.Plain(", a call of " + inSentence(ui.WhenBrief(line.CallAt, m.v.now, m.v.zone())) + quoted(line.Reason))},
		})
	}
	return rows
}

func (m statementView) address(from time.Time, funds ledger.Funds, more ...string) string {
	return m.v.path(append([]string{"statement"}, more...)...) + queryOf("month", from.In(m.v.workspaceZone()).Format(monthForm), fundsName, string(funds))
}

func (m statementView) actions() ui.Actions {
	zone := m.v.workspaceZone()
	before, after := m.Month.From.Add(-time.Hour), m.Month.To.Add(time.Hour)
	actions := ui.Actions{ui.Button{Text: before.In(zone).Format("January"), Kind: ui.Quiet, Icon: ui.IconLeft, Href: m.address(before, m.Funds)}}
	if !m.Current {
		actions = append(actions, ui.Button{Text: after.In(zone).Format("January"), Kind: ui.Quiet, Icon: ui.IconRight, Href: m.address(after, m.Funds)})
	}
	return append(actions, ui.Button{Text: "Download CSV", Icon: ui.IconDownload, Href: m.address(m.Month.From, m.Funds, "csv")})
}

// statementCSV hands the statement out: its sums, and each correction.
func (s *Server) statementCSV(v *visit) error {
	view := statementView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	state := "provisional"
	if view.Statement.Closed {
		state = "closed"
	}
	month := view.Month.From.In(v.workspaceZone()).Format(monthForm)
	records := [][]string{{"Month", "State", "Dollars", "Line", "Name", "Calls", "Cost in USD"}}
	add := func(line, name string, calls int64, cost ledger.Micros) {
		records = append(records, []string{month, state, string(view.Funds), line, name, strconv.FormatInt(calls, 10), cost.Plain()})
	}
	for _, line := range view.Pipelines {
		add("pipeline", view.names.of(ledger.ByPipeline, line.Key), line.Calls, line.Cost)
	}
	for _, line := range view.Centres {
		add("cost centre", view.names.of(ledger.ByCostCentre, line.Key), line.Calls, line.Cost)
	}
	for _, line := range view.Corrections {
		add("correction", line.Reason, 1, line.Added)
	}
	add("billed by your providers", "", view.Statement.Calls, view.Statement.Own)
	add("together", "", view.Statement.Calls, view.Statement.Total())
	return v.csvFile("statement-"+month, records)
}
