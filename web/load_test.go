package web

import (
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// manySteps has a number of steps that only change data.
func manySteps(name string, steps int) pipeline.Document {
	document := askingDocument(name)
	review := document.Steps[0]
	document.Steps = nil
	for n := range steps - 1 {
		document.Steps = append(document.Steps, pipeline.Step{
			ID: fmt.Sprintf("s%d", n), Name: fmt.Sprintf("Work out figure %d", n), Kind: pipeline.KindSet,
			With: &pipeline.Set{Values: []pipeline.Value{{Name: "n", Formula: "1"}}},
		})
	}
	document.Steps = append(document.Steps, review)
	return document
}

// seedRuns writes runs of 20 steps, a tenth of them open and waiting for a person, in
// a few statements.
func (s *site) seedRuns(runs int) engine.RunID {
	s.t.Helper()
	id := s.publish(s.home, manySteps("Twenty steps", 20))
	model := s.start(s.home, id, map[string]string{"topic": "a real one"})
	s.work()
	_, err := s.db.Super(s.t).Exec(s.t.Context(), fmt.Sprintf(`
		CREATE TEMP TABLE seeded AS SELECT gen_random_uuid() AS id, n FROM generate_series(2, %d) n;
		INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, started_by, start_key, created_at, ended_at)
		SELECT r.tenant_id, s.id, r.pipeline_id, r.version, s.n, 'Run ' || s.n, CASE WHEN s.n %% 10 = 0 THEN 'running' ELSE 'completed' END,
			r.input_digest, r.started_by, 'seed:' || s.n, now() - interval '1 hour', CASE WHEN s.n %% 10 = 0 THEN NULL ELSE now() END
		FROM seeded s, runs r WHERE r.id = '%s';
		INSERT INTO run_values (tenant_id, digest, run_id) SELECT r.tenant_id, r.input_digest, s.id FROM seeded s, runs r WHERE r.id = '%s';
		INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, output_digest, cost_micros, created_at, begun_at, ended_at)
		SELECT r.tenant_id, gen_random_uuid(), s.id, t.step_id, t.kind, CASE WHEN s.n %% 10 = 0 THEN t.state ELSE 'done' END, t.output_digest, 1000,
			t.created_at, t.begun_at, CASE WHEN s.n %% 10 = 0 THEN t.ended_at ELSE now() END
		FROM seeded s, runs r, step_runs t WHERE r.id = '%s' AND t.run_id = r.id;
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind, event_name)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'event', 'paid' FROM step_runs WHERE state = 'waiting' AND run_id <> '%s';
		ANALYZE`, runs, model.ID, model.ID, model.ID, model.ID))
	require.NoError(s.t, err)
	return model.ID
}

// BenchmarkPages prints how long the server takes for the pages that people have open
// all day, at 1,000 runs of 20 steps.
func BenchmarkPages(b *testing.B) {
	s := newSite(b)
	run := s.seedRuns(1000)
	owner := s.in(tenants.Owner)
	big := s.groupsRun("Ten thousand step runs", 5000)
	var list, item string
	require.NoError(b, s.db.Super(b).QueryRow(b.Context(), `SELECT parent_id::text, id::text FROM step_runs WHERE run_id = $1 AND kind = 'item' AND turn = 4006`, big).Scan(&list, &item))
	_, err := s.db.Super(b).Exec(b.Context(), `ANALYZE`)
	require.NoError(b, err)
	for name, path := range map[string]string{
		"big_run": s.at("runs", big.String()), "big_list": s.at("runs", big.String(), "groups", list), "big_person": s.at("runs", big.String(), "groups", list) + "?state=person",
		"big_item": s.at("runs", big.String(), "parts", item),
		"home":     s.at(), "runs": s.at("runs"), "runs_open": s.at("runs") + "?state=open", "run": s.at("runs", run.String()),
		"step": s.at("runs", run.String(), "steps", "s3"), "pipelines": s.at("pipelines"),
	} {
		b.Run(name, func(b *testing.B) { s.measure(b, owner, path) })
	}
}

func ids(nodes []*html.Node) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, attr(node, "id"))
	}
	return all
}

// weight is how many bytes a page takes on its way, packed.
func weight(t *testing.T, b *browser, path string) int {
	t.Helper()
	r := b.request(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	answer := httptest.NewRecorder()
	b.s.web.Handler().ServeHTTP(answer, r)
	require.Equal(t, http.StatusOK, answer.Code, path)
	require.Equal(t, "gzip", answer.Header().Get("Content-Encoding"), path)
	packed := answer.Body.Len()
	plain, err := gzip.NewReader(answer.Body)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, plain)
	require.NoError(t, err)
	return packed
}

// No page weighs more than 100 KB, also with full lists, the longest pipeline, and
// values that cannot be packed.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.seedRuns(120)
	noise := func(n int) string {
		data := make([]byte, n)
		_, _ = rand.Read(data)
		return base64.StdEncoding.EncodeToString(data)[:n]
	}
	encoded, err := json.Marshal(map[string]string{"text": noise(200 << 10)})
	require.NoError(t, err)
	s.calls.say(engine.Reply{Output: encoded})
	heavy := s.start(s.home, s.publish(s.home, askDocument("Heavy")), map[string]string{"topic": noise(90 << 10)})
	long := s.start(s.home, s.publish(s.home, manySteps("A thousand", pipeline.MaxSteps)), map[string]string{"topic": "x"})
	s.work()
	b := s.in(tenants.Owner)
	big := s.groupsRun("Many", 1000)
	list := linkTo(t, b.get(s.at("runs", big.String())).is(http.StatusOK), "Show all 1,000")
	for _, path := range []string{
		s.at("runs", big.String()), list,
		s.at(), s.at("runs"), s.at("pipelines"), s.at("templates"), s.at("pipelines", heavy.PipelineID.String()), s.at("pipelines", long.PipelineID.String()),
		s.at("runs", heavy.ID.String(), "steps", "draft"), s.at("runs", long.ID.String()), s.at("runs", long.ID.String(), "steps", "s500"),
	} {
		require.LessOrEqual(t, weight(t, b, path), 100<<10, path)
	}
	for _, path := range []string{s.at("runs", big.String()), list} {
		require.LessOrEqual(t, len(b.get(path).is(http.StatusOK).all("tr", "role", "row")), 2*partsPerPage, "rows of a run do not grow with its items")
	}
	page := b.get(s.at("runs", long.ID.String())).is(http.StatusOK)
	rows := page.all("tr", "role", "row")
	require.LessOrEqual(t, len(rows), rowsPerPage+2)
	require.Contains(t, strings.Join(ids(rows), " "), "step-ask", "the rows around the step that the run is at")
	earlier := page.all("a", "rel", "prev")
	require.Len(t, earlier, 1)
	require.NotEmpty(t, b.get(attr(earlier[0], "href")).is(http.StatusOK).all("a", "rel", "next"))
}
