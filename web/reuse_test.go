package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// reusingDocument asks a model, and takes an earlier answer to the same.
func reusingDocument(name string) pipeline.Document {
	document := askDocument(name)
	document.Steps[0].With.(*pipeline.AI).Reuse = true
	return document
}

// A step that took an earlier answer says from which run, and what that saved to who may
// see money; a run is started without that on demand.
func TestStepTellsWhoseAnswerItTook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Done."}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 2000, Output: 1000}}})
	id := s.publish(s.home, reusingDocument("Drafts"))
	first := s.start(s.home, id, map[string]string{"topic": hostile})
	s.work()
	second := s.start(s.home, id, map[string]string{"topic": hostile})
	s.work()
	builder, viewer := s.in(tenants.Builder), s.in(tenants.Viewer)
	page := builder.get(s.at("runs", second.ID.String(), "steps", "draft")).is(http.StatusOK).says("Taken from run #1 , saved $0.02.", "Answered by the practice model")
	require.NotEmpty(t, page.all("a", "href", s.at("runs", first.ID.String(), "steps", stepOf(s, first.ID, "draft"))))
	viewer.get(s.at("runs", second.ID.String(), "steps", "draft")).says("Taken from run #1").hides("saved", "$0.")
	viewer.get(s.at("runs", first.ID.String(), "steps", "draft")).hides("Taken from")
	builder.get(s.at("pipelines", id.String())).says("An identical answer that is not older than 7 d is taken instead.")

	start := s.at("pipelines", id.String(), "start")
	form := builder.get(start).follow().is(http.StatusOK).says("Ask everything again?")
	third := builder.post(start, formKeyName, form.field(formKeyName), "topic", hostile, askAgainName, "true").is(http.StatusSeeOther)
	s.work()
	builder.get(third.header.Get("Location") + "/steps/draft").is(http.StatusOK).says("Answered by the practice model").hides("Taken from")
	again := s.at("runs", first.ID.String(), "rerun", "draft")
	asked := builder.get(again).is(http.StatusOK).says("Ask everything again?")
	for _, c := range []struct{ answer, says, hides string }{{"true", "Answered by the practice model", "Taken from"}, {"false", "Taken from run #4", "Working"}} {
		rerun := builder.post(again, formKeyName, asked.field(formKeyName), markName, asked.field(markName), askAgainName, c.answer).is(http.StatusSeeOther)
		s.work()
		builder.get(rerun.header.Get("Location") + "/steps/draft").is(http.StatusOK).says(c.says).hides(c.hides)
		asked = builder.get(again)
	}
	plain := s.publish(s.home, askDocument("Plain drafts"))
	builder.get(s.at("pipelines", plain.String(), "start")).follow().is(http.StatusOK).hides("Ask everything again?")
}

// stepOf is the id of a step's execution in a run.
func stepOf(s *site, run engine.RunID, step string) string {
	s.t.Helper()
	var id string
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `SELECT id::text FROM step_runs WHERE run_id = $1 AND step_id = $2`, run, step).Scan(&id))
	return id
}

// The form and the step pass the checks of a browser and of axe on a phone and on a desk,
// light and dark.
func TestTheLookOfReuse(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Done."}`), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 2000, Output: 1000}}})
	id := s.publish(s.home, reusingDocument("Drafts"))
	s.start(s.home, id, map[string]string{"topic": "a refund"})
	s.work()
	run := s.start(s.home, id, map[string]string{"topic": "a refund"})
	s.work()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("runs", run.ID.String(), "steps", "draft"))
			p.Shot("reuse-step")
			p.Check(t)
			p.Go(s.web.origin + s.at("pipelines", id.String(), "start"))
			p.Shot("reuse-start")
			p.Check(t)
		})
	}
}
