package web

import (
	"context"
	"testing"

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
			look("templates", "templates")
			look("template", "templates", "customer-email")
			look("pipelines", "pipelines")
			look("pipeline", "pipelines", mail.PipelineID.String())
			look("start", "pipelines", mail.PipelineID.String(), "start")
			look("runs", "runs")
			look("run", "runs", mail.ID.String())
			look("run-step", "runs", mail.ID.String(), "steps", "triage")
			look("run-failed", "runs", failed.ID.String())
			look("cancel", "runs", mail.ID.String(), "cancel")
		})
	}
}
