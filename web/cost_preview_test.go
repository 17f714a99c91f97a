package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestWhatARunWillCostIsSaidBeforeItStarts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	builder, owner := s.in(tenants.Builder), s.in(tenants.Owner)
	fresh := s.publish(s.home, askDocument("Never run"))
	builder.get(s.at("pipelines", fresh.String(), "start")).follow().is(http.StatusOK).says("No run of this version has ended yet", "There is no cap of a run")
	id := s.spend(3, "Refunds")[0]
	form := s.at("pipelines", id.String(), "start")
	builder.get(form).follow().is(http.StatusOK).says("A run costs about $0.04, from the last 3 runs of this version")
	asks := s.publish(s.home, askingDocument("Asks nobody's model"))
	builder.get(s.at("pipelines", asks.String(), "start")).follow().is(http.StatusOK).hides("what one costs", "A run costs")
	builder.get(s.at("bulk") + "?action=rerun&state=completed").is(http.StatusOK).says("Together they will cost about $0.13")

	rules := owner.get(s.at("settings", "money"))
	owner.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), runCapName, "0.50", turnName, "true").is(http.StatusSeeOther)
	builder.get(form).follow().says("At most $0.50, the cap of a run: there it stops.")
	run := s.start(s.home, id, map[string]string{"topic": "x"})
	owner.get(s.at("runs", run.ID.String())).is(http.StatusOK).says("of the run’s $0.50 pretend cap")
}

// A pipeline's own cap of a run counts before that of the workspace.
func TestAPipelinesOwnCapOfARunCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	owner := s.in(tenants.Owner)
	rules := owner.get(s.at("settings", "money"))
	owner.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), runCapName, "0.50", turnName, "true").is(http.StatusSeeOther)
	document, limit := askDocument("Capped"), int64(2_000_000)
	document.RunCap = &limit
	id := s.publish(s.home, document)
	run := s.start(s.home, id, map[string]string{"topic": "x"})
	owner.get(s.at("runs", run.ID.String())).is(http.StatusOK).says("of the run’s $2.00 pretend cap")
}

func TestARunStoppedByACapLeadsToTheCaps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.capped(0)
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "x"})
	s.work()
	p := s.in(tenants.Builder).get(s.at("runs", run.ID.String())).is(http.StatusOK)
	require.Len(t, p.all("a", "data-testid", "see-caps"), 1)
	p = s.in(tenants.Viewer).get(s.at("runs", run.ID.String())).is(http.StatusOK)
	require.Empty(t, p.all("a", "data-testid", "see-caps"))
}
