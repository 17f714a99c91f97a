package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
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
		at := s.byID(s.next.row.ID)
		s.tell("the step had ended in another job", s.endedBefore(at), outcome{kind: passed})
	},
}

// endedBefore marks a step run as done by an earlier job.
func (s *simulation) endedBefore(row *StepRun) *StepRun {
	row.State, row.EndedAt = StepDone, &s.now
	s.outputs[row.ID] = []byte(`{"text":"an answer"}`)
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
	s.decide(at, out, barred)
}

// answered is the outcome of a call that went well.
func (s *simulation) answered() (*StepRun, outcome) {
	out := outcome{kind: done, output: []byte(`{"text":"an answer"}`)}
	s.money(&out)
	return s.byID(s.next.row.ID), out
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
	s.tell(what, s.byID(s.next.row.ID), out)
}

func (s *simulation) interrupt(what string) {
	s.t.Helper()
	row := s.byID(s.next.row.ID)
	s.scope.callInput = s.next.input
	s.tell(what, row, outcome{kind: interrupted, settle: &settle{abandoned: &abandoned{row.ID, row.Attempt}}})
}

// waiting is the step run that an open wait would wake.
func (s *simulation) waiting() *StepRun {
	for id := range s.waits {
		return s.byID(id)
	}
	s.t.Fatal("nothing waits")
	return nil
}

func (s *simulation) wake(what string) {
	s.t.Helper()
	row := s.waiting()
	delete(s.waits, row.ID)
	require.NoError(s.t, s.scope.put(row.StepID, []byte(reviewAnswer)))
	s.tell(what, row, outcome{kind: done, output: []byte(reviewAnswer)})
}

const reviewAnswer = `{"verdict":"approved","comment":""}`

func (s *simulation) again(what string) {
	s.t.Helper()
	row := s.waiting()
	delete(s.waits, row.ID)
	s.scope.callInput = []byte(`{"models":["practice/standard"],"prompt":"1","max_tokens":10}`)
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
			pause, another := nextTry(&pipeline.Node{Step: &pipeline.Step{Retry: tc.retry}}, tc.attempt, tc.out)
			require.Equal(t, tc.another, another)
			require.Equal(t, tc.pause, pause)
		})
	}
}

// FuzzDecide runs random programs through random outcomes: nothing panics, what is
// final stays final, each step begins once, and all money comes back.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7919+1)
	}
	f.Fuzz(func(t *testing.T, programSeed, outcomeSeed uint64) {
		shape := rand.New(rand.NewPCG(programSeed, 1))
		number := 0
		document := fmt.Sprintf(`{"semantics": 1, "name": "Random", "input": [{"name": "n", "type": "number"}], "steps": %s}`,
			randomSteps(shape, 3, &number))
		s := simulate(t, document, fmt.Sprintf(`{"n": %d}`, shape.IntN(10)))
		fate := rand.New(rand.NewPCG(outcomeSeed, 2))
		s.decide(nil, outcome{kind: entered}, randomBars(fate, number))
		for turns := 0; s.ended == nil; turns++ {
			require.Less(t, turns, 2000, "the run does not end")
			s.randomTurn(fate, number)
		}
		s.settled()
	})
}

func randomSteps(r *rand.Rand, depth int, number *int) string {
	var steps []string
	for range 1 + r.IntN(3) {
		*number++
		id := fmt.Sprintf("s%d", *number)
		step := fmt.Sprintf(`{"id": %q, "name": %q, `, id, id)
		switch kind := r.IntN(5); {
		case kind == 0 && depth > 0:
			step += fmt.Sprintf(`"kind": "branch", "with": {"cases": [{"id": "yes%d", "name": "Yes", "when": "input.n > %d", "steps": %s}], "otherwise": %s}}`,
				*number, r.IntN(10), randomSteps(r, depth-1, number), randomSteps(r, depth-1, number))
		case kind <= 1:
			step += `"kind": "set", "with": {"values": [{"name": "x", "formula": "input.n + 1"}]}}`
		case kind == 2:
			step += `"kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]}}`
		case kind == 3:
			step += `"kind": "email", "with": {"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}}`
		default:
			step += `"kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.n }}"}}`
		}
		steps = append(steps, step)
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

func randomBars(r *rand.Rand, steps int) bars {
	b := bars{failed: map[string]Failure{}, capped: map[string]string{}}
	if r.IntN(20) == 0 {
		b.failed[fmt.Sprintf("s%d", 1+r.IntN(steps))] = Failure{Class: ClassNobody}
	}
	if r.IntN(4) == 0 {
		b.capped[fmt.Sprintf("s%d", 1+r.IntN(steps))] = "no money"
	}
	return b
}

// randomTurn lets one thing happen to the run: its call ends somehow, or its wait.
func (s *simulation) randomTurn(r *rand.Rand, steps int) {
	s.t.Helper()
	if s.next == nil {
		row := s.waiting()
		kind := s.waits[row.ID]
		delete(s.waits, row.ID)
		out := outcome{kind: done, output: []byte(reviewAnswer)}
		switch {
		case kind == WaitRetry || kind == WaitCap:
			s.scope.callInput = []byte(`{"models":["practice/standard"],"prompt":"1","max_tokens":10}`)
			out = outcome{kind: again}
		case r.IntN(5) == 0:
			out = outcome{kind: failed, failure: &Failure{Class: ClassExpired}}
		default:
			require.NoError(s.t, s.scope.put(row.StepID, []byte(reviewAnswer)))
		}
		s.decide(row, out, randomBars(r, steps))
		return
	}
	row := s.byID(s.next.row.ID)
	switch r.IntN(6) {
	case 0:
		s.scope.callInput = s.next.input
		s.decide(row, outcome{kind: interrupted, settle: &settle{abandoned: &abandoned{row.ID, row.Attempt}}}, randomBars(r, steps))
	case 1:
		out := outcome{kind: failed, failure: &Failure{Class: "server"}, retryable: r.IntN(4) > 0, retryAfter: time.Duration(r.IntN(100)) * time.Second}
		s.money(&out)
		s.decide(row, out, randomBars(r, steps))
	default:
		_, out := s.answered()
		require.NoError(s.t, s.scope.put(row.StepID, out.output))
		s.decide(row, out, randomBars(r, steps))
	}
}
