package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// seedMany writes very many runs of one step: one in twenty is open and waits for an event,
// the very first few for the cap and for a person, one in a hundred failed, one in ten was begun
// by another. Each is found by an order number of its own and by one of three outcomes.
func (s *site) seedMany(runs int) pipeline.ID {
	s.t.Helper()
	document := askingDocument("Orders")
	document.Search = []string{"input.topic"}
	id := s.publish(s.home, document)
	s.publish(s.home, askingDocument("Something else"))
	model := s.start(s.home, id, map[string]string{"topic": "a real one"})
	s.work()
	super := s.db.Super(s.t)
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE seeded AS SELECT (lpad(to_hex(n), 12, '0') || '00007000800000000000')::uuid AS id, n FROM generate_series(2, %d) n`, runs),
		fmt.Sprintf(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, started_by, start_key, created_at, ended_at, failure, parent_run, parent_step_run, root_run, depth)
			SELECT r.tenant_id, s.id, r.pipeline_id, r.version, s.n, 'Order ' || s.n, CASE WHEN s.n %% 20 = 0 OR s.n < 20 THEN 'running' WHEN s.n %% 100 = 1 THEN 'failed' ELSE 'completed' END,
				r.input_digest, r.started_by, 'seed:' || s.n, now() - interval '1 hour', CASE WHEN s.n %% 20 = 0 OR s.n < 20 THEN NULL ELSE now() END,
				CASE WHEN s.n >= 20 AND s.n %% 100 = 1 THEN '{"class": "server", "message": "The other side is away."}'::jsonb END,
				CASE WHEN s.n %% 10 = 3 THEN r.id END, CASE WHEN s.n %% 10 = 3 THEN t.id END, CASE WHEN s.n %% 10 = 3 THEN r.id END, CASE WHEN s.n %% 10 = 3 THEN 1 ELSE 0 END
			FROM seeded s, runs r JOIN step_runs t ON t.run_id = r.id WHERE r.id = '%s'`, model.ID),
		fmt.Sprintf(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, begun_at)
			SELECT r.tenant_id, s.id, s.id, 'ask', 'review', 'waiting', now() FROM seeded s, runs r WHERE r.id = '%s' AND (s.n %% 20 = 0 OR s.n < 20)`, model.ID),
		fmt.Sprintf(`INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, event_name)
			SELECT r.tenant_id, s.id, s.id, s.id, CASE WHEN s.n < 10 THEN 'cap' WHEN s.n < 20 THEN 'review' ELSE 'event' END, CASE WHEN s.n >= 20 THEN 'paid' ELSE '' END FROM seeded s, runs r WHERE r.id = '%s' AND (s.n %% 20 = 0 OR s.n < 20)`, model.ID),
		fmt.Sprintf(`INSERT INTO run_search SELECT r.tenant_id, s.id, 'input.topic', 'nl-' || lpad(s.n::text, 8, '0') FROM seeded s, runs r WHERE r.id = '%s'`, model.ID),
		fmt.Sprintf(`INSERT INTO run_search SELECT r.tenant_id, s.id, 'result.outcome', (ARRAY['paid', 'refused', 'open'])[1 + s.n %% 3] FROM seeded s, runs r WHERE r.id = '%s'`, model.ID),
		`DROP TABLE seeded`, `VACUUM ANALYZE`,
	} {
		_, err := super.Exec(s.t.Context(), statement)
		require.NoError(s.t, err)
	}
	return id
}

// BenchmarkLists prints how long the server takes for lists of runs, and for finding some,
// where the table holds TOLLGATE_RUNS of them.
func BenchmarkLists(b *testing.B) {
	runs, _ := strconv.Atoi(os.Getenv("TOLLGATE_RUNS"))
	s := newSite(b)
	id := s.seedMany(max(runs, 10_000))
	owner := s.in(tenants.Owner)
	for _, list := range []struct{ name, query string }{
		{"all", ""}, {"open", "?state=open"}, {"person", "?state=person"}, {"capped", "?state=capped"}, {"failed", "?state=failed"}, {"done", "?state=completed"},
		{"everything", "?children=true"}, {"older", "?before=00000010-0000-7000-8000-000000000000"}, {"cause", "?state=failed&class=server"}, {"since", "?from=2026-01-01"},
		{"of_pipeline", "?pipeline=" + id.String()}, {"of_pipeline_failed", "?state=failed&pipeline=" + id.String()},
		{"find_one", "?find=NL-00004711&how=is"}, {"find_few", "?find=nl-0000471"}, {"find_many", "?find=nl-"}, {"find_third", "?find=paid&how=is"},
		{"find_third_failed", "?find=paid&how=is&state=failed"}, {"find_many_capped", "?find=nl-&state=capped"}, {"find_none", "?find=zz"},
	} {
		b.Run(list.name, func(b *testing.B) { s.measure(b, owner, s.at("runs")+list.query) })
	}
	b.Run("home", func(b *testing.B) { s.measure(b, owner, s.at()) })
	b.Run("pipelines", func(b *testing.B) { s.measure(b, owner, s.at("pipelines")) })
	b.Run("bulk", func(b *testing.B) { s.measure(b, owner, s.at("bulk")+"?state="+string(engine.GroupFailed)) })
}

// measure prints how long the server takes for a page.
func (s *site) measure(b *testing.B, who *browser, path string) {
	var took []time.Duration
	for b.Loop() {
		r := who.request(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		answer := httptest.NewRecorder()
		began := time.Now()
		s.web.Handler().ServeHTTP(answer, r)
		took = append(took, time.Since(began))
		if answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
