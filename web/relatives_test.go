package web

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// relativesDocument handles failures in each way, sends an event, and runs another
// pipeline.
func relativesDocument(other pipeline.ID) pipeline.Document {
	text := fmt.Sprintf(`{"semantics": 3, "name": "Supplier invoices", "run_name": "{{ input.topic }}",
	"input": [{"name": "topic", "label": "Topic", "type": "text", "required": true}],
	"steps": [
		{"id": "rate", "name": "Look up the rate of the day", "kind": "set", "with": {"values": [{"name": "rate", "formula": "1 / 0"}]},
			"on_error": [{"do": "default", "default": {"rate": 1}}]},
		{"id": "check", "name": "Check the supplier", "kind": "branch", "with": {"cases": [{"id": "new", "name": "New supplier", "when": "true", "steps": [
			{"id": "hold", "name": "Hold for the regulator", "kind": "stop", "with": {"outcome": "raise", "exception": "regulatory_hold", "message": "This supplier is on the list of {{ input.topic }}."}}]}]},
			"on_error": [{"classes": ["regulatory_hold"], "do": "steps", "steps": [
				{"id": "note", "name": "Write the reason down", "kind": "set", "with": {"values": [{"name": "why", "formula": "error.message"}]}}]}]},
		{"id": "tell", "name": "Tell the warehouse", "kind": "emit", "with": {"name": "invoice checked", "key": "{{ input.topic }}"}},
		{"id": "sign", "name": "Have it signed off", "kind": "pipeline", "with": {"pipeline": %q, "wait": true, "input": [{"name": "topic", "formula": "input.topic"}]}},
		{"id": "sum", "name": "Sum it up", "kind": "set", "with": {"values": [{"name": "y", "formula": "1"}]}}]}`, other)
	document, err := pipeline.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return document
}

// relativesRun is a run that waits for one that waits for a person.
func (s *site) relativesRun(topic string) (above, below engine.Run) {
	s.t.Helper()
	other := s.publish(s.home, askingDocument("Sign-off"))
	above = s.start(s.home, s.publish(s.home, relativesDocument(other)), map[string]string{"topic": topic})
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		view, err := engine.ViewOf(ctx, tx, above.ID, engine.StepRunID{})
		require.NoError(s.t, err)
		related, err := engine.RelativesOf(ctx, tx, view.Run, view.Steps)
		for _, one := range related.Below {
			below = one
		}
		return err
	})
	require.False(s.t, below.ID.IsZero())
	return above, below
}

func TestRunsLeadToThoseAboveAndBelow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	above, below := s.relativesRun("Nordwind")
	b := s.in(tenants.Owner)
	page := b.get(s.at("runs", above.ID.String()))
	page.says("Failed, handled")
	page.says("It went on with the value set for that.")
	page.says("This supplier is on the list of Nordwind.")
	page.says("Write the reason down")
	page.says("is under way")
	require.NotEmpty(t, page.all("a", "href", s.at("runs", below.ID.String())))
	require.NotEmpty(t, b.get(s.at("runs", below.ID.String())).all("a", "href", s.at("runs", above.ID.String(), "steps", below.ParentStep.String())))
	b.get(s.at("runs", above.ID.String(), "cancel")).says("1 run that it waits for is cancelled with it")
	list := b.get(s.at("pipelines", above.PipelineID.String()))
	list.says("If it fails, it goes on with a set value.")
	list.says("If it fails by “regulatory hold”, it does the steps below.")
	list.says("Runs the pipeline “Sign-off” and waits for its result")
	list.says("Sends the event “invoice checked”")
}

// Pages with handled failures and with runs of runs pass the checks of a browser and of
// axe on a phone and on a desk, light and dark.
func TestTheLookOfRunsOfRuns(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	above, below := s.relativesRun("Nordwind")
	hard, _ := s.relativesRun(hostile)
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
			look("relatives-above", s.at("runs", above.ID.String()))
			look("relatives-caught", s.at("runs", above.ID.String(), "steps", "check"))
			look("relatives-below", s.at("runs", below.ID.String()))
			look("relatives-hostile", s.at("runs", hard.ID.String()))
			look("relatives-cancel", s.at("runs", above.ID.String(), "cancel"))
			look("relatives-outline", s.at("pipelines", above.PipelineID.String()))
		})
	}
}
