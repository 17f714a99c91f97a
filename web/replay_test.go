package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// twoModels are set up beside each other; the second is a real one.
func twoModels(c *Config) {
	c.Models = []Model{{ID: "practice/standard", Name: "Practice model", Practice: true}, {ID: "openai/gpt-5.6-terra", Name: "GPT-5.6 Terra"}, {ID: "openai/gpt-6-astra", Name: "GPT-6 Astra"}}
}

// answeredBefore is a run whose first step asked the practice model.
func (s *site) answeredBefore(text string) engine.RunID {
	s.t.Helper()
	s.calls.say(engine.Reply{Output: []byte(`{"text":"` + text + `"}`), Bill: triaged.Bill})
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "Refund of Ms Oduya"})
	s.work()
	return run.ID
}

// replays lets a worker make the replays that wait.
func (s *site) replays() {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	worker := s.engine.NewWorker("replays")
	done := make(chan struct{})
	go func() { worker.RunReplays(ctx); close(done) }()
	require.Eventually(s.t, func() bool {
		open := 0
		require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `SELECT count(*) FROM replays WHERE ended_at IS NULL`).Scan(&open))
		return open == 0
	}, 20*time.Second, 20*time.Millisecond)
	stop()
	<-done
}

// From the panel of a finished step a builder puts it to another model: the page says what
// that may cost, the answers stand side by side with their differences, and others look.
func TestStepIsPutToAnotherModelOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoModels)
	run := s.answeredBefore("Dear Ms Oduya, we refund you today.")
	step := s.stepOf(run, "draft")
	builder := s.in(tenants.Builder)
	panel := builder.get(s.at("runs", run.String(), "steps", "draft")).is(http.StatusOK)
	require.NotNil(t, panel.byTestID("replay-step"))

	path := s.at("runs", run.String(), "replay", step.ID.String())
	ask := builder.get(path).is(http.StatusOK).says("Nothing in the run changes", "counts as a test", "Costs at most $", "GPT-5.6 Terra", "in pretend dollars")
	ask.hides("GPT-6 Astra") // whose price is not known
	form := ask.seen()
	builder.post(path, append(form, "model", "openai/gpt-6-astra")...).is(http.StatusUnprocessableEntity).says("Choose one of the models below.")
	builder.post(path, append(form, "model", "nobody/knows")...).is(http.StatusUnprocessableEntity)
	to := builder.post(path, append(form, "model", "openai/gpt-5.6-terra")...).is(http.StatusSeeOther)
	again := builder.post(path, append(form, "model", "openai/gpt-5.6-terra")...).is(http.StatusSeeOther)
	require.Equal(t, to.header.Get("Location"), again.header.Get("Location"), "a form sent twice asks once")
	to.follow().is(http.StatusOK).says("as soon as a worker is free")

	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya, we refund you tomorrow. <b>"}`),
		Bill: &engine.Bill{Model: "gpt-5.6-terra", Tokens: ledger.Tokens{Input: 1000, Output: 100}, Latency: 2 * time.Second}})
	s.replays()
	page := to.follow().is(http.StatusOK).says("Answers", "today.", "tomorrow. <b>", "1,000 tokens", "100 tokens", "$0.0032", "2 s")
	require.Len(t, page.all("ins", "", ""), 1)
	require.Len(t, page.all("del", "", ""), 1)
	s.in(tenants.Viewer).get(strings.TrimPrefix(to.header.Get("Location"), siteURL)).is(http.StatusOK).hides("$0.0032")
	s.in(tenants.Reviewer).get(path).is(http.StatusForbidden)
	require.Equal(t, []string{"step.replayed"}, s.hands(run))
	builder.get(s.at("runs", run.String(), "steps", "draft")).says("Draft the text").hides("$0.0032")
	builder.get(path).says("was asked by")
}
