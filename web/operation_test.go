package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// mailThenAsk sends a mail and then asks.
func mailThenAsk(name string) pipeline.Document {
	document := askingDocument(name)
	mail := pipeline.Step{ID: "tell", Name: "Tell the customer", Kind: pipeline.KindEmail, With: &pipeline.Email{
		To: []string{"kim@example.com"}, Subject: "Hello", Body: "Hello.",
	}}
	document.Steps = append([]pipeline.Step{mail}, document.Steps...)
	return document
}

// waitingDocument waits for an event, and then for a time.
func waitingDocument(name string) pipeline.Document {
	document := askingDocument(name)
	document.Semantics = 2
	document.Steps = []pipeline.Step{
		{ID: "paid", Name: "Wait for the payment", Kind: pipeline.KindEvent, With: &pipeline.Event{Name: "paid"}},
		{ID: "keep", Name: "Keep the sum", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "sum", Formula: "steps.paid.data.sum"}}}},
	}
	return document
}

// refused is a reply of a mail server that will say the same again.
var refused = engine.Reply{Failure: &engine.Failure{Class: "mail_refused", Message: "The mail server does not know this address."}}

// form is what a confirm page carries.
func (p *page) seen() []string {
	return []string{formKeyName, attr(p.all("input", "name", formKeyName)[0], "value"), markName, attr(p.all("input", "name", markName)[0], "value")}
}

func (s *site) stepOf(run engine.RunID, step string) engine.StepRun {
	s.t.Helper()
	var found engine.StepRun
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, run)
		for _, row := range progress.Steps {
			if row.StepID == step {
				found = row
			}
		}
		return err
	})
	require.False(s.t, found.ID.IsZero(), "step %q has not begun", step)
	return found
}

func (s *site) hands(run engine.RunID) []string {
	s.t.Helper()
	var actions []string
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "run", ID: run}, tenants.AuditID{})
		for _, entry := range entries {
			actions = append(actions, entry.Action)
		}
		return err
	})
	return actions
}

// A failed step is tried again by a confirmed press, which says before what it means; the
// form sent again does nothing, and one that was opened before says what moved.
func TestRetryOfARun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(refused)
	run := s.start(s.home, s.publish(s.home, mailThenAsk("Sign-off")), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Builder)
	path := s.at("runs", run.String(), "retry")
	b.get(s.at("runs", run.String())).is(http.StatusOK).byTestID("retry-run")
	asked := b.get(path).is(http.StatusOK).says("Try the failed step again?", "Tell the customer begins anew", "does not go twice", "v1 and the input stay the same")
	stale := b.get(path).seen()
	for range 2 {
		b.post(path, asked.seen()...).leadsTo(s.at("runs", run.String()))
	}
	require.Equal(t, []string{"run.retried"}, s.hands(run))
	b.post(path, stale...).is(http.StatusConflict).says("This run has not failed")
	s.calls.say(refused)
	s.work()
	b.post(path, stale...).is(http.StatusConflict).says("Nothing was done", "Try the failed step again?")
	require.Equal(t, engine.RunFailed, s.state(run))
	b.post(path, b.get(path).seen()...).is(http.StatusSeeOther)
	s.calls.say(engine.Reply{Output: []byte(`{}`)})
	s.work()
	b.get(s.at("runs", run.String())).says("Waiting for a person", "had the failed step tried again")
	b.get(path).is(http.StatusConflict).says("This run has not failed")
	require.Empty(t, s.in(tenants.Viewer).get(s.at("runs", run.String())).all("", "data-testid", "retry-run"))
}

// A step is skipped with a value; one that is no JSON comes back with what is wrong in it.
func TestSkipOfAStep(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(refused)
	run := s.start(s.home, s.publish(s.home, mailThenAsk("Sign-off")), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Builder)
	panel := b.get(s.at("runs", run.String(), "steps", "tell")).is(http.StatusOK)
	path := attr(panel.byTestID("skip-step"), "href")
	asked := b.get(path).is(http.StatusOK).says("Skip “Tell the customer”?", "It failed, and is not tried again", "No later step reads")
	b.post(path, append(asked.seen(), valueName, `{"sent": `)...).is(http.StatusUnprocessableEntity).says("is not JSON")
	b.post(path, append(asked.seen(), valueName, `{}`)...).leadsTo(s.at("runs", run.String()))
	s.work()
	b.get(s.at("runs", run.String())).says("Waiting for a person", "skipped the step “ Tell the customer ”")
	b.get(s.at("runs", run.String(), "steps", "tell")).says("Skipped by")
	b.get(path).is(http.StatusConflict).says("cannot be skipped now")

	asking := s.stepOf(run, "ask")
	path = s.at("runs", run.String(), "skip", asking.ID.String())
	asked = b.get(path).is(http.StatusOK).says("Nobody is asked any more")
	b.post(path, append(asked.seen(), valueName, `{"verdict": "approved"}`)...).leadsTo(s.at("runs", run.String()))
	s.work()
	require.Equal(t, engine.RunCompleted, s.state(run))
	require.Equal(t, []string{"step.skipped", "step.skipped"}, s.hands(run))
}

// A wait for an event is answered with data, by a person who is named.
func TestAnswerOfAWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, waitingDocument("Payments")), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Admin)
	path := attr(b.get(s.at("runs", run.String())).is(http.StatusOK).byTestID("answer-wait"), "href")
	asked := b.get(path).is(http.StatusOK).says("Answer for the event “paid”?", "ended the wait by hand", "Only this run goes on")
	b.post(path, append(asked.seen(), valueName, `{sum: 1}`)...).is(http.StatusUnprocessableEntity).says("Line 1, character 2 is not JSON")
	for range 2 {
		b.post(path, append(asked.seen(), valueName, `{"sum": 12.50}`)...).leadsTo(s.at("runs", run.String()))
	}
	s.work()
	require.Equal(t, engine.RunCompleted, s.state(run))
	require.Equal(t, []string{"wait.answered"}, s.hands(run))
	b.get(s.at("runs", run.String())).says("ended by hand the wait of “ Wait for the payment ”")
	b.get(path).is(http.StatusConflict)
}
