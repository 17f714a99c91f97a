package web

import (
	"testing"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// The pages about versions pass the checks of a browser and of axe on a phone and on a
// desk, light and dark.
func TestTheLookOfVersions(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	id := s.publish(s.home, askingDocument("Press releases, sign-off"))
	run := s.start(s.home, id, map[string]string{"topic": "the winter catalogue"})
	s.start(s.home, id, map[string]string{"topic": hostile})
	s.work()
	s.republish(s.home, id, longer(askingDocument("Press releases, sign-off")))
	changed := askingDocument("Press releases, sign-off")
	changed.Steps[0].With.(*pipeline.Review).Question = "Really?"
	s.republish(s.home, id, changed)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			look := func(name, path string) {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
			look("versions", s.at("pipelines", id.String(), "versions"))
			look("move", s.at("runs", run.ID.String(), "move")+"?to=2")
			look("move-misfit", s.at("runs", run.ID.String(), "move"))
			look("move-run", s.at("runs", run.ID.String()))
		})
	}
}
