package web

import (
	"fmt"
	"net/http"
	"net/url"
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

// Runs are found by the fields that their pipeline names, and what is found is what a bulk
// takes.
func TestRunsAreFoundOnTheList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askingDocument("Orders")
	document.Search = []string{"input.topic"}
	id := s.publish(s.home, document)
	s.start(s.home, id, map[string]string{"topic": "NL-117"})
	s.start(s.home, id, map[string]string{"topic": "NL-1170"})
	s.start(s.home, id, map[string]string{"topic": hostile})
	b := s.in(tenants.Builder)
	p := b.get(s.at("runs")).is(http.StatusOK).says("Topic", "Begins with")
	require.Len(t, p.all("tr", "role", "row"), 4)
	found := b.get(s.at("runs") + "?find=nl-117&how=is").is(http.StatusOK)
	require.Len(t, found.all("tr", "role", "row"), 2)
	require.Len(t, b.get(s.at("runs")+"?find=nl-117&field=input.topic").is(http.StatusOK).all("tr", "role", "row"), 3)
	b.get(s.at("runs") + "?find=zz").is(http.StatusOK).says("No run was found by “zz”")
	require.Len(t, b.get(s.at("runs")+"?find="+url.QueryEscape(hostile)).is(http.StatusOK).hides("<img").all("tr", "role", "row"), 2)
	bulk := attr(found.all("a", "data-testid", "bulk")[0], "href")
	b.get(bulk+"&action=pause").is(http.StatusOK).says("Only runs in which a field is", "nl-117", "1 run will be paused")
	other := s.workspace("Elsewhere")
	b.get(pathIn(other.ID) + "/runs?find=nl").is(http.StatusNotFound)
}

// Runs that a run began stand behind it, until somebody wants to see them.
func TestChildRunsStandBehindTheirParent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Orders"))
	parent := s.start(s.home, id, map[string]string{"topic": "The parent"})
	s.work()
	child := s.start(s.home, id, map[string]string{"topic": "The child"})
	_, err := s.db.Super(t).Exec(t.Context(), `
		UPDATE runs r SET parent_run = s.run_id, parent_step_run = s.id, root_run = s.run_id, depth = 1 FROM step_runs s WHERE r.id = $1 AND s.run_id = $2`, child.ID, parent.ID)
	require.NoError(t, err)
	b := s.in(tenants.Viewer)
	p := b.get(s.at("runs")).is(http.StatusOK).says("The parent", "1 run below it")
	require.NotContains(t, p.text(), "The child")
	b.get(s.at("runs")+"?children=true").is(http.StatusOK).says("The parent", "The child")
	under := b.get(s.at("runs")+"?under="+parent.ID.String()).is(http.StatusOK).says("The child", "below “The parent”")
	require.Len(t, under.all("tr", "role", "row"), 2)
	b.get(s.at("runs") + "?under=" + tenants.NewID[int]().String()).is(http.StatusNotFound)
}
