package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
)

// compiled makes a document of steps ready.
func compiled(t *testing.T, document string) *pipeline.Program {
	t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	program, err := pipeline.Compile(parsed)
	require.NoError(t, err)
	return program
}

// under3 is a document under the rules that know what is done about failures.
func under3(document string) string {
	return strings.Replace(document, `"semantics": 2`, `"semantics": 3`, 1)
}

func listOfSteps(id string, steps ...string) string {
	return step(id, "each", `{"items": "input.list", "at_once": 2, "steps": [`+strings.Join(steps, ",")+`]}`)
}

func decideSteps(id, when string, steps ...string) string {
	return step(id, "branch", fmt.Sprintf(`{"cases": [{"id": "yes", "name": "Yes", "when": %q, "steps": [%s]}]}`, when, strings.Join(steps, ",")))
}

func loopSteps(id string, steps ...string) string {
	return step(id, "repeat", `{"until": "false", "max_rounds": 3, "max_cost": 1000000, "max_time": "1h", "at_limit": "fail", "steps": [`+strings.Join(steps, ",")+`]}`)
}

func catches(id string, steps ...string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]}, "on_error": [{"do": "steps", "steps": [%s]}]}`,
		id, id, strings.Join(steps, ","))
}

func asksOnError(id, question string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]},
		"on_error": [{"do": "ask", "ask": {"question": %q, "people": [{"email": "rita@example.com"}]}}]}`, id, id, question)
}

func begun(id string, kind pipeline.Kind) engine.Trace { return engine.Trace{StepID: id, Kind: kind} }

func over(t engine.Trace) engine.Trace { t.Ended = true; return t }

// A run fits where all that was begun is there unchanged and nothing new stands before
// it; whatever lies ahead may be anything.
func TestWhatFitsAnotherVersion(t *testing.T) {
	t.Parallel()
	a, b, c, wait := setTo("a", "1"), setTo("b", "2"), setTo("c", "3"), askRita("wait", "Well?")
	const set, review, each, branch, repeat = pipeline.KindSet, pipeline.KindReview, pipeline.KindEach, pipeline.KindBranch, pipeline.KindRepeat
	item := engine.Trace{StepID: "all", Kind: engine.KindItem, List: pipeline.ListSteps}
	round := engine.Trace{StepID: "again", Kind: engine.KindRound, List: pipeline.ListSteps}
	atWait := []engine.Trace{over(begun("a", set)), begun("wait", review)}
	yes := engine.Trace{StepID: "way", Kind: branch, Chosen: "yes"}
	for name, c := range map[string]struct {
		from, to []string
		traces   []engine.Trace
		misfits  string // reasons with the steps they are about
	}{
		"nothing begun":                     {[]string{a, wait}, []string{c}, nil, ""},
		"the same":                          {[]string{a, wait, b}, []string{a, wait, b}, atWait, ""},
		"what is ahead is other":            {[]string{a, wait, b}, []string{a, wait, c, setTo("b", "9")}, atWait, ""},
		"nothing is ahead":                  {[]string{a, wait, b}, []string{a, wait}, atWait, ""},
		"a finished step does more":         {[]string{a, wait}, []string{setTo("a", "7"), wait}, atWait, "changed 1 a"},
		"a finished step is gone":           {[]string{a, wait}, []string{wait}, atWait, "gone 1 a"},
		"a finished step is of other kind":  {[]string{a, wait}, []string{askRita("a", "?"), wait}, atWait, "changed 1 a"},
		"a finished step comes later":       {[]string{a, wait}, []string{wait, a}, atWait, "moved 1 a, moved 2 wait"},
		"a finished step went into a group": {[]string{a, wait}, []string{decideSteps("way", "true", a), wait}, atWait, "moved 1 a, unrun 1 way"},
		"the open question is another":      {[]string{a, wait}, []string{a, askRita("wait", "Really?")}, atWait, "changed 2 wait"},
		"a new step stands before":          {[]string{a, wait}, []string{a, b, wait}, atWait, "unrun 2 b"},
		"a new step stands first":           {[]string{a, wait}, []string{b, a, wait}, atWait, "unrun 1 b"},
		"an item is at the first of two": {[]string{listOfSteps("all", wait, b)}, []string{listOfSteps("all", wait, c)},
			[]engine.Trace{begun("all", each), item, begun("wait", review)}, ""},
		"an item is done": {[]string{listOfSteps("all", wait, b)}, []string{listOfSteps("all", wait, b, c)},
			[]engine.Trace{begun("all", each), over(item), over(begun("wait", review)), over(begun("b", set))}, "unrun 1c c"},
		"an item is done and its step changed": {[]string{listOfSteps("all", wait, b)}, []string{listOfSteps("all", wait, setTo("b", "5"))},
			[]engine.Trace{begun("all", each), over(item), over(begun("wait", review)), over(begun("b", set))}, "changed 1b b"},
		"an item has passed where a step is new": {[]string{listOfSteps("all", a, wait)}, []string{listOfSteps("all", a, b, wait)},
			[]engine.Trace{begun("all", each), item, over(begun("a", set)), begun("wait", review)}, "unrun 1b b"},
		"the list takes other items": {[]string{listOfSteps("all", wait)}, []string{step("all", "each", `{"items": "[1]", "at_once": 2, "steps": [`+wait+`]}`)},
			[]engine.Trace{begun("all", each), item, begun("wait", review)}, "changed 1 all"},
		"the way that was taken is longer ahead": {[]string{decideSteps("way", "true", a, wait)}, []string{decideSteps("way", "true", a, wait, b)},
			[]engine.Trace{yes, over(begun("a", set)), begun("wait", review)}, ""},
		"the way that was taken has ended": {[]string{decideSteps("way", "true", a), wait}, []string{decideSteps("way", "true", a, b), wait},
			[]engine.Trace{over(yes), over(begun("a", set)), begun("wait", review)}, "unrun 1b b"},
		"the way that was not taken is other": {[]string{decideSteps("way", "false", a), wait}, []string{decideSteps("way", "false", b, c), wait},
			[]engine.Trace{over(begun("way", branch)), begun("wait", review)}, ""},
		"the condition is other": {[]string{decideSteps("way", "true", a, wait)}, []string{decideSteps("way", "1 == 1", a, wait)},
			[]engine.Trace{yes, over(begun("a", set)), begun("wait", review)}, "changed 1 way"},
		"people are asked about its failure": {[]string{asksOnError("a", "Well?")}, []string{asksOnError("a", "Well?"), b},
			[]engine.Trace{{StepID: "a", Kind: set, Chosen: "error:0"}}, ""},
		"people would be asked otherwise": {[]string{asksOnError("a", "Well?")}, []string{asksOnError("a", "Really?")},
			[]engine.Trace{{StepID: "a", Kind: set, Chosen: "error:0"}}, "catches 1 a"},
		"its failure is handled by steps": {[]string{catches("a", wait)}, []string{catches("a", c, wait)},
			[]engine.Trace{{StepID: "a", Kind: set, Chosen: "error:0"}, begun("wait", review)}, "unrun 1a c"},
		"its failure would be handled if there was one": {[]string{catches("a", b), wait}, []string{catches("a", c), wait}, atWait, ""},
		"the loop goes on otherwise": {[]string{loopSteps("again", wait, b)}, []string{loopSteps("again", wait, c)},
			[]engine.Trace{begun("again", repeat), round, begun("wait", review)}, ""},
		"the loop has been round": {[]string{loopSteps("again", wait, b)}, []string{loopSteps("again", wait, c)},
			[]engine.Trace{begun("again", repeat), over(round), over(begun("wait", review)), over(begun("b", set))}, "gone 1b b, unrun 1b c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			for _, m := range engine.Misfits(compiled(t, under3(flow("1", c.from...))), compiled(t, under3(flow("1", c.to...))), c.traces) {
				told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s", m.Reason, m.Number, m.Name)))
			}
			require.Equal(t, c.misfits, strings.Join(told, ", "))
		})
	}
}

// What is said of the whole run counts, too: its input must do, and its rules not be older.
func TestTheInputMustFitAnotherVersion(t *testing.T) {
	t.Parallel()
	document := func(semantics int, fields string) string {
		return fmt.Sprintf(`{"semantics": %d, "name": "Fields", "input": [%s], "steps": [%s]}`, semantics, fields, askRita("ask", "?"))
	}
	const n = `{"name": "n", "type": "number", "required": true}`
	for name, c := range map[string]struct{ from, to, misfits string }{
		"other words":          {document(2, n), document(2, `{"name": "n", "label": "How many", "help": "Count", "type": "number", "required": true}`), ""},
		"no longer needed":     {document(2, n), document(2, ``), ""},
		"no longer required":   {document(2, n), document(2, `{"name": "n", "type": "number"}`), ""},
		"a new optional field": {document(2, n), document(2, n+`,{"name": "m", "type": "text"}`), ""},
		"a new required field": {document(2, n), document(2, n+`,{"name": "m", "label": "More", "type": "text", "required": true}`), "input More"},
		"another type":         {document(2, n), document(2, `{"name": "n", "type": "text"}`), "input n"},
		"required now":         {document(2, `{"name": "n", "type": "number"}`), document(2, n), "input n"},
		"newer rules":          {document(1, n), document(2, n), ""},
		"older rules":          {document(2, n), document(1, n), "rules "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := ""
			for _, m := range engine.Misfits(compiled(t, c.from), compiled(t, c.to), nil) {
				told += string(m.Reason) + " " + m.Name
			}
			require.Equal(t, c.misfits, told)
		})
	}
}
