package web

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// originDocument asks a model, has a person correct it, and works with that in a list.
func originDocument() pipeline.Document {
	const text = `{"semantics": 2, "name": "Offers", "input": [{"name": "letter", "label": "Letter", "type": "text", "required": true}],
	"steps": [
		{"id": "ask", "name": "Read the letter", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Read.", "prompt": "{{ input.letter }}"}},
		{"id": "check", "name": "Check the text", "kind": "review", "with": {"question": "Right?", "people": [{"role": "reviewer"}],
			"editable": [{"field": {"name": "words", "label": "Words", "type": "text"}, "formula": "steps.ask.text"}]}},
		{"id": "all", "name": "Each line", "kind": "each", "with": {"items": "[1, 2]", "at_once": 1, "steps": [
			{"id": "line", "name": "Write the line", "kind": "set", "with": {"values": [{"name": "line", "formula": "steps.check.words + text(item)"}]}}]}},
		{"id": "offer", "name": "Put the offer together", "kind": "set", "with": {"values": [
			{"name": "text", "formula": "steps.all.results[0].line"}, {"name": "heading", "formula": "steps.check.words"}, {"name": "kind", "formula": "'offer'"}]}}]}`
	document, err := pipeline.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return document
}

// originRun is a run of it that has ended, whose reviewer changed the words.
func (s *site) originRun() engine.Run {
	s.t.Helper()
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`)})
	run := s.start(s.home, s.publish(s.home, originDocument()), map[string]string{"letter": hostile})
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, run.ID)
		require.NoError(s.t, err)
		for step := range progress.Waits {
			detail, err := s.reviews.ByStepRun(ctx, tx, step)
			require.NoError(s.t, err)
			_, err = s.engine.DecideReview(ctx, tx, review.Decision{
				Seat: detail.Seats[0].ID, Viewer: review.Viewer{Token: s.secret.SeatToken(detail.Seats[0].ID, detail.Seats[0].Generation)},
				Digest: detail.Digest, Verdict: review.ApproveWithEdits, Edits: map[string]json.RawMessage{"words": json.RawMessage(`"Dear Ms Okoye"`)},
			})
			require.NoError(s.t, err)
		}
		return nil
	})
	s.work()
	return run
}

// The page of a step answers where each of its fields comes from, in the words of the
// people who built the pipeline, back to the input.
func TestStepTellsWhereItsResultComesFrom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.originRun()
	viewer := s.in(tenants.Viewer)
	page := viewer.get(s.at("runs", run.ID.String(), "steps", "offer")).is(http.StatusOK).says(
		"Where does this come from?", "Worked out from “ Results ” of “ Each line ”", "Worked out from “ Words ” of “ Check the text ”", "A fixed value",
		"Further back", "The step ran under v1", "2 items gave results", "from Dear Ms Oduya to Dear Ms Okoye", "Answered by the practice model to the prompt made from “ Letter ” of the input",
		"From the input of the run", "“ Letter ”, given at the start",
	).hides("{{", "$0.")
	lines := page.all("ul", "id", "origin-behind")
	require.Len(t, lines, 1)
	viewer.get(s.at("runs", run.ID.String(), "steps", "ask")).says("Answered by the practice model").hides("Further back")
	viewer.get(s.at("runs", run.ID.String())).hides("Where does this come from?")
	waiting := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "x"})
	s.work()
	viewer.get(s.at("runs", waiting.ID.String(), "steps", "ask")).hides("Where does this come from?")
}

// The answer passes the checks of a browser and of axe on a phone and on a desk, light
// and dark.
func TestTheLookOfOrigins(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	run := s.originRun()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("runs", run.ID.String(), "steps", "offer"))
			p.Press(`#fold-origin summary`)
			p.AwaitElement(`#fold-origin[open]`)
			p.Shot("origin")
			p.Check(t)
		})
	}
}
