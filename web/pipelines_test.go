package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

func (s *site) pipelines() []pipeline.Pipeline {
	s.t.Helper()
	var all []pipeline.Pipeline
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		all, err = pipeline.List(ctx, tx)
		return err
	})
	return all
}

// Every template is there with what it does, and each can be tried in one press, again
// and again, on one pipeline.
func TestTemplatesAreTriedAndUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(triaged)
	b := s.in(tenants.Builder)
	gallery := b.get(s.at("templates")).is(http.StatusOK)
	for n, template := range pipeline.Templates() {
		gallery.says(template.Title, template.Summary)
		b.get(s.at("templates", template.Slug)).is(http.StatusOK).says("What it does, step by step", "What it starts with")
		b.post(s.at("templates", template.Slug, "use"), answersTo(template)...).is(http.StatusSeeOther)
		b.post(s.at("templates", template.Slug, "use"), answersTo(template)...).is(http.StatusSeeOther)
		require.Len(t, s.pipelines(), n+1, "using it twice makes one pipeline")
		form := gallery.byTestID("try-" + template.Slug).Parent
		key := ""
		for node := range form.Descendants() {
			if attr(node, "name") == "key" {
				key = attr(node, "value")
			}
		}
		for range 2 {
			b.post(attr(form, "action"), "key", key).is(http.StatusSeeOther).follow().is(http.StatusOK).says("Sample")
		}
	}
	require.Len(t, s.pipelines(), len(pipeline.Templates()))
	require.Len(t, s.runs(), len(pipeline.Templates()), "a double press is one run")
	b.get(s.at("templates")).says("in use here", "Open the pipeline")
	b.get(s.at("templates", "no-such")).is(http.StatusNotFound)
	b.post(s.at("templates", "no-such", "use")).is(http.StatusNotFound)
}

// A pipeline's page tells each step as a sentence, with what is inserted by the names
// that people gave.
func TestPipelineIsToldInSentences(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template, _ := pipeline.TemplateBySlug("customer-email")
	id := s.publish(s.home, template.Document)
	p := s.in(tenants.Builder).get(s.at("pipelines", id.String())).is(http.StatusOK)
	p.says(
		"v1", "Never run", "Cap of a run", "$0.50",
		"Asks the practice model for “Topic”, “Urgency”, “Order number”, “What the customer wants” and “Language of the e-mail”, for at most $0.05.",
		"Without an answer within 2 d it counts as refused.", "[Put the case together › reply to]", "If: Approved", "Otherwise",
	)
	require.NotContains(t, p.text(), "{{", "no formula is shown")
	s.in(tenants.Viewer).get(s.at("pipelines", id.String())).is(http.StatusOK).hides("$0.", "Cap of a run", `data-testid="start-run"`)
}

func TestPipelinesAreListedWithTheirNewestRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	viewer := s.in(tenants.Viewer)
	viewer.get(s.at("pipelines")).is(http.StatusOK).says("No pipeline yet")
	s.publish(s.home, failingDocument("Never run yet"))
	id := s.publish(s.home, askingDocument("Sign-off"))
	s.start(s.home, id, map[string]string{"topic": "one"})
	second := s.start(s.home, id, map[string]string{"topic": "two"})
	s.work()
	p := viewer.get(s.at("pipelines")).is(http.StatusOK).says("2 pipelines", "Never run", "#2", "Waiting for a person")
	require.Len(t, p.all("a", "href", s.at("runs", second.ID.String())), 1)
	require.False(t, strings.Contains(p.text(), "Start a run"), "a viewer starts nothing")
}

// The pipeline's own sample runs in one press; a second press is the same run.
func TestPipelineRunsItsSample(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template, _ := pipeline.TemplateBySlug("invoice-check")
	id := s.publish(s.home, template.Document)
	b := s.in(tenants.Builder)
	key := b.get(s.at("pipelines", id.String())).is(http.StatusOK).field("key")
	for range 2 {
		b.post(s.at("pipelines", id.String(), "sample"), "key", key).is(http.StatusSeeOther)
	}
	require.Len(t, s.runs(), 1)
	require.True(t, s.runs()[0].Run.Sample)
}

// Every kind of step is told in a sentence, with its limits and what happens at them.
func TestKindsAreToldInWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for slug, says := range map[string][]string{
		"second-opinion":  {"Does “First opinion”, “Second opinion” and “Third opinion” side by side and takes what more than half of them say.", "Branch: First opinion"},
		"improve-text":    {"for at most 5 rounds, 20 min and $0.50. At a limit it goes on with the best round so far.", "In each round", "Ends the run and says: “The text was not sent: ["},
		"invoice-list":    {"Does its steps for each item of a list, 3 at a time", "Up to 2 items may fail.", "For each item"},
		"incident-report": {"Waits for the event “repair finished” with the key [Number of the ticket], at most 1 d; then the run goes on without it."},
	} {
		s.in(tenants.Owner).get(s.at("templates", slug)).is(http.StatusOK).says(says...)
	}
	s.in(tenants.Viewer).get(s.at("templates", "improve-text")).is(http.StatusOK).says("for at most 5 rounds and 20 min.").hides("$0.50")
}
