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

// A run is done again from a step on, with another input; what would go out twice is
// listed and left out where that is ticked.
func TestRerunOfARun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := mailThenAsk("Sign-off")
	first := pipeline.Step{ID: "keep", Name: "Keep the topic", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "topic", Formula: "input.topic"}}}}
	document.Steps = append([]pipeline.Step{first}, document.Steps...)
	s.calls.say(engine.Reply{Output: []byte(`{"sent": true}`)})
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Builder)
	panel := b.get(s.at("runs", run.String(), "steps", "tell")).is(http.StatusOK)
	path := attr(panel.byTestID("rerun-step"), "href")
	asked := b.get(path).is(http.StatusOK).says("Run again from “Tell the customer”?", "Taken over and not done again: “Keep the topic”",
		"Done again : “Tell the customer” and “Ask the reviewer”", "Do not send again", "1 e-mail sent", "Saves $0.00", "as the original did")
	b.post(path, append(asked.seen(), inputName, `{"topic": "a refund"`)...).is(http.StatusUnprocessableEntity).says("is not JSON")
	b.post(path, append(asked.seen(), inputName, `[1]`)...).is(http.StatusUnprocessableEntity).says("The input is a record")
	form := append(asked.seen(), inputName, `{"topic": "another"}`, outputName+"keep", `{"topic": "by hand"}`, silentName, "tell")
	to := b.post(path, form...).is(http.StatusSeeOther).header.Get("Location")
	require.NotEqual(t, s.at("runs", run.String()), to)
	require.Equal(t, to, b.post(path, form...).is(http.StatusSeeOther).header.Get("Location"), "the same form is the same run")
	s.work()
	b.get(to).is(http.StatusOK).says("another", "Reused", "Waiting for a person", "an earlier run", "again from “ Tell the customer ”")
	b.get(s.at("runs", run.String())).says("ran it again from “ Tell the customer ”", "another run")
	require.Equal(t, engine.StepSkipped, s.stepOf(s.newestRun(), "tell").State, "the mail went out once")
	b.get(path + "?version=newest").is(http.StatusOK).says("the newest version")
	b.get(s.at("runs", run.String(), "rerun", "nothing")).is(http.StatusNotFound)
}

// One item of a list is corrected on a page that says what becomes of the others.
func TestCorrectionOfAnItem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askingDocument("Numbers")
	document.Semantics = 2
	document.Steps = []pipeline.Step{{ID: "all", Name: "For each number", Kind: pipeline.KindEach, With: &pipeline.Each{
		Items: "[1, 0, 3]", AtOnce: 1, MaxFailed: 1, Result: "steps.part.x",
		Steps: []pipeline.Step{{ID: "part", Name: "Divide", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "x", Formula: "6 / item"}}}}},
	}}}
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": "a refund"}).ID
	s.work()
	require.Equal(t, engine.RunCompleted, s.state(run))
	var item string
	require.NoError(t, s.db.Super(t).QueryRow(t.Context(), `SELECT id::text FROM step_runs WHERE run_id = $1 AND kind = 'item' AND turn = 1`, run).Scan(&item))
	b := s.in(tenants.Builder)
	path := attr(b.get(s.at("runs", run.String(), "parts", item)).is(http.StatusOK).byTestID("correct-item"), "href")
	asked := b.get(path).is(http.StatusOK).says("Correct item 2 of “For each number”?", "2 other items that are done are taken over", "made anew from all items")
	b.post(path, append(asked.seen(), valueName, `2 2`)...).is(http.StatusUnprocessableEntity).says("is not JSON")
	to := b.post(path, append(asked.seen(), valueName, `2`)...).is(http.StatusSeeOther).header.Get("Location")
	s.work()
	b.get(to).is(http.StatusOK).says("Done", "an earlier run")
	var results string
	require.NoError(t, s.db.Super(t).QueryRow(t.Context(), `
		SELECT convert_from(v.content, 'UTF8') FROM runs r JOIN step_runs s ON s.run_id = r.id AND s.kind = 'each' JOIN stored_values v ON v.digest = s.output_digest
		WHERE r.origin_run = $1`, run).Scan(&results))
	require.JSONEq(t, `{"failed": [], "results": [6, 3, 2]}`, results)
}

func (s *site) newestRun() engine.RunID {
	s.t.Helper()
	return s.runs()[0].Run.ID
}

// A key of one's own makes a start happen once; other input under it is refused, and the
// first run is named.
func TestStartOnlyOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	b := s.in(tenants.Builder)
	path := s.at("pipelines", id.String(), "start")
	start := func(topic string) *page {
		form := b.get(path).follow().is(http.StatusOK)
		return b.post(path, formKeyName, attr(form.all("input", "name", formKeyName)[0], "value"), "topic", topic, onceName, "order 77")
	}
	to := start("a refund").is(http.StatusSeeOther).header.Get("Location")
	start("a refund").leadsTo(to)
	start("another").is(http.StatusConflict).says("started before, with other input", "#1")
	require.Len(t, s.runs(), 1)
}
