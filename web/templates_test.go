package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// answersTo are form values for all settings of a template.
func answersTo(template pipeline.Template) []string {
	var out []string
	for _, s := range template.Settings {
		out = append(out, s.Name, s.Name+"@shop.example")
	}
	return out
}

// Using a template asks for what the workspace has of its own, says what is wrong with an
// answer, and makes a pipeline that holds nothing of the template's company.
func TestUsingATemplateAsksForWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Builder)
	path := s.at("templates", "claims-triage", "use")
	b.get(s.at("templates")).is(http.StatusOK).says("Use this")
	b.get(path).is(http.StatusOK).says("Who releases held claims", "Who pays settled claims", "Name of your company", "Whoever starts a run may not decide on it")
	again := b.post(path, "compliance", "legal@shop.example", "claims_lead", "nobody", "payments", "a@shop.example, b@shop.example", "company", "{{ input }}")
	again.is(http.StatusUnprocessableEntity).says("Error:", "“nobody” is not an e-mail address", "cannot have braces")
	require.Equal(t, "legal@shop.example", again.field("compliance"), "what was typed stays")
	require.Empty(t, s.pipelines())

	b.post(path, "compliance", "legal@shop.example", "claims_lead", "lead@shop.example", "payments", "pay@shop.example", "company", "Śliwka & Söhne").
		is(http.StatusSeeOther).follow().is(http.StatusOK).says("Check a claim", "legal@shop.example")
	all := s.pipelines()
	require.Len(t, all, 1)
	_, version := s.live(all[0].ID)
	document := version.Document
	document.Sample = nil
	require.Contains(t, string(document.JSON()), "Śliwka & Söhne")
	require.NotContains(t, string(document.JSON()), "ordlicht")
	b.get(path).is(http.StatusSeeOther).follow().says("Check a claim", "v1")
	b.get(s.at("templates", "claims-triage")).is(http.StatusOK).says("Open the pipeline").hides(`data-testid="use-claims-triage"`)

	s.in(tenants.Viewer).get(path).is(http.StatusForbidden)
	s.in(tenants.Viewer).post(path, answersTo(pipeline.Templates()[0])...).is(http.StatusForbidden)
	b.get(s.at("templates", "nothing", "use")).is(http.StatusNotFound)
}

// A pipeline that a sample was tried with is filled in as its next version, once, and
// keeps what was changed in it.
func TestATriedTemplateIsFilledIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(triaged)
	b := s.in(tenants.Builder)
	b.post(s.at("templates", "second-opinion", "try"), "key", "one-key-of-a-form").is(http.StatusSeeOther)
	made := s.pipelines()[0]
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		draft := made.Draft
		draft.Name = "Complaints"
		return pipeline.SaveDraft(ctx, tx, made.ID, draft, s.home.people[tenants.Builder].User.ID)
	})
	path := s.at("templates", "second-opinion", "use")
	b.get(path).is(http.StatusOK).says("Where assigned complaints go", "Publish with these")
	for range 2 {
		b.post(path, "complaints", "care@shop.example").is(http.StatusSeeOther).follow().is(http.StatusOK).says("Complaints", "v2")
	}
	all := s.pipelines()
	require.Len(t, all, 1)
	require.Equal(t, 2, all[0].Live)
	_, version := s.live(all[0].ID)
	require.Contains(t, string(version.Document.JSON()), "care@shop.example")
	require.Equal(t, 1, s.runs()[0].Run.Version, "the sample's run stays on its version")
}

// However often a form is pressed at once, there is one pipeline of a template.
func TestOneTemplateIsOnePipeline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template, _ := pipeline.TemplateBySlug("incident-report")
	b := s.in(tenants.Builder)
	path := s.at("templates", template.Slug, "use")
	b.get(path).is(http.StatusOK)
	var places [8]string
	var presses sync.WaitGroup
	for i := range places {
		presses.Go(func() { places[i] = b.post(path, answersTo(template)...).header.Get("Location") })
	}
	presses.Wait()
	for _, place := range places {
		require.Equal(t, s.at("pipelines", s.pipelines()[0].ID.String()), place)
	}
	require.Len(t, s.pipelines(), 1)
	require.Equal(t, 1, s.pipelines()[0].Live)
}

// Templates are found by what they do, where they belong and what their steps are called.
func TestTemplatesAreFound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Viewer)
	all := b.get(s.at("templates")).is(http.StatusOK)
	for _, area := range areas() {
		all.says(area)
		page := b.get(s.at("templates") + queryOf("area", area)).is(http.StatusOK)
		for _, one := range pipeline.Templates() {
			require.Equal(t, one.Area == area, strings.Contains(page.text(), one.Summary), "%s in %s", one.Slug, area)
		}
	}
	b.get(s.at("templates")+"?q=INVOICE").is(http.StatusOK).says("Check an invoice", "Match payments with open invoices").hides("Check an identity document")
	b.get(s.at("templates") + "?q=watch+list").says("Check an identity document").hides("Check an invoice")
	b.get(s.at("templates")+queryOf("q", "invoice", "area", "Claims and compliance")).says("No template fits “invoice”", "Show all templates")
	b.get(s.at("templates") + queryOf("q", hostile)).is(http.StatusOK).says("No template fits “" + hostile + "”").hides("<img")
	b.get(s.at("templates") + "?area=nowhere&q=" + strings.Repeat("x", 5000)).is(http.StatusOK).says("No template fits")
	b.get(s.at("templates") + "?q=%ff%00").is(http.StatusOK)
}

// A template's page says what it needs and costs, and shows its sample; money only to who
// may see it.
func TestATemplateTellsWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, one := range pipeline.Templates() {
		s.in(tenants.Owner).get(s.at("templates", one.Slug)).is(http.StatusOK).says("What it needs", "What a run costs", "Its sample, as recorded", "Start form", "The AI answers:")
	}
	s.in(tenants.Owner).get(s.at("templates", "code-change")).says("The event “checks finished”", "Who decides when nobody answers", "Somebody who may decide", "CR-1187", "under $0.01, in pretend dollars")
	s.in(tenants.Owner).get(s.at("templates", "content-approval")).says("Whoever the start form names", "Who publishes", "Gets mail from it.")
	s.in(tenants.Viewer).get(s.at("templates", "code-change")).is(http.StatusOK).says("What it needs").hides("What a run costs", "$0.")
}
