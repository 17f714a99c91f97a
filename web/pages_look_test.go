package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// sampleRun starts a template's sample run in the home workspace and works it off.
func (s *site) sampleRun(slug string) engine.Run {
	s.t.Helper()
	template, ok := pipeline.TemplateBySlug(slug)
	require.True(s.t, ok)
	id := s.publish(s.home, template.Document)
	input, files, err := template.Document.SampleInput()
	require.NoError(s.t, err)
	var started engine.Started
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		started, err = s.engine.Start(ctx, tx, engine.StartRequest{
			Pipeline: id, Input: input, Files: files, Sample: true, By: s.home.people[tenants.Builder].User.ID, Key: tenants.NewID[int]().String(),
		})
		return err
	})
	s.work()
	return started.Run
}

// age moves the begin of a run and what was done in it into the past; its open wait
// began right after.
func (s *site) age(run engine.RunID, by time.Duration) {
	s.t.Helper()
	super, ctx := s.db.Super(s.t), s.t.Context()
	for _, sql := range []string{
		`UPDATE runs SET created_at = created_at - $2::interval WHERE id = $1`,
		`UPDATE step_runs SET created_at = created_at - $2::interval, begun_at = begun_at - $2::interval, ended_at = ended_at - $2::interval WHERE run_id = $1`,
		`UPDATE attempts SET began_at = began_at - $2::interval, ended_at = ended_at - $2::interval WHERE step_run_id IN (SELECT id FROM step_runs WHERE run_id = $1)`,
		`UPDATE waits SET opened_at = opened_at - $2::interval WHERE run_id = $1`,
		`UPDATE reviews SET opened_at = opened_at - $2::interval, due_at = due_at - $2::interval WHERE run_id = $1`,
	} {
		_, err := super.Exec(ctx, sql, run, by)
		require.NoError(s.t, err)
	}
}

// Every page about pipelines and runs passes the checks of a browser and of axe on a
// phone and on a desk, light and dark.
func TestTheLookOfRuns(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.calls.say(triaged)
	mail := s.sampleRun("customer-email")
	s.fill()
	failed := s.start(s.home, s.publish(s.home, failingDocument("Count words")), map[string]string{"topic": hostile})
	s.work()
	all := standings(s)
	s.age(mail.ID, 50*time.Hour)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			look := func(name string, parts ...string) {
				p.Go(s.web.origin + s.at(parts...))
				p.Shot(name)
				p.Check(t)
			}
			look("template", "templates", "customer-email")
			look("pipelines", "pipelines")
			look("pipeline", "pipelines", mail.PipelineID.String())
			look("run-retrying", "runs", all[engine.StandingRetrying].String())
			look("run-capped", "runs", all[engine.StandingCapped].String())
			look("run-done", "runs", all[engine.StandingCompleted].String())
			look("run-cancelled", "runs", all[engine.StandingCancelled].String())
			look("run-queued", "runs", all[engine.StandingQueued].String())
			look("start", "pipelines", mail.PipelineID.String(), "start")
			look("runs", "runs")
			look("run", "runs", mail.ID.String())
			look("run-step", "runs", mail.ID.String(), "steps", "triage")
			look("run-failed", "runs", failed.ID.String())
			look("cancel", "runs", mail.ID.String(), "cancel")
		})
	}
}

// A page that is open shows by itself what happens, and leaves what its reader opened
// open and what she typed or chose in place.
func TestOpenPageOfARunFollowsIt(t *testing.T) {
	t.Parallel()
	p := browsertest.Start(t).Open(t, browsertest.View{Width: 1280})
	s := listen(t)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`)})
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "a refund"})
	become(p, s, tenants.Owner)
	p.Go(s.web.origin + s.at("runs", run.ID.String()))
	p.Do(chromedp.WaitReady(chromedp.CSS(`html[data-live="on"]`)), chromedp.Click(chromedp.CSS(`#run-input-fold summary`)))
	s.work()
	p.Do(chromedp.WaitReady(chromedp.CSS(`#run .head .badge[data-status="done"]`)))
	require.Equal(t, "Done: a refund · Nordlicht Handel · Tollgate", browsertest.Eval[string](p, "document.title"))
	require.True(t, browsertest.Eval[bool](p, `document.querySelector("#run-input-fold").open`))
	require.True(t, browsertest.Eval[bool](p, `document.querySelector("#run-input-fold").contains(document.activeElement)`), "the focus stays")
	p.Do(chromedp.WaitReady(chromedp.CSS(`html[data-live="ended"]`)))
	p.Check(t)
}

// Whichever of a live page's scripts comes last, the page follows its run.
func TestOpenPageOfARunFollowsItWhateverScriptIsSlow(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	for _, slow := range []string{"/htmx.", "/hx-sse.", "/app."} {
		t.Run(strings.Trim(slow, "/."), func(t *testing.T) {
			t.Parallel()
			s := listenBehind(t, func(pages http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.URL.Path, slow) && strings.HasSuffix(r.URL.Path, ".js") {
						time.Sleep(500 * time.Millisecond) // of a slow network
					}
					pages.ServeHTTP(w, r)
				})
			})
			run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "a refund"})
			p := chromium.Open(t, browsertest.View{Width: 1280})
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("runs", run.ID.String()))
			p.Do(chromedp.WaitReady(chromedp.CSS(`html[data-live="on"]`)))
			p.Check(t)
		})
	}
}
