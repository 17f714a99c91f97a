package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// FuzzDecide runs random programs through random outcomes, with the branches of a run
// racing each other in every order: nothing panics, what is final stays final, each step
// begins once, each group is joined once and none waits for ever, and all money comes
// back.
func FuzzDecide(f *testing.F) {
	f.Add(uint64(954), uint64(954*7+5)) // a branch that others relied on came late to its group
	for seed := range uint64(600) {
		f.Add(seed, seed*7919+1)
	}
	f.Fuzz(func(t *testing.T, programSeed, outcomeSeed uint64) {
		randomRun(t, &shaper{r: rand.New(rand.NewPCG(programSeed, 1))}, outcomeSeed)
	})
}

// FuzzDecideFailures is FuzzDecide with programs that do something about their failures.
func FuzzDecideFailures(f *testing.F) {
	for seed := range uint64(600) {
		f.Add(seed, seed*7919+1)
	}
	f.Fuzz(func(t *testing.T, programSeed, outcomeSeed uint64) {
		randomRun(t, &shaper{r: rand.New(rand.NewPCG(programSeed, 1)), handles: true}, outcomeSeed)
	})
}

// FuzzDecideChains is FuzzDecide with steps that go through several models.
func FuzzDecideChains(f *testing.F) {
	for seed := range uint64(600) {
		f.Add(seed, seed*7919+1)
	}
	f.Fuzz(func(t *testing.T, programSeed, outcomeSeed uint64) {
		randomRun(t, &shaper{r: rand.New(rand.NewPCG(programSeed, 1)), handles: programSeed%2 == 0, chains: true}, outcomeSeed)
	})
}

func randomRun(t *testing.T, shape *shaper, outcomeSeed uint64) {
	t.Helper()
	semantics := 3
	if shape.chains {
		semantics = 5
	}
	document := fmt.Sprintf(`{"semantics": %d, "name": "Random", "input": [{"name": "n", "type": "number", "required": true},
			{"name": "list", "type": "list", "of": {"type": "number"}, "required": true}], "steps": %s,
			"result": [{"name": "r", "formula": "input.n"}]}`, semantics, shape.steps(3, nil, 0))
	s := simulate(t, document, fmt.Sprintf(`{"n": %d, "list": [3, 1.50, 2]}`, shape.r.IntN(10)))
	fate := rand.New(rand.NewPCG(outcomeSeed, 2))
	s.block = func() int { return 1 + fate.IntN(3) }
	for turns := 0; s.ended == nil; turns++ {
		require.Less(t, turns, 20000, "the run does not end: %s\n%s", document, strings.Join(s.lines[max(0, len(s.lines)-40):], "\n"))
		s.randomTurn(fate, shape.n)
	}
	s.settled()
}

// shaper makes random documents.
type shaper struct {
	r       *rand.Rand
	n       int  // steps so far
	handles bool // some steps have an on_error
	chains  bool // many steps ask models, one after the other
}

// Where a list of steps stands, for what its formulas may read.
const (
	insideEach = 1 << iota
	insideRepeat
	insideCatch
)

func (p *shaper) steps(depth int, seen []string, inside int) string {
	var steps []string
	for range 1 + p.r.IntN(3) {
		p.n++
		id := fmt.Sprintf("s%d", p.n)
		kind, with, values := p.step(depth, seen, inside)
		steps = append(steps, fmt.Sprintf(`{"id": %q, "name": %q, "kind": %q, %s"with": %s}`, id, id, kind, p.onError(depth, seen, inside), with))
		if values {
			seen = append(seen[:len(seen):len(seen)], id)
		}
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// onError is what a step does about its failures, in front of its other settings.
func (p *shaper) onError(depth int, seen []string, inside int) string {
	if !p.handles || p.r.IntN(2) == 0 {
		return ""
	}
	var entries []string
	for range 1 + p.r.IntN(2) {
		classes := []string{`[]`, `["server"]`, `["formula"]`, `["on_hold", "limit"]`, `["exception", "none_good"]`, `["expired"]`}[p.r.IntN(6)]
		entries = append(entries, fmt.Sprintf(`{"classes": %s, "do": %s}`, classes, p.remedy(depth, seen, inside)))
	}
	return `"on_error": [` + strings.Join(entries, ", ") + `], `
}

func (p *shaper) remedy(depth int, seen []string, inside int) string {
	if depth > 0 && p.r.IntN(3) == 0 {
		return `"steps", "steps": ` + p.steps(depth-1, seen, inside|insideCatch)
	}
	return []string{
		`"default", "default": {"x": 1}`, `"default", "default": null`, `"fail"`,
		`"fail", "exception": "on_hold", "message": "{{ error.message }} {{ error.step }}"`,
		`"ask", "ask": {"question": "{{ error.class }}?", "people": [{"email": "rita@example.com"}]}`,
	}[p.r.IntN(5)]
}

// number is a formula that gives a number.
func (p *shaper) number(seen []string, inside int) string {
	options := []string{"input.n", "1", "0.5"}
	for _, id := range seen {
		options = append(options, "steps."+id+".x")
	}
	if inside&insideEach != 0 {
		options = append(options, "index")
	}
	if inside&insideRepeat != 0 {
		options = append(options, "round")
	}
	if inside&insideCatch != 0 {
		options = append(options, "size(error.message)")
	}
	return options[p.r.IntN(len(options))] + " + " + options[p.r.IntN(len(options))]
}

// step makes one step; it tells whether steps.<id>.x is a number behind it.
func (p *shaper) step(depth int, seen []string, inside int) (kind, with string, values bool) {
	if depth > 0 && p.r.IntN(2) == 0 {
		kind, with = p.group(depth, seen, inside)
		return kind, with, false
	}
	if p.chains && p.r.IntN(2) == 0 {
		return "ai", p.chain(), false
	}
	if p.handles && p.r.IntN(5) == 0 {
		return p.outward()
	}
	switch p.r.IntN(9) {
	case 0, 1, 2:
		return "set", fmt.Sprintf(`{"values": [{"name": "x", "formula": %q}]}`, p.number(seen, inside)), true
	case 3:
		return "review", `{"question": "Well?", "people": [{"email": "rita@example.com"}]}`, false
	case 4:
		return "email", `{"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}`, false
	case 5:
		return "wait", []string{`{"for": "1h"}`, `{"until": "'2026-12-24'"}`, `{"until": "'2020-01-01'"}`, `{"until": "'soon'"}`}[p.r.IntN(4)], false
	case 6:
		return "event", `{"name": "paid", "key": "{{ input.n }}", "deadline": "1d", "on_deadline": "continue"}`, false
	case 7:
		if p.r.IntN(4) > 0 {
			return "set", `{"values": [{"name": "x", "formula": "1"}]}`, true
		}
		return "stop", []string{`{}`, `{"outcome": "raise", "exception": "on_hold", "message": "Hold."}`}[p.r.IntN(2)], false
	}
	return "ai", `{"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.n }}"}`, false
}

// chain asks several models, of which one has no price and all may be too dear together.
func (p *shaper) chain() string {
	models := []string{"practice/standard", "anthropic/claude-sonnet-5", "openai/gpt-5.6-terra", "nobody/knows", "openai/gpt-6-astra"}
	p.r.Shuffle(len(models), func(i, j int) { models[i], models[j] = models[j], models[i] })
	return fmt.Sprintf(`{"models": ["%s"], "instructions": "Answer.", "prompt": "{{ input.n }}", "max_cost": %d, "on_refusal": %q, "if_missing": %q}`,
		strings.Join(models[:1+p.r.IntN(4)], `", "`), []int{0, 40_000, 90_000}[p.r.IntN(3)],
		[]string{"fail", "next_model", "ask"}[p.r.IntN(3)], []string{"fail", "empty", "ask"}[p.r.IntN(3)])
}

// outward makes a step that reaches other systems or runs.
func (p *shaper) outward() (kind, with string, values bool) {
	switch p.r.IntN(3) {
	case 0:
		unsure := []string{"ask", "repeat", "fail"}[p.r.IntN(3)]
		method := []string{"GET", "POST"}[p.r.IntN(2)]
		return "http", fmt.Sprintf(`{"method": %q, "url": "https://example.com/{{ input.n }}", "if_unsure": %q}`, method, unsure), false
	case 1:
		return "emit", `{"name": "paid", "key": "{{ input.n }}", "data": [{"name": "x", "formula": "input.n / (input.n - 3)"}]}`, false
	}
	return "pipeline", fmt.Sprintf(`{"pipeline": "01890000-0000-7000-8000-000000000001", "input": [{"name": "n", "formula": "input.n"}], "wait": %v}`, p.r.IntN(3) > 0), false
}

func (p *shaper) group(depth int, seen []string, inside int) (kind, with string) {
	depth--
	switch p.r.IntN(4) {
	case 0:
		return "branch", fmt.Sprintf(`{"cases": [{"id": "yes", "name": "Yes", "when": "%s > %d", "steps": %s}], "otherwise": %s}`,
			p.number(seen, inside), p.r.IntN(10), p.steps(depth, seen, inside), p.steps(depth, seen, inside))
	case 1:
		limit := []string{`"best", "score": "round * 1.5"`, `"fail"`, `"ask", "ask": [{"email": "rita@example.com"}]`}[p.r.IntN(3)]
		return "repeat", fmt.Sprintf(`{"until": "%s > %d", "max_rounds": %d, "max_cost": 200000, "max_time": "30d", "at_limit": %s, "steps": %s}`,
			p.number(seen, inside|insideRepeat), p.r.IntN(12), 1+p.r.IntN(3), limit, p.steps(depth, seen, inside|insideRepeat))
	case 2:
		items := []string{"input.list", "[]", "[1, 2]", "[input.n]"}[p.r.IntN(4)]
		return "each", fmt.Sprintf(`{"items": %q, "at_once": %d, "max_failed": %d, "steps": %s}`,
			items, 1+p.r.IntN(3), p.r.IntN(3), p.steps(depth, seen, inside|insideEach))
	}
	how := []string{``, `"wait_for": "first",`, `"wait_for": "first", "good": "1 > 2",`, `"combine": "majority",`, `"combine": "best", "score": "input.n",`}[p.r.IntN(5)]
	return "parallel", fmt.Sprintf(`{%s "branches": [{"id": "a", "name": "A", "steps": %s}, {"id": "b", "name": "B", "result": "%s", "steps": %s}]}`,
		how, p.steps(depth, seen, inside), p.number(seen, inside), p.steps(depth, seen, inside))
}

func randomBars(r *rand.Rand, steps int) bars {
	b := bars{failed: map[string]Failure{}, capped: map[string]string{}}
	if r.IntN(30) == 0 {
		b.failed[fmt.Sprintf("s%d", 1+r.IntN(steps))] = Failure{Class: ClassNobody}
	}
	if r.IntN(4) == 0 {
		b.capped[fmt.Sprintf("s%d", 1+r.IntN(steps))] = "no money"
	}
	return b
}

// bars are randomBars, with loops that have spent their money.
func (s *simulation) bars(r *rand.Rand, steps int) bars {
	b := randomBars(r, steps)
	for _, row := range s.steps {
		if row.Kind == pipeline.KindRepeat && row.State == StepRunning && s.program.Document().Semantics >= chainRules && r.IntN(6) == 0 {
			b.spent = map[string]StepRunID{}
			for n := range steps {
				b.spent[fmt.Sprintf("s%d", 1+n)] = row.ID
			}
		}
	}
	return b
}

// randomTurn lets one thing happen to the run: a slice goes on, its call ends somehow, or
// a wait is over.
func (s *simulation) randomTurn(r *rand.Rand, steps int) {
	s.t.Helper()
	waiting := s.waitingRows()
	choice := r.IntN(len(s.slices) + len(waiting)) // a run that nothing could wake panics here
	if choice >= len(s.slices) {
		s.randomWake(r, waiting[choice-len(s.slices)])
		return
	}
	slice := s.slices[choice]
	if slice.next == nil {
		s.goOn(slice, s.bars(r, steps))
		return
	}
	s.current, s.next = slice, slice.next
	s.randomReply(r, steps)
}

// waitingRows are the step runs with an open wait, in one order.
func (s *simulation) waitingRows() []*StepRun {
	return slices.DeleteFunc(slices.Clone(s.steps), func(row *StepRun) bool { _, waits := s.waits[row.ID]; return !waits })
}

func (s *simulation) randomWake(r *rand.Rand, row *StepRun) {
	wait := s.waits[row.ID]
	switch {
	case row.Kind == pipeline.KindAI && (wait.Kind == WaitRetry || wait.Kind == WaitCap):
		s.wakeAt(row, outcome{kind: again}).callInput = s.inputs[row.ID]
	case wait.Kind == WaitRetry || wait.Kind == WaitCap:
		s.wakeAt(row, outcome{kind: again}).callInput = []byte(`{"models":["practice/standard"],"prompt":"1","max_tokens":10}`)
	case wait.Kind == WaitChild && r.IntN(3) > 0:
		s.wakeAt(row, outcome{kind: done, output: []byte(`{"run":"r","result":{"x":1}}`)})
	case wait.Kind == WaitChild:
		s.wakeAt(row, outcome{kind: failed, failure: &Failure{Class: "on_hold", Raised: true, Message: "Hold."}})
	case wait.Kind == WaitTime:
		s.wakeAt(row, outcome{kind: done})
	case r.IntN(5) == 0:
		s.wakeAt(row, outcome{kind: failed, failure: &Failure{Class: ClassExpired}})
	case wait.Kind == WaitEvent:
		s.wakeAt(row, outcome{kind: done, output: []byte(`{"outcome":"received","data":{"a":1}}`)})
	default:
		verdict := []string{"approved", "rejected"}[r.IntN(2)]
		arrived := []string{"arrived", "not_arrived"}[r.IntN(2)]
		s.wakeAt(row, outcome{kind: done, output: []byte(`{"verdict":"` + verdict + `","comment":"","by":"Rita","arrived":"` + arrived + `"}`)}).callInput = []byte(`{"method":"POST"}`)
	}
}

func (s *simulation) randomReply(r *rand.Rand, steps int) {
	s.t.Helper()
	row := s.byID[s.next.row.ID]
	out := outcome{kind: done, output: []byte(`{"text":"an answer"}`)}
	switch r.IntN(6) {
	case 0:
		out = outcome{kind: interrupted, settle: &settle{abandoned: &abandoned{row.ID, row.Attempt}}}
	case 1:
		out = outcome{kind: failed, failure: &Failure{Class: "server"}, retryable: r.IntN(4) > 0, unsure: row.Kind == pipeline.KindHTTP && r.IntN(2) > 0, retryAfter: time.Duration(r.IntN(100)) * time.Second}
		s.money(&out)
	default:
		s.money(&out)
	}
	if row.Kind == pipeline.KindAI && out.kind == failed {
		classes := []string{"rate_limited", "overloaded", "server", "timeout", "context_too_long", "refused", "auth", "malformed", "empty", "truncated", "strange"}
		out.failure = &Failure{Class: classes[r.IntN(len(classes))]}
		if r.IntN(5) == 0 {
			out.uncalled, out.settle, out.cost = true, &settle{release: s.next.hold.ID}, 0
		}
	}
	require.True(s.t, s.decide(row, out, s.bars(r, steps)), "a guard refused what nobody else had changed")
}
