package web

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// spend lets each of some pipelines ask a model n times.
func (s *site) spend(n int, names ...string) []pipeline.ID {
	s.t.Helper()
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`), Bill: triaged.Bill})
	var ids []pipeline.ID
	for i, name := range names {
		id := s.publish(s.home, askDocument(name))
		for range n * (i + 1) {
			s.start(s.home, id, map[string]string{"topic": "a refund"})
		}
		ids = append(ids, id)
	}
	s.work()
	return ids
}

func TestUsageTellsWhereTheMoneyWent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	owner := s.in(tenants.Owner)
	owner.get(s.at("usage")).is(http.StatusOK).says("Nothing was spent", "No model was called in this month.")
	ids := s.spend(1, "Refunds", "Complaints")
	// A call reads 12,400 tokens at $3 and writes 310 at $15 a million: 41,850 micros.
	p := owner.get(s.at("usage")).is(http.StatusOK)
	p.says("Complaints made 66 % of it.", "pretend dollars", "$0.13", "Spent so far", "$0.04 each", "37.2 k", "930 written",
		"the practice model", "Refunds", "66 %", "33 %", "Today $0.13")
	require.NotEmpty(t, p.all("a", "href", s.at("pipelines", ids[0].String())), "a pipeline leads to its page")
	p.says(s.home.people[tenants.Builder].User.Name)
	owner.get(s.at("usage")+"?month=2020-02").is(http.StatusOK).says("Usage, February 2020", "Nothing was spent")
	for _, odd := range []string{"?month=9999-12", "?month=x", "?month=2026-13", "?funds=gold", "?month=0000-00"} {
		owner.get(s.at("usage") + odd).is(http.StatusOK)
	}
}

func TestUsageAsAFileCannotRunInASpreadsheet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.spend(1, `=HYPERLINK("http://evil.example","Click")`, "+1+cmd|' /C calc'!A0", "@SUM(1,2)", "Plain, \"quoted\"", "  =1+2")
	p := s.in(tenants.Finance).get(s.at("usage", "csv")).is(http.StatusOK)
	require.Equal(t, "text/csv; charset=utf-8", p.header.Get("Content-Type"))
	require.Regexp(t, `^attachment; filename=usage-\d{4}-\d\d\.csv$`, p.header.Get("Content-Disposition"))
	records, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 6)
	for _, record := range records {
		for _, cell := range record {
			require.False(t, cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r "), cell)
		}
	}
	require.Contains(t, p.body, "0.04185", "amounts are exact")
}

func TestInertCells(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "Refunds": "Refunds", "-0.5": "-0.5", "-5": "-5", "12.5": "12.5", "-1.2.3": "'-1.2.3", "-": "'-",
		"=1": "'=1", "\t=1": "'\t=1", " x": "' x", "＝1": "'＝1", "+49 40 1234": "'+49 40 1234", "@a": "'@a", "-2+3": "'-2+3",
	} {
		require.Equal(t, want, inert(cell), cell)
	}
}

// Whoever may not see money sees no way to it either.
func TestUsageIsForThoseWhoMaySeeMoney(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, role := range tenants.Roles() {
		p := s.in(role).get(s.at())
		require.Equal(t, role.May(tenants.SeeMoney), len(p.all("a", "href", s.at("usage"))) > 0, role)
	}
}

func TestTheLookOfUsage(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.spend(2, "Complaint answers", hostile, "Recovery from third parties, which is a long name for a pipeline of an insurer")
	before := s.spreadCharges()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("usage"))
			p.Shot("usage")
			p.Check(t)
			p.Go(s.web.origin + s.at("statement"))
			p.Shot("statement")
			p.Check(t)
			p.Go(s.web.origin + s.at("usage") + "?month=" + before.Format("2006-01"))
			p.Do(chromedp.Click(chromedp.CSS("#usage-days-fold summary")))
			p.Shot("usage-before")
			p.Check(t)
		})
	}
}

// spreadCharges moves most calls to days of the month before, and returns that month.
func (s *site) spreadCharges() time.Time {
	s.t.Helper()
	var before time.Time
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `
		WITH n AS (SELECT hold_id, row_number() OVER (ORDER BY hold_id) AS n FROM charges),
		moved AS (
			UPDATE charges c SET month_start = ledger_month(c.month_start - interval '1 day', 'Europe/Berlin'),
				started_at = ledger_month(c.month_start - interval '1 day', 'Europe/Berlin') + n.n * n.n * interval '4 hours' + interval '9 hours',
				day_start = ledger_day(ledger_month(c.month_start - interval '1 day', 'Europe/Berlin') + n.n * n.n * interval '4 hours' + interval '9 hours', 'Europe/Berlin')
			FROM n WHERE n.hold_id = c.hold_id AND n.n > 2 RETURNING c.month_start)
		SELECT max(month_start) FROM moved`).Scan(&before))
	return before.Add(24 * time.Hour)
}

// The statement says whether its figures can change, and has the same sums as the usage.
func TestTheStatementOfAMonth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.spend(1, "Refunds", "=Complaints")
	owner := s.in(tenants.Owner)
	p := owner.get(s.at("statement")).is(http.StatusOK)
	p.says("Provisional", "$0.12555", "Calls of models", "Refunds", "$0.04185", "No cost centre", "pretend: nobody pays them", "Together")
	owner.get(s.at("statement")+"?month=2020-02").is(http.StatusOK).says("Statement, February 2020", "Closed", "$0.00")
	file := owner.get(s.at("statement", "csv")).is(http.StatusOK)
	records, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "0.12555", records[len(records)-1][6])
	require.Contains(t, file.body, "'=Complaints")
	s.in(tenants.Viewer).get(s.at("statement")).is(http.StatusForbidden)
}
