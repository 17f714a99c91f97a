package web

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// The procedure sheet tells for the live version who owns it, what is done, who decides and
// where data goes; hostile words are words.
func TestTheProcedureSheet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	called := s.publish(s.home, askingDocument("Sign-off "+hostile))
	document := askingDocument("Orders")
	document.Note = "Handles orders that came by mail."
	document.Steps = append(document.Steps,
		pipeline.Step{ID: "mail", Name: "Tell the customer", Kind: pipeline.KindEmail, With: &pipeline.Email{To: []string{"{{ input.topic }}"}, Subject: "Your order", Body: "b"}},
		pipeline.Step{ID: "call", Name: "Book it", Kind: pipeline.KindChild, With: &pipeline.Child{Pipeline: called.String(), Input: []pipeline.Value{{Name: "topic", Formula: "input.topic"}}}},
	)
	id := s.publish(s.home, document)
	p := s.in(tenants.Viewer).get(s.at("pipelines", id.String(), "sheet")).is(http.StatusOK)
	p.says("Procedure sheet", "Handles orders that came by mail.", s.home.people[tenants.Builder].User.Name, "Who decides", "Where data goes",
		"A mail goes to [Topic].", "Values are handed to the pipeline “Sign-off "+hostile+"”.", "Runs the pipeline “Sign-off "+hostile+"” and goes on at once.").hides("<img")
	s.in(tenants.Viewer).get(s.at("pipelines", id.String())).is(http.StatusOK).says("Procedure sheet")
}

// A run is compared with the last one before it that was done: what took longer, cost more,
// decided otherwise.
func TestARunIsComparedWithTheLastGoodOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askDocument("Orders")
	id := s.publish(s.home, document)
	first := s.start(s.home, id, map[string]string{"topic": "one"})
	b := s.in(tenants.Owner)
	b.get(s.at("runs", first.ID.String(), "compare")).is(http.StatusOK).says("No earlier run of this pipeline is done")
	_, err := s.db.Super(t).Exec(t.Context(), `UPDATE runs SET state = 'completed', ended_at = now() WHERE id = $1`, first.ID)
	require.NoError(t, err)
	second := s.start(s.home, id, map[string]string{"topic": "two"})
	for n, run := range []engine.Run{first, second} {
		_, err := s.db.Super(t).Exec(t.Context(), `
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, cost_micros, begun_at, ended_at)
			SELECT tenant_id, gen_random_uuid(), id, $2, 'ai', 'done', $3, now() - $4::interval, now() FROM runs WHERE id = $1`,
			run.ID, document.Steps[0].ID, 1000+n*50_000, time.Duration(1+n*60)*time.Second)
		require.NoError(t, err)
	}
	p := b.get(s.at("runs", second.ID.String(), "compare")).is(http.StatusOK)
	p.says("One step went otherwise than in #1", "Took longer. Cost more.", "$0.05")
	s.in(tenants.Reviewer).get(s.at("runs", second.ID.String(), "compare")).is(http.StatusOK).says("Took longer.").hides("Cost more", "$")
}

// The list as a file has what the list has, inert for spreadsheets.
func TestRunsAsAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("=cmd()"))
	s.start(s.home, id, map[string]string{"topic": "=HYPERLINK(1)"})
	s.start(s.home, id, map[string]string{"topic": "\u202E" + hostile})
	s.work()
	p := s.in(tenants.Reviewer).get(s.at("runs.csv") + "?state=person").is(http.StatusOK)
	records, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 3)
	require.NotContains(t, records[0], "Cost in USD")
	require.Equal(t, "'=HYPERLINK(1)", records[2][0])
	require.Equal(t, "'=cmd()", records[2][2])
	require.NotContains(t, p.body, "\u202E")
	require.Len(t, strings.Split(s.in(tenants.Viewer).get(s.at("runs.csv")+"?state=failed").is(http.StatusOK).body, "\n"), 2)
	s.in(tenants.Viewer).get(s.at("runs.csv") + "?state=odd").is(http.StatusNotFound)
}

// A run that stands still says so first, with the cause and what one can do.
func TestAStuckRunSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Orders")), map[string]string{"topic": "one"})
	s.work()
	_, err := s.db.Super(t).Exec(t.Context(), `
		INSERT INTO watch_findings (tenant_id, id, kind, run_id, repaired, worker) SELECT tenant_id, gen_random_uuid(), 'no_wait', id, false, 'w' FROM runs WHERE id = $1`, run.ID)
	require.NoError(t, err)
	path := s.at("runs", run.ID.String())
	s.in(tenants.Builder).get(path).is(http.StatusOK).says("Stuck since", "a step waits for nothing that could come", "pause the run and resume it")
	s.in(tenants.Viewer).get(path).is(http.StatusOK).says("Stuck since").hides("pause the run and resume it")
	_, err = s.db.Super(t).Exec(t.Context(), `UPDATE watch_findings SET repaired = true`)
	require.NoError(t, err)
	s.in(tenants.Builder).get(path).is(http.StatusOK).hides("Stuck since")
	for _, kind := range engine.StuckKinds() {
		require.NotEmpty(t, stuckCauses[kind], "%s needs words", kind)
	}
}
