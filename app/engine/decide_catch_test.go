package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// handled gives a box an on_error.
func handled(box, onError string) string {
	return strings.Replace(box, `"with"`, `"on_error": [`+onError+`], "with"`, 1)
}

var catchStories = map[string]flowStory{
	"failure handled by steps": {
		handled(mailTo("send"), `{"classes": ["refused"], "do": "steps", "steps": [`+ai("reword")+`, `+calc("note", "error.class + ' ' + error.message + ' ' + error.step + steps.reword.text")+`]}`) +
			", " + calc("behind", "steps.send.x"),
		func(s *simulation) { s.enter(); s.refuse("send"); s.reply("reword") },
	},
	"failure handled by a value": {
		handled(calc("sum", "input.n / 0"), `{"do": "default", "default": {"x": 12}}`) + ", " + calc("behind", "steps.sum.x"),
		func(s *simulation) { s.enter() },
	},
	"failure that people let pass": {
		handled(mailTo("send"), `{"do": "ask", "ask": {"question": "Go on? {{ error.message }}", "people": [{"email": "rita@example.com"}], "due": "2h"}}`) + ", " + calc("behind", "steps.send.verdict"),
		func(s *simulation) {
			s.enter()
			s.refuse("send")
			s.woken("send", `{"verdict":"approved","comment":"","by":"Rita"}`)
		},
	},
	"failure that people do not let pass": {
		handled(mailTo("send"), `{"do": "ask", "ask": {"question": "Go on?", "people": [{"email": "rita@example.com"}]}}`),
		func(s *simulation) {
			s.enter()
			s.refuse("send")
			s.woken("send", `{"verdict":"rejected","comment":"","by":"Rita"}`)
		},
	},
	"failure as another": {
		handled(box("way", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "true", "steps": [`+
			handled(mailTo("send"), `{"classes": ["refused"], "do": "fail", "exception": "no_mail", "message": "Not sent: {{ error.message }}"}`)+`]}]}`),
			`{"classes": ["refused"], "do": "default", "default": 1}, {"classes": ["no_mail"], "do": "steps", "steps": [`+calc("note", "error.name + ': ' + error.message")+`]}`),
		func(s *simulation) { s.enter(); s.refuse("send") },
	},
	"failure while handling goes outwards": {
		handled(box("way", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "true", "steps": [`+
			handled(calc("a", "1 / 0"), `{"do": "steps", "steps": [`+calc("b", "2 / 0")+`]}`)+`]}]}`),
			`{"do": "steps", "steps": [`+calc("c", "error.step")+`]}`),
		func(s *simulation) { s.enter() },
	},
	"exception out of a loop in a list": {
		handled(forEach("all", `"items": "input.list", "at_once": 2`, loop("again", `"until": "false", "max_rounds": 3, "at_limit": "fail"`, mailTo("send"),
			box("end", "stop", `{"outcome": "raise", "exception": "on_hold", "message": "Item {{ item }}."}`))),
			`{"classes": ["limit"], "do": "default", "default": 0}, {"classes": ["exception"], "do": "steps", "steps": [`+mailTo("tell")+`, `+calc("note", "error.name + error.message")+`]}`),
		func(s *simulation) { s.enter(); s.reply("send"); s.reply("tell") },
	},
	"side that fails is handled by the group": {
		handled(sides("p", ``, side("a", ai("a1")), side("b", person("b1")), side("c", calc("c0", "7"), mailTo("c1"))),
			`{"do": "steps", "steps": [`+sides("q", ``, side("d", calc("d1", "default(steps.c0.x, 0)")), side("e", mailTo("e1")))+`]}`) + ", " + calc("behind", "steps.p.combined"),
		func(s *simulation) { s.enter(); s.refuse("c1"); s.reply("e1") },
	},
	"item that fails is handled inside": {
		forEach("all", `"items": "input.list", "at_once": 1`, handled(mailTo("send"), `{"do": "steps", "steps": [`+calc("x", "item * 2")+`]}`)),
		func(s *simulation) { s.enter(); s.refuse("send"); s.reply("send"); s.refuse("send") },
	},
	"run of another pipeline": {
		box("sub", "pipeline", `{"pipeline": "01890000-0000-7000-8000-000000000001", "input": [{"name": "a", "formula": "input.n"}], "wait": true}`) + ", " + calc("behind", "steps.sub.result.x"),
		func(s *simulation) { s.enter(); s.woken("sub", `{"run":"r","result":{"x":1}}`) },
	},
	"run of another pipeline that fails": {
		handled(box("sub", "pipeline", `{"pipeline": "01890000-0000-7000-8000-000000000001", "wait": true}`), `{"classes": ["on_hold"], "do": "steps", "steps": [`+calc("note", "error.name + error.message")+`]}`),
		func(s *simulation) {
			s.enter()
			row := s.waitingRows()[0]
			out := outcome{kind: failed, failure: &Failure{Class: "on_hold", Raised: true, Message: "Hold."}}
			s.wakeAt(row, out)
			s.tell("sub is told of a failure", row, out)
		},
	},
	"fire and forget": {
		box("sub", "pipeline", `{"pipeline": "01890000-0000-7000-8000-000000000001"}`) + ", " + box("tell", "emit", `{"name": "paid", "key": "o-{{ input.n }}", "data": [{"name": "sum", "formula": "input.n * 2"}]}`) + ", " + calc("behind", "steps.sub.run + steps.tell.event"),
		func(s *simulation) { s.enter(); s.settleDown() },
	},
	"answer at an address": {
		loop("again", `"until": "round >= 2", "max_rounds": 2, "at_limit": "fail"`, calc("hand", "callback.signed"),
			box("way", "branch", `{"cases": [{"id": "yes", "name": "Yes", "when": "callback.signed != ''", "steps": [`+mailTo("send")+`]}]}`),
			box("signed", "event", `{"name": "signed", "callback": true, "deadline": "1d"}`)) + ", " + calc("behind", "steps.hand.x"),
		func(s *simulation) {
			s.enter()
			for range 2 {
				s.reply("send")
				s.woken("signed", `{"outcome":"received","data":1}`)
			}
		},
	},
	"stop while handling": {
		handled(sides("p", ``, side("a", person("a1")), side("b", calc("b1", "1 / 0"))), `{"do": "steps", "steps": [`+box("end", "stop", `{"message": "Enough."}`)+`]}`),
		func(s *simulation) { s.enter() },
	},
}

func TestHandledFailuresAreAsRecorded(t *testing.T) {
	t.Parallel()
	for name, story := range catchStories {
		t.Run(name, func(t *testing.T) { t.Parallel(); story.record(t, name, 3) })
	}
}

// Where the review that a failure asks for can ask nobody, that is the failure.
func TestFailureThatNobodyCanBeAskedAbout(t *testing.T) {
	t.Parallel()
	s := simulate(t, `{"semantics": 3, "name": "Flow", "steps": [`+
		handled(calc("a", "1 / 0"), `{"do": "ask", "ask": {"question": "Go on?", "people": [{"email": "rita@example.com"}]}}`)+`]}`, `{}`)
	barred := bars{failed: map[string]Failure{"aerror:0": {Class: ClassNobody, Message: "Nobody."}}}
	require.True(t, s.decide(nil, outcome{kind: entered}, barred))
	require.NotNil(t, s.ended)
	require.Equal(t, ClassNobody, s.ended.failure.Class)
	require.Contains(t, s.ended.failure.Detail, "zero")
}
