package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// linkOf gives the link of a run's open review for the n-th person who is asked.
func (s *site) linkOf(in workspace, run [16]byte, n int) (string, review.Detail) {
	s.t.Helper()
	var detail review.Detail
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		asked, err := s.reviews.OpenOfRuns(ctx, tx, [][16]byte{run}, tenants.UserID{})
		require.NoError(s.t, err)
		require.NotEmpty(s.t, asked[run], "nobody is asked")
		detail, err = s.reviews.ByID(ctx, tx, asked[run][0].Review)
		return err
	})
	seat := detail.Seats[n]
	return "/r/" + s.secret.SeatToken(seat.ID, seat.Generation), detail
}

// review by id, as it is now.
func (s *site) reviewNow(in workspace, id review.ID) review.Detail {
	s.t.Helper()
	var detail review.Detail
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		detail, err = s.reviews.ByID(ctx, tx, id)
		return err
	})
	return detail
}

// asked starts a run of a document and works until its question is open.
func (s *site) asked(document pipeline.Document, topic string) (string, review.Detail) {
	s.t.Helper()
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": topic})
	s.work()
	return s.linkOf(s.home, run.ID, 0)
}

// form is what a browser would send of a page's form: everything that is filled in.
func (p *page) form(id string) url.Values {
	p.t.Helper()
	found := p.all("form", "id", id)
	require.Len(p.t, found, 1, "form %q on\n%s", id, p.text())
	values := url.Values{}
	for node := range found[0].Descendants() {
		name := attr(node, "name")
		switch {
		case node.Type != html.ElementNode || name == "" || node.Data == "button":
		case node.Data == "textarea":
			values.Set(name, "")
			if node.FirstChild != nil { // line ends as the standard wants them
				values.Set(name, strings.ReplaceAll(node.FirstChild.Data, "\n", "\r\n"))
			}
		case node.Data == "select":
			values.Set(name, selected(node))
		case attr(node, "type") != "radio" || has(node, "checked"):
			values.Set(name, attr(node, "value"))
		}
	}
	return values
}

func selected(list *html.Node) string {
	chosen := ""
	for node := range list.Descendants() {
		if node.Data == "option" && has(node, "selected") {
			chosen = attr(node, "value")
		}
	}
	return chosen
}

func has(node *html.Node, name string) bool {
	return slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// answer presses the button of a page that asks, after some of its fields were changed.
func (p *page) answer(pairs ...string) *page {
	p.t.Helper()
	values := p.form("answer")
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	var form []string
	for name, value := range values {
		form = append(form, name, value[0])
	}
	return p.browser.post(strings.Split(p.path, "?")[0], form...)
}

// everything is a fingerprint of all rows of all tables but those named.
func (s *site) everything(but ...string) map[string]string {
	s.t.Helper()
	super := s.db.Super(s.t)
	rows, err := super.Query(s.t.Context(), `SELECT schemaname || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	require.NoError(s.t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	require.Greater(s.t, len(tables), 10)
	all := map[string]string{}
	for _, table := range tables {
		if slices.Contains(but, table) {
			continue
		}
		var print string
		query := `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, ' ' ORDER BY t::text)), '') FROM ` + table + ` t`
		require.NoError(s.t, super.QueryRow(s.t.Context(), query).Scan(&print), table)
		all[table] = print
	}
	return all
}

// recorded reads the log of what was done to a review.
func (s *site) recorded(id review.ID) []tenants.Entry {
	s.t.Helper()
	var entries []tenants.Entry
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		entries, err = tenants.AuditOf(ctx, tx, tenants.Target{Kind: "review", ID: id}, tenants.AuditID{})
		return err
	})
	return entries
}

// readMarkup reads a piece of a page.
func readMarkup(t *testing.T, markup string) *page {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(markup))
	require.NoError(t, err)
	return &page{t: t, body: markup, doc: doc}
}
