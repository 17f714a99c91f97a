package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestRunsAreFilteredAndCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	standings(s)
	b := s.in(tenants.Owner)
	for state, want := range map[string]struct {
		rows int
		here string
	}{
		"": {10, "All 10"}, "open": {7, "Open 7"}, "person": {2, "Waiting for a person 2"}, "capped": {1, "Stopped by the cap 1"},
		"failed": {1, "Failed 1"}, "completed": {1, "Done 1"}, "cancelled": {1, "Cancelled 1"},
	} {
		p := b.get(s.at("runs") + "?state=" + state).is(http.StatusOK)
		require.Len(t, p.all("tr", "role", "row"), want.rows+1, "runs that are %q, and the head", state)
		here := p.all("a", "aria-current", "page")
		require.Equal(t, want.here, textOf(here[len(here)-1]))
	}
	b.get(s.at("runs") + "?state=odd").is(http.StatusNotFound)
	b.get(s.at("runs") + "?pipeline=odd").is(http.StatusNotFound)
	b.get(s.at("runs") + "?before=odd").is(http.StatusNotFound)
	b.get(s.at("runs") + "?pipeline=" + tenants.NewID[int]().String()).is(http.StatusNotFound)
	s.in(tenants.Reviewer).get(s.at("runs")).is(http.StatusOK).hides("Cost", "$")
}

// Pages of the list go by the last run that was seen, so new runs shift nothing.
func TestRunsComeInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	for n := range runsPerPage + 5 {
		s.start(s.home, id, map[string]string{"topic": fmt.Sprintf("number %d.", n)})
	}
	b := s.in(tenants.Viewer)
	first := b.get(s.at("runs")+"?pipeline="+id.String()).is(http.StatusOK).says("number 54.", "number 5.", "Older runs")
	require.NotContains(t, first.text(), "number 4.")
	s.start(s.home, id, map[string]string{"topic": "a newer one"})
	next := first.all("a", "rel", "next")
	require.Len(t, next, 1)
	second := b.get(attr(next[0], "href")).is(http.StatusOK).says("number 4.", "number 0.", "Back to the newest")
	require.NotContains(t, second.text(), "number 5.")
	require.Empty(t, second.all("a", "rel", "next"))
}

// Names from outside are text on every page, however long and whatever they hold.
func TestHostileNamesOfPipelinesAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askDocument(hostile)
	document.Note = hostile
	document.Steps[0].Name, document.Steps[1].Name = hostile, strings.Repeat("Wört", 30)
	document.Input[0].Label, document.Input[0].Help = hostile, hostile
	id := s.publish(s.home, document)
	topic := "\u202E" + hostile + strings.Repeat("x", 5000)
	s.calls.say(overloaded)
	run := s.start(s.home, id, map[string]string{"topic": topic})
	s.work()
	owner := s.in(tenants.Owner)
	for _, path := range []string{
		s.at("runs"), s.at("runs", run.ID.String()), s.at("runs", run.ID.String(), "steps", "count"), s.at("runs", run.ID.String(), "cancel"),
		s.at("pipelines"), s.at("pipelines", id.String()), s.at("pipelines", id.String(), "start") + "?form=k",
	} {
		p := owner.get(path).is(http.StatusOK).says(hostile).hides("<img")
		require.Empty(t, p.all("img", "", ""))
	}
}
