package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// The list with its search, who is told, links to a run, the comparison and the procedure sheet
// can be read and used in every view.
func TestPagesAboutRunsLook(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.fill()
	document := askingDocument("Orders from abroad, first check")
	document.Note = "Reads an order that came by mail, has it checked, and books it."
	document.Search = []string{"input.topic"}
	document.Steps = append(document.Steps, pipeline.Step{ID: "mail", Name: "Tell the customer", Kind: pipeline.KindEmail,
		With: &pipeline.Email{To: []string{"{{ input.topic }}"}, Subject: "Your order", Body: "b"}})
	id := s.publish(s.home, document)
	first := s.start(s.home, id, map[string]string{"topic": "NL-2026-117733"})
	second := s.start(s.home, id, map[string]string{"topic": "عبد الرحمن القحطاني, NL-2026-117734"})
	s.work()
	_, err := s.db.Super(t).Exec(t.Context(), `UPDATE runs SET state = 'completed', ended_at = now() WHERE id = $1`, first.ID)
	require.NoError(t, err)
	_, err = s.db.Super(t).Exec(t.Context(), `
		INSERT INTO watch_findings (tenant_id, id, kind, run_id, repaired, worker, first_at) SELECT tenant_id, gen_random_uuid(), 'no_wait', id, false, 'w', now() - interval '4 minutes' FROM runs WHERE id = $1`, second.ID)
	require.NoError(t, err)
	_, err = s.db.Super(t).Exec(t.Context(), `
		INSERT INTO notices (tenant_id, id, pipeline_id, kind, class, step_id, sample_run, runs, first_at, last_at, look_at)
		SELECT tenant_id, gen_random_uuid(), pipeline_id, 'failed', 'timeout', 'mail', id, 1004, now() - interval '3 hours', now(), now() FROM runs WHERE id = $1`, second.ID)
	require.NoError(t, err)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		owner, builder := s.home.people[tenants.Owner], s.home.people[tenants.Builder]
		require.NoError(t, notice.Save(ctx, tx, id, notice.Settings{Owner: builder.User.ID, Backup: owner.User.ID, Kinds: notice.Kinds(), HookURL: "https://example.com/hooks/tollgate"}, owner))
		require.NoError(t, engine.AllowShares(ctx, tx, true, owner))
		return s.engine.ShareRun(ctx, tx, second.ID, engine.MaxShare, owner, "a key")
	})
	_, err = s.db.Super(t).Exec(t.Context(), `
		INSERT INTO notice_hooks (tenant_id, id, pipeline_id, url, generation, body, state, attempt, last_error, ended_at)
		SELECT tenant_id, gen_random_uuid(), pipeline_id, 'https://example.com', 1, '{}', h.state, h.n, h.said, CASE h.state WHEN 'queued' THEN NULL ELSE now() END
		FROM runs, (VALUES ('sent', 1, ''), ('queued', 3, 'The other side answered 503.'), ('failed', 10, 'The other side did not answer in time.')) h (state, n, said) WHERE id = $1`, second.ID)
	require.NoError(t, err)
	b := s.in(tenants.Owner)
	token := textOf(b.get(s.at("runs", second.ID.String(), "share")).is(http.StatusOK).all("pre", "", "")[0])
	paths := map[string]string{
		"runs-found": s.at("runs") + "?find=nl-2026&pipeline=" + id.String(), "runs-all": s.at("runs"), "runs-not-found": s.at("runs") + "?find=zeppelin",
		"pipeline-told": s.at("pipelines", id.String()), "told": s.at("pipelines", id.String(), "told"), "sheet": s.at("pipelines", id.String(), "sheet"),
		"run-stuck": s.at("runs", second.ID.String()), "run-compare": s.at("runs", second.ID.String(), "compare"), "run-share": s.at("runs", second.ID.String(), "share"),
		"run-shared": token[len(s.web.origin):], "bulk-found": s.at("bulk") + "?find=nl-2026&action=cancel",
	}
	for _, view := range browsertest.Views {
		p := chromium.Open(t, view)
		become(p, s, tenants.Owner)
		for name, path := range paths {
			p.Go(s.web.origin + path)
			p.Shot(name)
			p.Check(t)
		}
	}
}
