package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// flowStory is a run with groups told as a golden.
type flowStory struct {
	steps string
	tell  func(*simulation)
}

func box(id, kind, with string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "kind": %q, "with": %s}`, id, id, kind, with)
}

func calc(id, formula string) string {
	return box(id, "set", fmt.Sprintf(`{"values": [{"name": "x", "formula": %q}]}`, formula))
}

func ai(id string) string {
	return box(id, "ai", `{"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.n }}", "max_tokens": 10}`)
}

func mailTo(id string) string {
	return box(id, "email", `{"to": ["kim@example.com"], "subject": "Hello", "body": "Hello."}`)
}

func person(id string) string {
	return box(id, "review", `{"question": "Well?", "people": [{"email": "rita@example.com"}]}`)
}

func loop(id, more string, steps ...string) string {
	return box(id, "repeat", `{`+more+`, "max_cost": 1000000, "max_time": "1h", "steps": [`+strings.Join(steps, ", ")+`]}`)
}

func forEach(id, more string, steps ...string) string {
	return box(id, "each", `{`+more+`, "steps": [`+strings.Join(steps, ", ")+`]}`)
}

func sides(id, more string, lanes ...string) string {
	return box(id, "parallel", `{`+more+`"branches": [`+strings.Join(lanes, ", ")+`]}`)
}

func side(id string, steps ...string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "steps": [%s]}`, id, id, strings.Join(steps, ", "))
}

var flowStories = map[string]flowStory{
	"loop until its condition holds": {
		loop("again", `"until": "steps.sum.x >= 3", "max_rounds": 5, "at_limit": "fail", "result": "steps.sum.x"`, ai("ask"), calc("sum", "default(steps.last.x, 0) + round"), calc("last", "steps.sum.x")) + ", " + calc("behind", "steps.again.best + steps.sum.x"),
		func(s *simulation) { s.enter(); s.reply("ask"); s.reply("ask") },
	},
	"loop at its limit takes the best": {
		loop("again", `"until": "false", "max_rounds": 3, "at_limit": "best", "score": "steps.mark.x"`, calc("mark", "round == 2 ? 2.50 : 1")) + ", " + calc("behind", "steps.mark.x"),
		func(s *simulation) { s.enter() },
	},
	"loop at its limit fails": {
		loop("again", `"until": "false", "max_rounds": 2, "at_limit": "fail"`, calc("mark", "round")),
		func(s *simulation) { s.enter() },
	},
	"loop stops at its limit on money": {
		box("again", "repeat", `{"until": "false", "max_rounds": 100, "max_cost": 1, "max_time": "1h", "at_limit": "best", "score": "1", "steps": [`+ai("ask")+`]}`),
		func(s *simulation) { s.enter(); s.reply("ask") },
	},
	"loop at its limit asks and is approved": {
		loop("again", `"until": "false", "max_rounds": 2, "at_limit": "ask", "ask": [{"email": "rita@example.com"}], "score": "steps.mark.x"`, mailTo("send"), calc("mark", "round")) + ", " + calc("behind", "steps.again.best.x"),
		func(s *simulation) {
			s.enter()
			s.reply("send")
			s.reply("send")
			s.woken("again", `{"verdict":"approved","by":"Rita"}`)
		},
	},
	"loop at its limit asks and is rejected": {
		loop("again", `"until": "false", "max_rounds": 1, "at_limit": "ask", "ask": [{"email": "rita@example.com"}]`, calc("mark", "round")),
		func(s *simulation) { s.enter(); s.woken("again", `{"verdict":"rejected","by":"Rita"}`) },
	},
	"list with an item that may fail": {
		forEach("all", `"items": "input.list", "at_once": 2, "max_failed": 1, "result": "item * 2"`, mailTo("send")),
		func(s *simulation) { s.enter(); s.reply("send"); s.refuse("send"); s.reply("send") },
	},
	"list with too many items that fail": {
		forEach("all", `"items": "input.list", "at_once": 2`, mailTo("send")),
		func(s *simulation) { s.enter(); s.refuse("send") },
	},
	"list without items": {
		forEach("all", `"items": "[]", "at_once": 2`, mailTo("send")),
		func(s *simulation) { s.enter() },
	},
	"list of something else": {
		forEach("all", `"items": "input.n", "at_once": 2`, mailTo("send")),
		func(s *simulation) { s.enter() },
	},
	"items that wait make room": {
		forEach("all", `"items": "input.list", "at_once": 1, "result": "steps.ok.verdict"`, person("ok"), mailTo("send")),
		func(s *simulation) {
			s.enter()
			for range 3 {
				s.woken("ok", `{"verdict":"approved","comment":""}`)
				s.reply("send")
			}
		},
	},
	"sides by majority": {
		sides("p", `"combine": "majority", `, side("a", calc("a1", "1.0")), side("b", calc("b1", "2")), side("c", calc("c1", "1"))),
		func(s *simulation) { s.enter() },
	},
	"sides by score": {
		sides("p", `"combine": "best", "score": "item.x", `, side("a", calc("a1", "0.30")), side("b", calc("b1", "0.31"))),
		func(s *simulation) { s.enter() },
	},
	"first good side wins": {
		sides("p", `"wait_for": "first", "good": "has(item.text)", `, side("a", ai("a1")), side("b", person("b1")), side("c", ai("c1"), mailTo("c2")), side("d", calc("d1", "1"))),
		func(s *simulation) { s.enter(); s.reply("a1") },
	},
	"no side is good": {
		sides("p", `"wait_for": "first", "good": "item.x > 1", `, side("a", calc("a1", "1")), side("b", mailTo("b1"))),
		func(s *simulation) { s.enter(); s.refuse("b1") },
	},
	"side that fails ends the others": {
		sides("p", ``, side("a", ai("a1")), side("b", person("b1")), side("c", mailTo("c1"))),
		func(s *simulation) { s.enter(); s.refuse("c1") },
	},
	"wait for a time": {
		box("nap", "wait", `{"for": "90m"}`) + ", " + box("gone", "wait", `{"until": "'2026-11-30'"}`) + ", " + box("day", "wait", `{"until": "'2026-12-01'"}`),
		func(s *simulation) { s.enter(); s.woken("nap", ""); s.woken("day", "") },
	},
	"wait for no time": {
		box("nap", "wait", `{"until": "'soon'"}`),
		func(s *simulation) { s.enter() },
	},
	"wait for an event": {
		box("paid", "event", `{"name": "paid", "key": "order-{{ input.n }}", "deadline": "2h", "on_deadline": "continue"}`) + ", " + calc("behind", "steps.paid.data.sum"),
		func(s *simulation) { s.enter(); s.woken("paid", `{"outcome":"event","data":{"sum":5}}`) },
	},
	"stop from inside": {
		sides("p", ``, side("a", person("a1")), side("b", box("way", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "true", "steps": [`+mailTo("b1")+", "+box("end", "stop", `{"message": "Enough."}`)+`]}]}`))),
		func(s *simulation) { s.enter(); s.reply("b1") },
	},
	"stop that raises": {
		forEach("all", `"items": "input.list", "at_once": 1, "max_failed": 3`, box("end", "stop", `{"outcome": "raise", "exception": "on_hold", "message": "Item {{ item }}."}`)),
		func(s *simulation) { s.enter() },
	},
	"groups in groups": {
		sides("p", ``, side("a", forEach("all", `"items": "[1, 2]", "at_once": 2`, loop("again", `"until": "round >= 2", "max_rounds": 3, "at_limit": "fail", "result": "item * 10 + round"`, mailTo("send")))), side("b", calc("b1", "1"))) + ", " + calc("behind", "steps.all.results"),
		func(s *simulation) {
			s.enter()
			for range 4 {
				s.reply("send")
			}
		},
	},
	"long loop is cut": {
		loop("again", `"until": "round >= 150", "max_rounds": 200, "at_limit": "fail"`, calc("x", "round"), calc("y", "steps.x.x")),
		func(s *simulation) { s.enter(); s.shorten() },
	},
}

func TestFlowsAreAsRecorded(t *testing.T) {
	t.Parallel()
	for name, story := range flowStories {
		t.Run(name, func(t *testing.T) { t.Parallel(); story.record(t, name, 2) })
	}
}

func (f flowStory) record(t *testing.T, name string, semantics int) {
	t.Helper()
	s := simulate(t, fmt.Sprintf(`{"semantics": %d, "name": "Flow", "input": [{"name": "n", "type": "number", "required": true}, {"name": "list", "type": "list", "of": {"type": "number"}, "required": true}],
		"steps": [%s], "result": [{"name": "r", "formula": "input.n"}]}`, semantics, f.steps), `{"n": 7, "list": [1, 2.50, 3]}`)
	f.tell(s)
	require.NotNil(t, s.ended)
	s.settled()
	golden(t, filepath.Join("testdata", "flow", strings.ReplaceAll(name, " ", "_")+".txt"), strings.Join(s.lines, "\n")+"\n")
}

func (s *simulation) enter() {
	s.t.Helper()
	s.tell("the run begins", nil, outcome{kind: entered})
}

// calling makes the first slice the current one that calls for a step.
func (s *simulation) calling(step string) *StepRun {
	s.t.Helper()
	for _, one := range s.slices {
		if one.next != nil && one.next.row.StepID == step {
			s.current, s.next = one, one.next
			return s.byID[one.next.row.ID]
		}
	}
	s.t.Fatalf("nobody calls for %q", step)
	return nil
}

func (s *simulation) reply(step string) {
	s.t.Helper()
	s.calling(step)
	at, out := s.answered()
	s.tell("the call of "+s.name(s.byID[at.Parent])+"/"+step+" is answered", at, out)
}

func (s *simulation) refuse(step string) {
	s.t.Helper()
	at := s.calling(step)
	out := outcome{kind: failed, failure: &Failure{Class: "refused", Message: "No."}}
	s.money(&out)
	s.tell("the call of "+step+" is refused", at, out)
}

// woken ends the first wait of a step.
func (s *simulation) woken(step, output string) {
	s.t.Helper()
	for _, row := range s.waitingRows() {
		if row.StepID != step {
			continue
		}
		out := outcome{kind: done}
		if output != "" {
			out.output = []byte(output)
		}
		s.wakeAt(row, out)
		s.tell(step+" is woken", row, out)
		return
	}
	s.t.Fatalf("%q does not wait", step)
}

// shorten keeps of a long story where it was cut, and its end.
func (s *simulation) shorten() {
	var short []string
	for i, line := range s.lines {
		if i < 8 || i >= len(s.lines)-4 || strings.HasPrefix(line, "  stand at") {
			short = append(short, line)
		}
	}
	s.lines = short
}
