package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// The samples of the templates with loops, lists, branches side by side and events run in
// the workspace as far as they need nobody, and their pages say where they are.
func TestPagesOfTemplatesThatRan(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.calls.say(engine.Reply{Output: []byte(`{}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 900, Output: 120}}})
	s.calls.recite()
	b := s.in(tenants.Owner)
	for slug, says := range map[string][]string{
		"second-opinion":  {"2 of 3 agree: billing", "Result: delivery", "Nothing is left to do"},
		"improve-text":    {"its condition held. Round 3 was taken, score 8.5.", "Score 6.5", "Send this text to newsletter@nordlicht.example?"},
		"invoice-list":    {"2 of 6 items", "wait for a person", "1 failed", "3 are done", "1 ×"},
		"incident-report": {"Waiting for the event “repair finished”", "M-2041", "Send the event"},
	} {
		run := s.sampleRun(slug)
		page := b.get(s.at("runs", run.ID.String())).is(http.StatusOK).says(says...)
		paths := map[string]string{slug: page.path}
		if slug == "invoice-list" {
			paths["invoice-rows"] = linkTo(t, page, "Show all 6")
			rows := b.get(paths["invoice-rows"]).is(http.StatusOK).says("R-2026-102 · Spedition Hagenbeck-Oltmanns", "Pay R-2026-102 of Spedition Hagenbeck-Oltmanns?", "but got “n/a”")
			paths["invoice-row"] = linkTo(t, rows, "R-2026-102 · Spedition Hagenbeck-Oltmanns · 1980.50")
		}
		for _, view := range browsertest.Views {
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			for name, path := range paths {
				p.Go(s.web.origin + path)
				p.Shot("template-" + name)
				p.Check(t)
			}
		}
		require.NotEmpty(t, paths)
	}
}

// The gallery, a template and the questions of one can be read and used in every view.
func TestTemplatesLook(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	template, _ := pipeline.TemplateBySlug("code-change")
	made := s.publish(s.home, template.Document).String()
	for _, view := range browsertest.Views {
		p := chromium.Open(t, view)
		become(p, s, tenants.Owner)
		for name, path := range map[string]string{
			"export": s.at("pipelines", made, "export"), "templates": s.at("templates"), "templates-found": s.at("templates") + "?q=invoice", "templates-none": s.at("templates") + "?q=zeppelin",
			"template-claims": s.at("templates", "claims-triage"), "template-use": s.at("templates", "claims-triage", "use"),
		} {
			p.Go(s.web.origin + path)
			p.Shot(name)
			p.Check(t)
		}
	}
}
