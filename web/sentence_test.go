package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

var (
	noon   = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	berlin = func() *time.Location {
		zone, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			panic(err)
		}
		return zone
	}()
	ana = tenants.NewID[tenants.User]()
)

// at is a moment before noon, or after it if negative.
func at(before time.Duration) time.Time { return noon.Add(-before) }

func dueIn(in time.Duration) *time.Time { t := noon.Add(in); return &t }

// told is a line about the third step of a run that began an hour before noon.
func told(standing engine.StandingState, since time.Duration, change ...func(*news)) news {
	n := news{
		Line: engine.Line{
			Run: engine.Run{Name: "Refund", CreatedAt: at(time.Hour)}, Standing: standing,
			StepID: "draft", StepName: "Draft the reply", Since: at(since), Attempt: 1,
		},
		Number: "3", Next: "step 4 “Send the reply”", Tries: 5, Me: ana,
	}
	for _, adapt := range change {
		adapt(&n)
	}
	return n
}

func asks(dueAt *time.Time, users ...tenants.UserID) func(*news) {
	return func(n *news) {
		names := []string{"Ana Berger", "Ben Okonkwo", "Chi Nguyen", "Dora", "Ed", "Flo"}
		n.Asked = []review.Asked{{Title: "Refund €420?", DueAt: dueAt, OpenedAt: n.Since, Names: names[:len(users)], Users: users}}
	}
}

func waits(kind engine.WaitKind, dueAt *time.Time, reason string) func(*news) {
	return func(n *news) { n.Wait, n.Due, n.Reason = kind, dueAt, reason }
}

func event(name, key string) func(*news) {
	return func(n *news) { n.EventName, n.EventKey = name, key }
}

func last(n *news) { n.Next = "" }

func atNoStep(n *news) { n.StepID, n.StepName, n.Number, n.Next = "", "", "", "" }

func fresh(n *news) { atNoStep(n); n.Fresh = true }

var somebody = tenants.UserID{1}

// A run says what it waits for, since when, and what happens next, however it stands.
func TestSentenceOfEveryStanding(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		news             news
		sentence, reason string
	}{
		{"queued", told(engine.StandingQueued, 20*time.Second, fresh),
			"Queued, for 20 s. It starts as soon as a worker is free.",
			"Starts as soon as a worker is free."},
		{"queued behind others", told(engine.StandingQueued, 20*time.Second, fresh, func(n *news) { n.Run.State = engine.RunQueued }),
			"Queued, for 20 s. It starts when an earlier run of this pipeline has ended.",
			"Starts when an earlier run of this pipeline has ended."},
		{"pausing", told(engine.StandingPaused, time.Minute, func(n *news) { n.Run.State = engine.RunPausing }),
			"Pausing: the steps under way are finished first. Then nothing begins until somebody resumes it.",
			"The steps under way are finished first."},
		{"between two steps", told(engine.StandingQueued, time.Minute, atNoStep),
			"Ready to go on since today 12:59 CET. The next step begins as soon as a worker is free.",
			"Ready since today 12:59; goes on as soon as a worker is free."},
		{"woken", told(engine.StandingQueued, time.Minute),
			"Ready to go on since today 12:59 CET: what step 3 “Draft the reply” waited for is here. It goes on as soon as a worker is free.",
			"Ready since today 12:59; goes on as soon as a worker is free."},
		{"running", told(engine.StandingRunning, 4*time.Second),
			"Working on step 3 “Draft the reply”, for 4 s. Then comes step 4 “Send the reply”.",
			"Step 3 “Draft the reply”, for 4 s."},
		{"running, the last step", told(engine.StandingRunning, 4*time.Second, last),
			"Working on step 3 “Draft the reply”, for 4 s. After it the run is done.",
			"Step 3 “Draft the reply”, for 4 s."},
		{"the reader is asked", told(engine.StandingPerson, 130*time.Minute, asks(dueIn(3*time.Hour), ana)),
			"Waiting for you to answer “Refund €420?”, for 2 h 10 min, due today 16:00 CET; then the run fails. After the answer comes step 4 “Send the reply”.",
			"You are asked: “Refund €420?”. Due today 16:00, then the run fails."},
		{"others are asked", told(engine.StandingPerson, time.Minute, asks(nil, somebody, somebody)),
			"Waiting for Ana Berger or Ben Okonkwo to answer “Refund €420?”, for 1 min. There is no deadline. After the answer comes step 4 “Send the reply”.",
			"Ana Berger and Ben Okonkwo are asked: “Refund €420?”, for 1 min."},
		{"many are asked, silence approves", told(engine.StandingPerson, time.Minute, last, asks(dueIn(24*time.Hour), somebody, somebody, somebody, somebody, somebody, ana),
			func(n *news) { n.Silence = pipeline.DeadlineApprove }),
			"Waiting for you, Ana Berger, Ben Okonkwo, Chi Nguyen or 2 other people to answer “Refund €420?”, for 1 min, due tomorrow 13:00 CET; then it counts as approved, by timeout. ",
			"You, Ana Berger, Ben Okonkwo, Chi Nguyen and 2 other people are asked: “Refund €420?”. Due tomorrow 13:00, then it counts as approved, by timeout."},
		{"the deadline has passed", told(engine.StandingPerson, time.Hour, last, asks(dueIn(-time.Second), somebody), func(n *news) { n.Silence = pipeline.DeadlineReject }),
			"Waiting for Ana Berger to answer “Refund €420?”, for 1 h. The deadline was today 12:59 CET; now it counts as refused. ",
			"Ana Berger is asked: “Refund €420?”. Due today 12:59, then it counts as refused."},
		{"retrying", told(engine.StandingRetrying, 5*time.Second, waits(engine.WaitRetry, dueIn(40*time.Second), "The model is overloaded."), func(n *news) { n.Attempt = 3 }),
			"Retrying step 3 “Draft the reply” since today 12:59 CET: try 3 of 5 begins in 40 s. Last try: The model is overloaded. Then comes step 4 “Send the reply”.",
			"Step 3 “Draft the reply”: The model is overloaded. Try 3 of 5 begins in 40 s."},
		{"retrying now", told(engine.StandingRetrying, 5*time.Second, last, waits(engine.WaitRetry, dueIn(-time.Second), "It is busy."), func(n *news) { n.Attempt = 2 }),
			"Retrying step 3 “Draft the reply” since today 12:59 CET: try 2 of 5 begins now. Last try: It is busy. After it the run is done.",
			"Step 3 “Draft the reply”: It is busy. Try 2 of 5 begins now."},
		{"no room under a limit", told(engine.StandingWaiting, 5*time.Second, waits(engine.WaitRetry, dueIn(40*time.Second), "The key’s 60,000 tokens a minute are used up.")),
			"Waits for the model’s rate limit until about 13:00:40 CET at step 3 “Draft the reply”, since today 12:59 CET. The key’s 60,000 tokens a minute are used up. Then comes step 4 “Send the reply”.",
			"Step 3 “Draft the reply”: Waits for the model’s rate limit until about 13:00:40 CET since today 12:59 CET."},
		{"stopped by the cap", told(engine.StandingCapped, 2*time.Hour, waits(engine.WaitCap, nil, "The cap of $5.00 has $0.01 left.")),
			"Stopped by the cap before step 3 “Draft the reply”, for 2 h. The cap of $5.00 has $0.01 left. It goes on by itself once the cap allows it; what was paid for is kept.",
			"The cap of $5.00 has $0.01 left. Goes on once the cap allows it."},
		{"waiting for a time", told(engine.StandingWaiting, time.Hour, waits(engine.WaitTime, dueIn(20*time.Hour), "")),
			"Waiting until tomorrow 09:00 CET at step 3 “Draft the reply”, since today 12:00 CET. Then comes step 4 “Send the reply”.",
			"Step 3 “Draft the reply”: Waiting until tomorrow 09:00 CET since today 12:00 CET."},
		{"waiting for an event", told(engine.StandingWaiting, time.Hour, last, waits(engine.WaitEvent, dueIn(3*24*time.Hour), ""), event("paid", "77")),
			"Waiting for the event “paid” with key 77 at step 3 “Draft the reply”, since today 12:00 CET, until Thu 3 Dec 13:00 CET at most, then the run fails. Once it is here, the run is done.",
			"Step 3 “Draft the reply”: Waiting for the event “paid” with key 77 since today 12:00 CET, until Thu 3 Dec 13:00 CET at most, then the run fails."},
		{"an event that may stay away", told(engine.StandingWaiting, time.Hour, waits(engine.WaitEvent, dueIn(3*24*time.Hour), ""), event("paid", ""), func(n *news) { n.Silence = pipeline.DeadlineContinue }),
			"Waiting for the event “paid” at step 3 “Draft the reply”, since today 12:00 CET, until Thu 3 Dec 13:00 CET at most, then it goes on without. Once it is here, step 4 “Send the reply” comes.",
			"Step 3 “Draft the reply”: Waiting for the event “paid” since today 12:00 CET, until Thu 3 Dec 13:00 CET at most, then it goes on without."},
		{"an event without a deadline", told(engine.StandingWaiting, time.Hour, waits(engine.WaitEvent, nil, ""), event("paid", "77")),
			"Waiting for the event “paid” with key 77 at step 3 “Draft the reply”, since today 12:00 CET, without a deadline. Once it is here, step 4 “Send the reply” comes.",
			"Step 3 “Draft the reply”: Waiting for the event “paid” with key 77 since today 12:00 CET, without a deadline."},
		{"waiting for a run", told(engine.StandingWaiting, time.Hour, last, waits(engine.WaitChild, nil, "")),
			"Waiting for another run to end at step 3 “Draft the reply”, since today 12:00 CET. After it the run is done.",
			"Step 3 “Draft the reply”: Waiting for another run to end since today 12:00 CET."},
		{"paused", told(engine.StandingPaused, time.Hour),
			"Paused since today 12:00 CET. Nothing begins until somebody resumes it.",
			"Since today 12:00; goes on when somebody resumes it."},
		{"done", told(engine.StandingCompleted, 0, atNoStep),
			"Done today 13:00 CET, 1 h after it began. Nothing is left to do.",
			"Today 13:00, after 1 h."},
		{"done, refused", told(engine.StandingCompleted, 0, atNoStep, func(n *news) { n.Verdict, n.VerdictBy = review.OutcomeRejected, "Leila Haddad" }),
			"Done today 13:00 CET, 1 h after it began. Nothing is left to do.",
			"Refused by Leila Haddad; done today 13:00, after 1 h."},
		{"done, by silence", told(engine.StandingCompleted, 0, atNoStep, func(n *news) { n.Verdict = review.OutcomeTimeout }),
			"Done today 13:00 CET, 1 h after it began. Nothing is left to do.",
			"Nobody answered in time; done today 13:00, after 1 h."},
		{"failed", told(engine.StandingFailed, time.Minute, func(n *news) { n.Run.Failure = &engine.Failure{Message: "The file is empty."} }),
			"Failed at step 3 “Draft the reply” today 12:59 CET. The file is empty. No further step runs. Try it again once the cause is gone.",
			"Step 3 “Draft the reply”: The file is empty."},
		{"failed at its end", told(engine.StandingFailed, time.Minute, atNoStep, func(n *news) { n.Run.Failure = &engine.Failure{Message: "No result."} }),
			"Failed today 12:59 CET. No result. No further step runs. Try it again once the cause is gone.",
			"No result."},
		{"cancelled", told(engine.StandingCancelled, time.Minute, func(n *news) { n.Run.EndedBy = "Ben Okonkwo"; n.Run.EndedAt = &n.Since }),
			"Cancelled by Ben Okonkwo today 12:59 CET. No further step runs; what was done is kept.",
			"By Ben Okonkwo, today 12:59."},
		{"being cancelled", told(engine.StandingCancelled, time.Minute),
			"Being cancelled since today 12:59 CET. Calls under way end first.",
			"Today 12:59."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.sentence, test.news.sentence(noon, berlin).String())
			require.Equal(t, test.reason, test.news.reason(noon, berlin).String())
			require.NotEmpty(t, test.news.word())
			require.NotEmpty(t, test.news.badge().Status)
		})
	}
}

// What comes next is told also from inside a decision, where the list of its steps ends.
func TestWhatComesNextLeavesTheGroupsAround(t *testing.T) {
	t.Parallel()
	template, ok := pipeline.TemplateBySlug("customer-email")
	require.True(t, ok)
	program, err := pipeline.Compile(template.Document)
	require.NoError(t, err)
	roots := program.Roots()
	for i, root := range roots {
		want := (*pipeline.Node)(nil)
		if i+1 < len(roots) {
			want = roots[i+1]
		}
		require.Same(t, want, follower(program, root))
		for _, list := range root.Lists {
			for j, inner := range list.Nodes {
				if j+1 < len(list.Nodes) {
					require.Same(t, list.Nodes[j+1], follower(program, inner))
				} else {
					require.Same(t, want, follower(program, inner))
				}
			}
		}
	}
}
