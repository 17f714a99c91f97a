package engine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
)

var update = flag.Bool("update", false, "write the golden files anew")

const everyKind = `{
	"semantics": 1, "name": "Every kind",
	"input": [{"name": "amount", "type": "number", "required": true}],
	"steps": [
		{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.amount }}"}},
		{"id": "twice", "name": "Double", "kind": "set", "with": {"values": [{"name": "x", "formula": "input.amount * 2"}]}},
		{"id": "route", "name": "Route", "kind": "branch", "with": {"cases": [
			{"id": "big", "name": "If big", "when": "steps.twice.x > 100", "steps": [
				{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Pay {{ input.amount }}?", "people": [{"email": "rita@example.com"}], "due": "2d"}},
				{"id": "inner", "name": "Inner", "kind": "branch", "with": {"cases": [
					{"id": "yes", "name": "If yes", "when": "steps.check.verdict == 'approved'", "steps": [
						{"id": "tell", "name": "Tell", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Paid", "body": "Paid."}}]}]}}]}],
			"otherwise": [{"id": "small", "name": "Small", "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]}}]}}
	],
	"result": [{"name": "x", "formula": "steps.twice.x"}]
}`

// stories are runs told as goldens: what decide asks for at each outcome.
var stories = map[string]func(*simulation){
	"small": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		s.answer("the answer comes")
	},
	"approved": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		s.answer("the answer comes")
		s.wake("Rita approves")
		s.answer("the mail is sent")
	},
	"retried": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		s.fail("the model is overloaded", true, 0)
		s.again("the pause is over")
		s.fail("it asks for half a minute", true, 30*time.Second)
		s.again("the pause is over")
		s.fail("it refuses", false, 0)
	},
	"interrupted": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		s.interrupt("the worker dies")
		s.answer("the second try answers")
	},
	"capped": func(s *simulation) {
		s.decideBarred("the money does not fit", nil, outcome{kind: entered}, bars{capped: map[string]string{"ask": "no money left"}})
		s.again("the cap was raised")
		s.answer("the answer comes")
	},
	"nobody to ask": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		at, out := s.answered()
		s.decideBarred("the answer comes, and Rita is gone", at, out,
			bars{failed: map[string]Failure{"check": {Class: ClassNobody, Message: "Nobody."}}})
	},
	"yields": func(s *simulation) {
		s.tell("the run begins", nil, outcome{kind: entered})
		at := s.byID[s.next.row.ID]
		s.tell("the step had ended in another job", s.endedBefore(at), outcome{kind: passed})
	},
}

// endedBefore marks a step run as done by an earlier job.
func (s *simulation) endedBefore(row *StepRun) *StepRun {
	row.State, row.EndedAt = StepDone, &s.now
	s.keep(row, []byte(`{"text":"an answer"}`))
	clear(s.holds)
	return row
}

func TestDecisionsAreAsRecorded(t *testing.T) {
	t.Parallel()
	amounts := map[string]string{"approved": "100", "nobody to ask": "100"}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			amount := amounts[name]
			if amount == "" {
				amount = "1"
			}
			s := simulate(t, everyKind, `{"amount": `+amount+`}`)
			story(s)
			require.NotNil(t, s.ended)
			s.settled()
			golden(t, filepath.Join("testdata", "decide", strings.ReplaceAll(name, " ", "_")+".txt"), strings.Join(s.lines, "\n")+"\n")
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), got)
}

func (s *simulation) tell(what string, at *StepRun, out outcome) {
	s.t.Helper()
	s.decideBarred(what, at, out, bars{})
}

func (s *simulation) decideBarred(what string, at *StepRun, out outcome, barred bars) {
	s.t.Helper()
	s.lines = append(s.lines, what)
	require.True(s.t, s.decide(at, out, barred))
	s.settleDown()
}

// answered is the outcome of a call that went well.
func (s *simulation) answered() (*StepRun, outcome) {
	out := outcome{kind: done, output: []byte(`{"text":"an answer"}`)}
	s.money(&out)
	return s.byID[s.next.row.ID], out
}

func (s *simulation) money(out *outcome) {
	if s.next.hold != nil {
		settlement := s.next.hold.Settle(ledger.Tokens{Input: 10, Output: 5}, ledger.Receipt{})
		out.settle, out.cost = &settle{settlement: &settlement}, int64(settlement.Cost)
	}
}

func (s *simulation) answer(what string) {
	s.t.Helper()
	at, out := s.answered()
	s.tell(what, at, out)
}

func (s *simulation) fail(what string, retryable bool, after time.Duration) {
	s.t.Helper()
	out := outcome{kind: failed, failure: &Failure{Class: "overloaded", Message: "Busy."}, retryable: retryable, retryAfter: after}
	s.money(&out)
	s.tell(what, s.byID[s.next.row.ID], out)
}

func (s *simulation) interrupt(what string) {
	s.t.Helper()
	row := s.byID[s.next.row.ID]
	s.tell(what, row, outcome{kind: interrupted, settle: &settle{abandoned: &abandoned{row.ID, row.Attempt}}})
}

// waiting is the step run that an open wait would wake.
func (s *simulation) waiting() *StepRun {
	for id := range s.waits {
		return s.byID[id]
	}
	s.t.Fatal("nothing waits")
	return nil
}

func (s *simulation) wake(what string) {
	s.t.Helper()
	row := s.waiting()
	out := outcome{kind: done, output: []byte(reviewAnswer)}
	s.wakeAt(row, out)
	s.tell(what, row, out)
}

const reviewAnswer = `{"verdict":"approved","comment":""}`

func (s *simulation) again(what string) {
	s.t.Helper()
	row := s.waiting()
	s.wakeAt(row, outcome{kind: again}).callInput = []byte(`{"models":["practice/standard"],"prompt":"1","max_tokens":10}`)
	s.tell(what, row, outcome{kind: again})
}

func TestPausesBetweenTries(t *testing.T) {
	t.Parallel()
	span := func(d time.Duration) *pipeline.Duration { p := pipeline.Duration(d); return &p }
	for name, tc := range map[string]struct {
		retry   *pipeline.Retry
		attempt int
		out     outcome
		pause   time.Duration
		another bool
	}{
		"first pause":              {nil, 1, outcome{retryable: true}, 2 * time.Second, true},
		"pauses double":            {nil, 3, outcome{retryable: true}, 8 * time.Second, true},
		"the other side's wish":    {nil, 1, outcome{retryable: true, retryAfter: 40 * time.Second}, 40 * time.Second, true},
		"a wish shorter than ours": {nil, 2, outcome{retryable: true, retryAfter: time.Second}, 4 * time.Second, true},
		"a wish beyond the bound":  {nil, 1, outcome{retryable: true, retryAfter: 24 * time.Hour}, 0, false},
		"five tries by default":    {nil, 5, outcome{retryable: true}, 0, false},
		"not retryable":            {nil, 1, outcome{}, 0, false},
		"own number of tries":      {&pipeline.Retry{Attempts: 2}, 2, outcome{retryable: true}, 0, false},
		"own pauses":               {&pipeline.Retry{Attempts: 9, First: span(time.Minute), Longest: span(3 * time.Minute)}, 4, outcome{retryable: true}, 3 * time.Minute, true},
		"only listed classes":      {&pipeline.Retry{Attempts: 9, On: []string{"server"}}, 1, outcome{retryable: true}, 0, false},
		"a listed class":           {&pipeline.Retry{Attempts: 9, On: []string{"overloaded"}}, 1, outcome{retryable: true}, 2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.out.failure = &Failure{Class: "overloaded"}
			pause, another := nextTry(2, &pipeline.Node{Step: &pipeline.Step{Retry: tc.retry}}, tc.attempt, tc.out)
			require.Equal(t, tc.another, another)
			require.Equal(t, tc.pause, pause)
		})
	}
}
