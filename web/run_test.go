package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// triaged answers what the steps of the template about customer mail ask a model.
var triaged = engine.Reply{
	Output: []byte(`{"topic":"damage","urgency":"high","order_number":"9007199254740993","wish":"A new lid.","language":"English","reply":"Dear Ms Oduya,\nwe send you a new lid today."}`),
	Note:   "practice answer, not read from your document",
	Bill:   &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 12_400, Output: 310}, Latency: 3 * time.Second},
}

// overloaded is a try that may be made again.
var overloaded = engine.Reply{Retryable: true, RetryAfter: 5 * time.Minute,
	Failure: &engine.Failure{Class: "overloaded", Message: "The model is overloaded.", Detail: "503 try <b>later</b>"}}

// askDocument asks a model once.
func askDocument(name string) pipeline.Document {
	document := askingDocument(name)
	document.Steps = []pipeline.Step{
		{ID: "draft", Name: "Draft the text", Kind: pipeline.KindAI, With: &pipeline.AI{
			Models: []string{"practice/standard"}, Instructions: "Write.", Prompt: "{{ input.topic }}",
			Answer: []pipeline.Field{{Name: "text", Label: "The text", Type: pipeline.TypeText, Required: true}},
		}},
		{ID: "count", Name: "Count the words", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "n", Formula: `size(steps.draft.text)`}}}},
	}
	document.Result = []pipeline.Value{{Name: "text", Formula: "steps.draft.text"}, {Name: "length", Formula: "steps.count.n"}}
	return document
}

// standings are a run for each way in which a run can stand, by standing.
func standings(s *site) map[engine.StandingState]engine.RunID {
	s.t.Helper()
	asks, drafts := s.publish(s.home, askingDocument("Sign-off")), s.publish(s.home, askDocument("Drafts"))
	begin := func(id pipeline.ID) engine.RunID {
		return s.start(s.home, id, map[string]string{"topic": "Refund of Ms Oduya"}).ID
	}
	super := s.db.Super(s.t)
	change := func(sql string, run engine.RunID) {
		_, err := super.Exec(s.t.Context(), sql, run)
		require.NoError(s.t, err)
	}
	all := map[engine.StandingState]engine.RunID{}

	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`), Bill: triaged.Bill})
	all[engine.StandingCompleted] = begin(drafts)
	all[engine.StandingPerson], all[engine.StandingWaiting], all[engine.StandingPaused], all[engine.StandingCancelled] = begin(asks), begin(asks), begin(asks), begin(asks)
	all[engine.StandingFailed] = begin(s.publish(s.home, failingDocument("Counting")))
	s.work()
	s.calls.say(overloaded)
	all[engine.StandingRetrying] = begin(drafts)
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var nothing ledger.Micros
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(s.home.ID), Funds: ledger.Pretend, Limit: &nothing})
	})
	all[engine.StandingCapped] = begin(drafts)
	s.work()
	all[engine.StandingQueued] = begin(drafts)
	all[engine.StandingRunning] = begin(drafts)

	// What no kind of step of today leads to, and what only lasts while a call is made.
	change(`UPDATE waits SET kind = 'event', event_name = 'paid', due_at = now() + interval '3 days' WHERE run_id = $1`, all[engine.StandingWaiting])
	change(`UPDATE runs SET state = 'paused' WHERE id = $1`, all[engine.StandingPaused])
	change(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state) SELECT tenant_id, gen_random_uuid(), id, 'draft', 'ai', 'running' FROM runs WHERE id = $1`, all[engine.StandingRunning])
	s.in(tenants.Builder).post(s.at("runs", all[engine.StandingCancelled].String(), "cancel")).is(http.StatusSeeOther)
	return all
}

// However a run stands, its page says so in the tab, in the sentence, and on the step
// that it is about; and lists say the same.
func TestRunPageOfEveryStanding(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := standings(s)
	says := map[engine.StandingState][]string{
		engine.StandingFailed:    {"Failed: Refund", "Failed at step 1 “Count the words”", "This divides by zero"},
		engine.StandingCapped:    {"Stopped by the cap: Refund", "before step 1 “Draft the text”", "allows no AI calls"},
		engine.StandingPerson:    {"Waiting: Refund", "reviewer", "Shall we publish Refund of Ms Oduya?", "There is no deadline"},
		engine.StandingRetrying:  {"Retrying: Refund", "Retrying step 1 “Draft the text”", "try 2 of 5 begins in 4 min", "The model is overloaded.", "Retrying, 2 of 5"},
		engine.StandingWaiting:   {"Waiting: Refund", "Waiting for the event “paid” at", "Ask the reviewer", "until", "Send the event"},
		engine.StandingRunning:   {"Running: Refund", "Working on step 1 “Draft the text”", "Then comes", "step 2 “Count the words”"},
		engine.StandingQueued:    {"Queued: Refund", "Queued", "It starts as soon as a worker is free"},
		engine.StandingPaused:    {"Paused: Refund", "Nothing begins until somebody resumes it"},
		engine.StandingCompleted: {"Done: Refund", "Nothing is left to do", "Result of the run", "Dear Ms Oduya"},
		engine.StandingCancelled: {"Cancelled: Refund", "Cancelled by Builder", "No further step runs"},
	}
	b := s.in(tenants.Builder)
	list := b.get(s.at("runs")).is(http.StatusOK)
	for standing, want := range says {
		p := b.get(s.at("runs", all[standing].String())).is(http.StatusOK)
		require.True(t, strings.HasPrefix(p.title(), want[0]), p.title())
		p.says(want[1:]...)
		require.Equal(t, "Refund of Ms Oduya", p.heading())
		ended := standing == engine.StandingFailed || standing == engine.StandingCompleted || standing == engine.StandingCancelled
		require.Equal(t, ended, !strings.Contains(p.body, "/live"), "%s: an open run is followed, an ended one is not", standing)
		require.Equal(t, ended, len(p.all("", "data-testid", "cancel-run")) == 0)
		require.NotEmpty(t, append(p.all("tr", "id", "step-count"), p.all("tr", "id", "step-ask")...), "%s: also steps that are to come are drawn", standing)
		row := list.all("tr", "id", "run-"+all[standing].String())
		require.Len(t, row, 1)
		require.Contains(t, textOf(row[0]), badgeOn(p), standing)
	}
}

// badgeOn is the badge at the head of a page.
func badgeOn(p *page) string {
	for node := range p.doc.Descendants() {
		if node.Data == "span" && strings.HasPrefix(attr(node, "class"), "badge") {
			return textOf(node)
		}
	}
	return ""
}

// The page of a run that stopped somewhere shows the rest of the way, and of a decision
// only the way that was taken.
func TestTimelineFollowsTheProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(triaged)
	run := s.sampleRun("customer-email")
	p := s.in(tenants.Owner).get(s.at("runs", run.ID.String())).is(http.StatusOK)
	var order []string
	for node := range p.doc.Descendants() {
		if node.Data == "tr" && attr(node, "data-status") != "" {
			order = append(order, attr(node, "id")+" "+attr(node, "data-status"))
		}
	}
	require.Equal(t, []string{
		"step-triage done", "step-case_facts done", "step-route done", "step-urgent_terms done", "step-warn_shift done",
		"step-draft done", "step-approve person", "step-outcome queued", "step-send_reply queued", "step-handover queued", "step-tell_team queued",
	}, order)
	p.says("Took “", "Urgent, or something is broken", "practice", "espresso-machine.eml")
	p.says("of the run’s", "$0.50", "pretend cap")
}

// A step's panel has its own address, by the name of the step or of its execution, and
// tells what went in and out, with its price.
func TestStepPanel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(triaged)
	run := s.sampleRun("customer-email")
	owner := s.in(tenants.Owner)
	p := owner.get(s.at("runs", run.ID.String(), "steps", "triage")).is(http.StatusOK)
	p.says("Step 1 · Ask AI", "Practice answer, not read from your document.", "Damaged or faulty goods", "9007199254740993",
		"Written by AI", "12,400 tokens", "310 tokens", "Answered in", "Order number", "You sort e-mails")
	require.Equal(t, "Model and cost", strings.Fields(textOf(p.all("details", "id", "fold-money")[0]))[0]+" and cost")
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, run.ID)
		require.NoError(t, err)
		byRow := owner.get(s.at("runs", run.ID.String(), "steps", progress.Steps[0].ID.String())).is(http.StatusOK)
		require.Equal(t, textOf(p.all("aside", "id", "panel")[0]), textOf(byRow.all("aside", "id", "panel")[0]))
		return err
	})
	owner.get(s.at("runs", run.ID.String(), "steps", "send_reply")).is(http.StatusOK).says("It has not begun yet.", "What this step does")
	owner.get(s.at("runs", run.ID.String(), "steps", "no_such_step")).is(http.StatusNotFound)
	// Who may not see money sees none, neither in the panel nor on the timeline.
	s.in(tenants.Reviewer).get(s.at("runs", run.ID.String(), "steps", "triage")).is(http.StatusOK).hides("Model and cost", "pretend cap", "$0.0")
}

func TestFailedStepKeepsTheOtherSidesWordsApart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	refused := overloaded
	refused.Retryable = false
	s.calls.say(refused)
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": hostile})
	s.work()
	p := s.in(tenants.Owner).get(s.at("runs", run.ID.String())).is(http.StatusOK).says("The model is overloaded.", "Technical detail", "503 try <b>later</b>")
	p.hides("<b>later", hostile)
}

// A person who is asked finds the way to answer on the run's page; others do not.
func TestReviewOnTheRunPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "the catalogue"})
	s.work()
	asked := s.in(tenants.Reviewer).get(s.at("runs", run.ID.String())).is(http.StatusOK).says("Waiting for you", "Who was asked", "Has not answered yet")
	require.Contains(t, attr(asked.byTestID("review"), "href"), s.at("reviews"))
	others := s.in(tenants.Viewer).get(s.at("runs", run.ID.String())).is(http.StatusOK)
	require.Empty(t, others.all("", "data-testid", "review"))
	require.Empty(t, others.all("", "data-testid", "cancel-run"), "a viewer cannot cancel")
}

// The time of a run divides into what it did, and nothing counts twice.
func TestTimeOfARunIsDivided(t *testing.T) {
	t.Parallel()
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	ended := func(n int) *time.Time { at := minute(n); return &at }
	node := &pipeline.Node{Step: &pipeline.Step{Kind: pipeline.KindAI}}
	all := []passage{
		// One try that failed, a pause, one that was good, from minute 0 to 10.
		{Node: node, Step: &engine.StepRun{State: engine.StepDone, Attempt: 2, CreatedAt: minute(0), EndedAt: ended(10)},
			Waits: []engine.Wait{{Kind: engine.WaitRetry, OpenedAt: minute(4), ClosedAt: ended(6)}},
			Tries: []engine.Attempt{{Number: 1, Outcome: engine.AttemptFailed, BeganAt: minute(0), EndedAt: minute(4)}, {Number: 2, Outcome: engine.AttemptDone, BeganAt: minute(6), EndedAt: minute(10)}}},
		// A person from 11 to 31; at the same time work from 20 to 25.
		{Node: node, Step: &engine.StepRun{State: engine.StepDone, CreatedAt: minute(11), EndedAt: ended(31)},
			Waits: []engine.Wait{{Kind: engine.WaitReview, OpenedAt: minute(11), ClosedAt: ended(31)}}},
		{Node: node, Step: &engine.StepRun{State: engine.StepDone, CreatedAt: minute(20), EndedAt: ended(25)}},
		// The cap holds the last one until now.
		{Node: node, Step: &engine.StepRun{State: engine.StepWaiting, CreatedAt: minute(31)}, Wait: &engine.Wait{Kind: engine.WaitCap},
			Waits: []engine.Wait{{Kind: engine.WaitCap, OpenedAt: minute(31)}}},
	}
	spent := divide(all, minute(0), minute(40))
	require.Equal(t, spentTime{
		"running": 9 * time.Minute, "retrying": 6 * time.Minute, "person": 15 * time.Minute, "cap": 9 * time.Minute, "queued": time.Minute,
	}, spent)
	var words []string
	var shares float64
	for _, part := range spent.split() {
		words = append(words, part.Words)
		shares += part.Share
	}
	require.Equal(t, []string{"Working 9 min", "Retrying 6 min", "Waiting for a person 15 min", "Stopped by the cap 9 min", "Between steps 1 min"}, words)
	require.InDelta(t, 100, shares, 0.01)
}
