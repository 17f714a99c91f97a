package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// The pages that ask before something is done to runs pass the checks of a browser and of
// axe on a phone and on a desk, light and dark.
func TestTheLookOfConfirmPages(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	first := pipeline.Step{ID: "keep", Name: "Keep the topic", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "topic", Formula: "input.topic"}}}}
	document := mailThenAsk("Press releases, sign-off")
	document.Steps = append([]pipeline.Step{first}, document.Steps...)
	id := s.publish(s.home, document)
	s.calls.say(engine.Reply{Output: []byte(`{"sent": true}`)})
	asks := s.start(s.home, id, map[string]string{"topic": "the winter catalogue"}).ID
	s.work()
	s.calls.say(refused)
	failed := s.start(s.home, id, map[string]string{"topic": hostile}).ID
	s.work()
	waits := s.start(s.home, s.publish(s.home, waitingDocument("Payments")), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Builder)
	bulk := b.post(s.at("bulk"), append(b.get(s.at("bulk")+"?state=failed").seen(), "action", "retry", "state", "failed")...).is(http.StatusSeeOther).header.Get("Location")
	again := b.post(s.at("runs", asks.String(), "rerun", "ask"), b.get(s.at("runs", asks.String(), "rerun", "ask")).seen()...).is(http.StatusSeeOther).header.Get("Location")
	s.work()
	require.NotEmpty(t, again)
	pages := map[string]string{
		"retry": s.at("runs", failed.String(), "retry"), "skip": s.at("runs", failed.String(), "skip", s.stepOf(failed, "tell").ID.String()),
		"answer": s.at("runs", waits.String(), "answer", s.stepOf(waits, "paid").ID.String()),
		"rerun":  s.at("runs", asks.String(), "rerun", "tell"), "rerun-run": again, "failed-run": s.at("runs", failed.String()),
		"bulk": s.at("bulk") + "?state=failed", "bulk-progress": bulk, "start-once": s.at("pipelines", id.String(), "start"),
	}
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Builder)
			for name, path := range pages {
				p.Go(s.web.origin + path)
				p.Shot("operation-" + name)
				p.Check(t)
			}
		})
	}
}
