package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func loopOf(more string, steps ...string) string {
	return `{"id":"r","name":"R","kind":"repeat","with":{"steps":[` + strings.Join(steps, ",") + `],"max_rounds":3,"max_cost":1000,"max_time":"1h",` + more + `}}`
}

func eachOf(items, more string, steps ...string) string {
	return `{"id":"e","name":"E","kind":"each","with":{"items":"` + items + `","at_once":2,` + more + `"steps":[` + strings.Join(steps, ",") + `]}}`
}

func besides(more, left, right string) string {
	return `{"id":"p","name":"P","kind":"parallel","with":{` + more + `"branches":[{"id":"l","name":"L","steps":[` + left + `]},{"id":"m","name":"M","steps":[` + right + `]}]}}`
}

const listOfRecords = `"input":[{"name":"a","type":"text","required":true},{"name":"rows","type":"list","required":true,"of":{"type":"record","fields":[{"name":"sum","type":"number","required":true},{"name":"tag","type":"text"}]}}]`

// withRows is a document whose input has a list of records.
func withRows(steps ...string) string {
	return `{"semantics":2,"name":"n",` + listOfRecords + `,"steps":[` + strings.Join(steps, ",") + `]}`
}

func TestCheckKnowsTheKindsThatHoldSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, want string }{
		"nobody asked":       {docWith(loopOf(`"until":"true","at_limit":"ask"`, setStep)), "blocks r with.ask: Step 1 “R”: nobody is asked."},
		"asked for nothing":  {docWith(loopOf(`"until":"true","at_limit":"fail","ask":[{"everyone":true}]`, setStep)), "warning r with.ask: Step 1 “R”: it names people to ask at a limit"},
		"unclear person":     {docWith(loopOf(`"until":"true","at_limit":"ask","ask":[{}]`, setStep)), "blocks r with.ask[0]: Step 1 “R”: person 1 is not clear."},
		"result of nowhere":  {docWith(loopOf(`"until":"true","at_limit":"fail","result":"steps.nope.x"`, setStep)), "blocks r with.result: Step 1 “R”: Result of a round uses step “nope”, which does not exist."},
		"no such part":       {docWith(loopOf(`"until":"true","at_limit":"fail","result":"steps.calc.y"`, setStep)), "but it has no “y”. It has: “x”."},
		"items from inside":  {docWith(eachOf("steps.calc.x", "", setStep)), "blocks e with.items: Step 1 “E”: Items uses “steps.calc.x” of Step 1a “Calc”, which comes later."},
		"item's own list":    {docWith(eachOf("item.x", "", setStep)), "Items uses “item”, which exists only inside “Do for each at once”."},
		"other branch":       {docWith(strings.Replace(besides("", setStep, valueOf("c", "1")), `"name":"M"`, `"name":"M","result":"steps.calc.x"`, 1)), "blocks p with.branches[1].result: Step 1 “P”: Result of “M” uses “steps.calc.x” of Step 1a “Calc”, which comes later."},
		"item without parts": {withRows(eachOf("input.rows", "", valueOf("c", "item.total"))), "Value “v” uses “item.total”, but “item” has no “total”. It has: “sum”, “tag”."},
		"optional part":      {withRows(eachOf("input.rows", "", valueOf("c", "item.tag"))), "which may be empty, because “tag” does not have to be filled in."},
		"first and combine":  {docWith(besides(`"wait_for":"first","combine":"majority",`, setStep, valueOf("c", "1"))), "it takes the first good result, so there is nothing to combine."},
		"good of all":        {docWith(besides(`"good":"item.x > 1",`, setStep, valueOf("c", "1"))), "what a good result is matters only where the first good one is taken."},
		"no majority":        {docWith(besides(`"combine":"majority",`, setStep, valueOf("c", "1")), valueOf("d", "steps.p.combined")), "which may be empty, because “Combined” does not have to be filled in."},
		"no first":           {docWith(besides(`"wait_for":"first",`, setStep, valueOf("c", "1")), valueOf("d", "steps.p.results.l.x")), "which may be empty, because “L” does not have to be filled in."},
		"result's part":      {docWith(loopOf(`"until":"true","at_limit":"fail"`, setStep), valueOf("d", "steps.r.best.y")), "but “Best result” has no “y”. It has: “x”."},
		"items before":       {docWith(loopOf(`"until":"true","at_limit":"fail"`, eachOf("[1]", "", valueOf("c", "steps.calc.x"), setStep))), "which comes later. Move this step down or pick another value."},
		"endless event":      {docWith(`{"id":"w","name":"W","kind":"event","with":{"name":"paid"}}`), "tip w with.deadline: Step 1 “W”: it waits without limit."},
		"end of no deadline": {docWith(`{"id":"w","name":"W","kind":"event","with":{"name":"paid","on_deadline":"continue"}}`), "warning w with.deadline: Step 1 “W”: it says what happens when time is up, but has no time limit."},
		"data of no event":   {docWith(`{"id":"w","name":"W","kind":"event","with":{"name":"paid","deadline":"1d"}}`, valueOf("d", "steps.w.data")), "which may be empty, because “Data of the event” does not have to be filled in."},
		"AI in a loop":       {docWith(loopOf(`"until":"true","at_limit":"fail"`, aiStep), emailStep(`"to":["{{ steps.r.best.who }}"],"subject":"s","body":"b"`)), "an AI chooses who gets this mail"},
		"AI's items":         {docWith(aiStep, eachOf("[steps.ask.who]", "", emailStep(`"to":["{{ item }}"],"subject":"s","body":"b"`))), "an AI chooses who gets this mail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Parse([]byte(c.doc))
			require.NoError(t, err)
			require.Contains(t, strings.Join(lines(Check(d)), "\n"), c.want)
		})
	}
}

func TestCheckIsQuietAboutLoopsThatAreFine(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"end and score":    docWith(loopOf(`"until":"steps.calc.x > 1 && round > 1","score":"steps.calc.x","at_limit":"best","result":"steps.calc.x"`, setStep), valueOf("d", "steps.r.best + steps.r.rounds")),
		"asked":            docWith(loopOf(`"until":"true","at_limit":"ask","ask":[{"email":"{{ input.a }}"}]`, setStep)),
		"item and index":   withRows(eachOf("input.rows", `"result":"item.sum + index",`, valueOf("c", "item.sum + index"))),
		"items of a step":  docWith(eachOf("[1]", "", setStep), `{"id":"f","name":"F","kind":"each","with":{"items":"steps.e.results","at_once":1,"steps":[`+valueOf("c", "item.x")+`]}}`),
		"first good":       docWith(besides(`"wait_for":"first","good":"item.x > 1",`, setStep, valueOf("c", "1")), valueOf("d", "steps.p.combined")),
		"best":             docWith(besides(`"combine":"best","score":"item.x",`, setStep, strings.Replace(setStep, `"calc"`, `"other"`, 1)), valueOf("d", "steps.p.combined.x")),
		"own result":       docWith(strings.Replace(besides("", setStep, valueOf("c", "1")), `"name":"L"`, `"name":"L","result":"steps.calc.x"`, 1), valueOf("d", "steps.p.results.l + 1")),
		"after a decision": docWith(loopOf(`"until":"default(steps.calc.x, 1) > 1","at_limit":"fail"`, ifThen("d", setStep))),
		"stop":             docWith(ifThen("d", `{"id":"end","name":"End","kind":"stop","with":{"message":"{{ input.a }}"}}`), setStep),
		"wait":             docWith(`{"id":"w","name":"W","kind":"wait","with":{"until":"input.a"}}`, setStep),
	} {
		d, err := Parse([]byte(doc))
		require.NoError(t, err)
		require.Empty(t, lines(Check(d)), name)
	}
}

// A document says by its number what it needs; publishing raises it where it must.
func TestNewKindsNeedNewRules(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]int{
		docWith(setStep): 1, docWith(ifThen("d", setStep)): 1, docWith(ifThen("d", `{"id":"end","name":"End","kind":"stop","with":{}}`)): 2,
		docWith(loopOf(`"until":"true","at_limit":"fail"`, setStep)): 2, docWith(eachOf("[1]", "", setStep)): 2,
	} {
		d, err := Parse([]byte(doc))
		require.NoError(t, err)
		require.Empty(t, Blocking(Check(d)), "the number is no reason to refuse it")
		require.Equal(t, want, d.needs())
	}
}

// What reaches other systems or pipelines, and what is done about failures, came with
// the third number, however deep inside it is.
func TestReachingOutNeedsTheThirdRules(t *testing.T) {
	t.Parallel()
	for _, step := range []string{
		strings.Replace(setStep, `"kind"`, `"on_error":[{"do":"default","default":1}],"kind"`, 1),
		`{"id":"x","name":"X","kind":"http","with":{"method":"GET","url":"https://a.example"}}`,
		`{"id":"x","name":"X","kind":"pipeline","with":{"pipeline":"p"}}`,
		`{"id":"x","name":"X","kind":"emit","with":{"name":"paid"}}`,
	} {
		for _, doc := range []string{docWith(step), docWith(ifThen("d", eachOf("[1]", "", step)))} {
			d, err := Parse([]byte(doc))
			require.NoError(t, err)
			require.Equal(t, 3, d.needs(), step)
		}
	}
}

// The limits of a loop are there from the beginning, and small.
func TestNewLoopsHaveTheirLimits(t *testing.T) {
	t.Parallel()
	loop := KindRepeat.Prefilled().(*Repeat)
	loop.Steps, loop.Until = []Step{{ID: "a", Name: "A", Kind: KindSet, With: &Set{Values: []Value{{"x", "1"}}}}}, "true"
	require.Empty(t, Check(Document{Semantics: 2, Name: "n", Steps: []Step{{ID: "r", Name: "R", Kind: KindRepeat, With: loop}}}))
	for _, kind := range Kinds() {
		require.Equal(t, kind, kind.Prefilled().Kind())
	}
}

func TestGroupsAreCompiled(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(docWith(
		loopOf(`"until":"steps.calc.x > 1","score":"steps.calc.x","at_limit":"ask","ask":[{"role":"admin"}]`, setStep),
		eachOf("[1, 2]", `"max_failed":1,`, valueOf("c", "item")),
		besides(`"combine":"best","score":"item.v",`, valueOf("x1", "1"), valueOf("x2", "2")),
		`{"id":"w","name":"W","kind":"wait","with":{"for":"90s"}}`,
		`{"id":"ev","name":"Ev","kind":"event","with":{"name":"paid","key":"{{ input.a }}","deadline":"2d","on_deadline":"continue"}}`,
		`{"id":"end","name":"End","kind":"stop","with":{"outcome":"raise","exception":"on_hold","message":"Hold {{ input.a }}"}}`)))
	require.NoError(t, err)
	p, err := Compile(d)
	require.NoError(t, err)
	loop := p.Node("r").Repeat()
	require.Same(t, p.Node("calc"), loop.Steps[0])
	require.Equal(t, []any{3, int64(1000), "1h0m0s", LimitAsk, "admin"}, []any{loop.MaxRounds, loop.MaxCost, loop.MaxTime.String(), loop.AtLimit, loop.Ask[0].Role})
	require.NotNil(t, loop.Score)
	require.Nil(t, loop.Result)
	each := p.Node("e").Each()
	require.Equal(t, []int{2, 1}, []int{each.AtOnce, each.MaxFailed})
	both := p.Node("p").Parallel()
	require.Equal(t, []any{WaitAll, CombineBest, ListKey("m")}, []any{both.WaitFor, both.Combine, both.Lanes[1].List.Key})
	require.Equal(t, "1m30s", p.Node("w").Wait().For.String())
	event := p.Node("ev").Event()
	require.Equal(t, []any{"paid", "48h0m0s", DeadlineContinue}, []any{event.Name, event.Deadline.String(), event.OnDeadline})
	require.Equal(t, "on_hold", p.Node("end").Stop().Exception)
}
