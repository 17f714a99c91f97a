package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of documents that the tables below put together.
const (
	setStep    = `{"id":"calc","name":"Calc","kind":"set","with":{"values":[{"name":"x","formula":"1"}]}}`
	aiStep     = `{"id":"ask","name":"Ask","kind":"ai","with":{"models":["practice/standard"],"instructions":"Do it.","prompt":"{{ input.a }}","answer":[{"name":"who","type":"text","required":true},{"name":"opt","type":"text"},{"name":"total","type":"money","required":true}]}}`
	reviewStep = `{"id":"ok","name":"Agree","kind":"review","with":{"question":"Ok?","due":"1d","people":[{"everyone":true}]}}`
)

func emailStep(with string) string {
	return `{"id":"send","name":"Send reply","kind":"email","with":{` + with + `}}`
}

func docWith(steps ...string) string {
	return `{"semantics":1,"name":"Test","input":[{"name":"a","type":"text","required":true},{"name":"note","label":"Note","type":"text"},
		{"name":"file","type":"file","required":true}],"steps":[` + strings.Join(steps, ",") + `]}`
}

func ifThen(id, steps string) string {
	return `{"id":"` + id + `","name":"Decide","kind":"branch","with":{"cases":[{"id":"yes","name":"If yes","when":"input.a == \"x\"","steps":[` + steps + `]}]}}`
}

func valueOf(id, formula string) string {
	return fmt.Sprintf(`{"id":%q,"name":"Use","kind":"set","with":{"values":[{"name":"v","formula":%q}]}}`, id, formula)
}

// lines writes problems as the tables have them.
func lines(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%s %s %s: %s", p.Severity, p.Step, p.Field, p.Message))
	}
	return out
}

func TestCheckNamesPlaceAndFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, want string }{
		"no steps":          {docWith(), "blocks  steps: The pipeline has no steps yet. Add the first one."},
		"no name":           {`{"semantics":1,"name":" ","steps":[` + setStep + `]}`, "blocks  name: The pipeline has no name. Give it one."},
		"other semantics":   {`{"semantics":7,"name":"n","steps":[` + setStep + `]}`, "blocks  semantics: This document follows rules number 7"},
		"header in name":    {`{"semantics":1,"name":"Hi\r\nBcc: x@evil.example","steps":[` + setStep + `]}`, "blocks  name: The pipeline has a name with a line break"},
		"bidi in name":      {docWith(strings.Replace(setStep, `"Calc"`, `"a\u202eb"`, 1)), "blocks calc name: Step 1 “a b”: it has a name with a line break or a hidden control character"},
		"long name":         {docWith(strings.Replace(setStep, `"Calc"`, `"`+strings.Repeat("ü", 121)+`"`, 1)), "it has a name of 121 characters; at most 120"},
		"same id twice":     {docWith(setStep, setStep), "blocks calc id: Step 2 “Calc”: its id “calc” is that of Step 1 “Calc”, too."},
		"bad id":            {docWith(strings.Replace(setStep, `"calc"`, `"My Step"`, 1)), "blocks My Step id: Step 1 “Calc”: its id “My Step” cannot be used. Use small letters"},
		"reserved id":       {docWith(strings.Replace(setStep, `"calc"`, `"if"`, 1)), "its id “if” cannot be used"},
		"no id":             {docWith(strings.Replace(setStep, `"calc"`, `""`, 1)), "it has no id. Give it one like “draft_reply”."},
		"negative cap":      {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","run_cap":-1`, 1), "blocks  run_cap: The most a run may cost is below zero"},
		"found by no field": {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","search":["input.nothing"]`, 1), "blocks  search: Runs cannot be found by “input.nothing”. Name a field of the start form"},
		"no runs at once":   {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","concurrency":{"limit":0}`, 1), "blocks  concurrency.limit: The most runs at once is 0. Set it to a number from 1 to 10000"},
		"policy":            {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","concurrency":{"limit":1,"policy":"wait"}`, 1), "blocks  concurrency.policy: “wait” cannot be used for concurrency.policy. Use one of: “queue”, “skip”, “cancel_oldest”."},
		"run name":          {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","run_name":"{{ steps.calc.x }}"`, 1), "blocks  run_name: Name of each run uses “steps.calc.x”, but only the input is known"},
		"result":            {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","result":[{"name":"r","formula":"steps.nope.x"}]`, 1), "blocks  result[0].formula: Value “r” uses step “nope”, which does not exist."},
		"sample":            {strings.Replace(docWith(setStep), `"name":"Test"`, `"name":"Test","sample":{"answers":{"calc":1}}`, 1), "tip  sample.answers.calc: The sample holds an answer for “calc”"},

		"field names":     {`{"semantics":1,"name":"n","input":[{"name":"a","type":"text"},{"name":"a","type":"text"}],"steps":[` + setStep + `]}`, "blocks  input[1].name: two fields are called “a”. Rename one."},
		"field type":      {`{"semantics":1,"name":"n","input":[{"name":"a","type":"int"}],"steps":[` + setStep + `]}`, "blocks  input[0].type: the field “a” has the unknown type “int”."},
		"no choices":      {`{"semantics":1,"name":"n","input":[{"name":"a","type":"choice"}],"steps":[` + setStep + `]}`, "blocks  input[0].choices: the field “a” has 0 choices."},
		"list of nothing": {`{"semantics":1,"name":"n","input":[{"name":"a","type":"list"}],"steps":[` + setStep + `]}`, "blocks  input[0].of: the field “a” is a list of nothing."},
		"currency":        {`{"semantics":1,"name":"n","input":[{"name":"a","type":"money","currency":"Euro"}],"steps":[` + setStep + `]}`, "Use a code like EUR."},

		"no address":    {docWith(emailStep(`"to":[],"subject":"s","body":"b"`)), "blocks send with.to: Step 1 “Send reply”: it has no address. Choose who gets it."},
		"bad address":   {docWith(emailStep(`"to":["ana"],"subject":"s","body":"b"`)), "blocks send with.to[0]: Step 1 “Send reply”: “ana” is not an e-mail address."},
		"named address": {docWith(emailStep(`"to":["Ana <a@b.example>"],"subject":"s","body":"b"`)), "is not an e-mail address"},
		"subject":       {docWith(emailStep(`"to":["a@b.example"],"subject":"Hi\nBcc: x@y.example","body":"b"`)), "blocks send with.subject: Step 1 “Send reply”: its subject has a line break"},
		"no file":       {docWith(emailStep(`"to":["a@b.example"],"subject":"s","body":"b","attachments":[""]`)), "blocks send with.attachments[0]: Step 1 “Send reply”: file 1 is not picked yet."},
		"no body":       {docWith(emailStep(`"to":["a@b.example"],"subject":"s","body":""`)), "it has no text. Write what the mail should say."},

		"no model":        {docWith(strings.Replace(aiStep, `["practice/standard"]`, `[]`, 1)), "blocks ask with.models: Step 1 “Ask”: no model is chosen."},
		"model name":      {docWith(strings.Replace(aiStep, `practice/standard`, `gpt`, 1)), "“gpt” is not the name of a model. Write it like practice/standard."},
		"no instructions": {docWith(strings.Replace(aiStep, `Do it.`, ` `, 1)), "it does not say what the AI should do."},
		"no prompt":       {docWith(strings.Replace(aiStep, `{{ input.a }}`, ``, 1)), "it gives the AI nothing to read."},
		"free text":       {docWith(`{"id":"ask","name":"Ask","kind":"ai","with":{"models":["practice/standard"],"instructions":"i","prompt":"p"}}`), "tip ask with.answer: Step 1 “Ask”: the AI answers in free text."},
		"too many files":  {docWith(strings.Replace(aiStep, `"instructions"`, `"files":[`+strings.Repeat(`"input.a",`, 20)+`"input.a"],"instructions"`, 1)), "blocks ask with.files: Step 1 “Ask”: it gives the AI 21 files; at most 20 can be sent at once."},
		"file to read":    {docWith(strings.Replace(aiStep, `"instructions"`, `"files":["steps.nope.body"],"instructions"`, 1)), "blocks ask with.files[0]: Step 1 “Ask”: File to read uses step “nope”, which does not exist."},
		"file formula":    {docWith(strings.Replace(aiStep, `"instructions"`, `"files":["input.a +"],"instructions"`, 1)), "blocks ask with.files[0]: Step 1 “Ask”: File to read"},
		"empty file":      {docWith(strings.Replace(aiStep, `"instructions"`, `"files":["input.a"," "],"instructions"`, 1)), "blocks ask with.files[1]: Step 1 “Ask”: file 2 is not picked yet."},
		"file answer":     {docWith(strings.Replace(aiStep, `"name":"opt","type":"text"`, `"name":"opt","type":"file"`, 1)), "an AI cannot answer “opt” with a file."},
		"tokens":          {docWith(strings.Replace(aiStep, `"instructions"`, `"max_tokens":-5,"instructions"`, 1)), "an answer of -5 tokens is not possible."},
		"refusal":         {docWith(strings.Replace(aiStep, `"instructions"`, `"on_refusal":"pray","instructions"`, 1)), "“pray” cannot be used for on_refusal. Use one of: “fail”, “next_model”, “ask”."},
		"reuse too old":   {docWith(strings.Replace(aiStep, `"instructions"`, `"reuse":true,"reuse_for":"53w","instructions"`, 1)), "blocks ask with.reuse_for: Step 1 “Ask”: an earlier answer may be at most 365 days old"},
		"reuse unmarked":  {docWith(strings.Replace(aiStep, `"instructions"`, `"reuse_for":"1d","instructions"`, 1)), "blocks ask with.reuse_for: Step 1 “Ask”: it says how old"},

		"nobody asked":     {docWith(strings.Replace(reviewStep, `{"everyone":true}`, ``, 1)), "blocks ok with.people: Step 1 “Agree”: nobody is asked. Choose at least one person."},
		"unclear person":   {docWith(strings.Replace(reviewStep, `{"everyone":true}`, `{"everyone":true,"role":"admin"}`, 1)), "person 1 is not clear."},
		"unknown role":     {docWith(strings.Replace(reviewStep, `{"everyone":true}`, `{"role":"boss"}`, 1)), "“boss” cannot be used for people[0].role."},
		"too few people":   {docWith(strings.Replace(reviewStep, `"people":[{"everyone":true}]`, `"policy":{"rule":"n","n":3},"people":[{"email":"a@b.example, c@d.example"}]`, 1)), "it needs 3 to agree, but asks only 2."},
		"no question":      {docWith(strings.Replace(reviewStep, `Ok?`, ``, 1)), "it asks no question."},
		"no deadline":      {docWith(strings.Replace(reviewStep, `"due":"1d",`, ``, 1)), "tip ok with.due: Step 1 “Agree”: it waits without limit."},
		"silent yes":       {docWith(strings.Replace(reviewStep, `"due":"1d"`, `"due":"1d","on_deadline":"approve"`, 1)), "warning ok with.on_deadline: Step 1 “Agree”: no answer counts as yes after 1d."},
		"deadline of none": {docWith(strings.Replace(reviewStep, `"due":"1d"`, `"on_deadline":"fail"`, 1)), "it says what happens when time is up, but has no time limit."},
		"taken field":      {docWith(strings.Replace(reviewStep, `"due":"1d"`, `"due":"1d","editable":[{"field":{"name":"verdict","type":"text"},"formula":"input.a"}]`, 1)), "the field name “verdict” already means the decision here."},
		"proposal from":    {docWith(strings.Replace(reviewStep, `"due":"1d"`, `"due":"1d","proposal":{"text":"t","from":"nope"}`, 1)), "come from step “nope”, which does not exist."},
		"send back":        {docWith(strings.Replace(reviewStep, `"due":"1d"`, `"due":"1d","send_back":true`, 1)), "sending back for another round cannot be run"},

		"no cases":      {docWith(`{"id":"d","name":"D","kind":"branch","with":{"cases":[]}}`), "blocks d with.cases: Step 1 “D”: it has no case to decide between."},
		"no condition":  {docWith(strings.Replace(ifThen("d", ""), `input.a == \"x\"`, ``, 1)), "“If yes” has no condition."},
		"case id":       {docWith(strings.Replace(ifThen("d", ""), `"yes"`, `"otherwise"`, 1)), "the id “otherwise” of case 1 is taken."},
		"always":        {docWith(strings.Replace(ifThen("d", ""), `"when":"input.a == \"x\"","steps":[]}]`, `"when":"true","steps":[]}],"otherwise":[`+setStep+`]`, 1)), "warning d with.cases[0].when: Step 1 “Decide”: “If yes” always holds"},
		"never":         {docWith(strings.Replace(ifThen("d", ""), `input.a == \"x\"`, `false`, 1)), "“If yes” never holds."},
		"no values":     {docWith(`{"id":"c","name":"C","kind":"set","with":{"values":[]}}`), "it computes nothing yet. Add a value."},
		"empty formula": {docWith(valueOf("c", " ")), "“v” has no value yet."},
		"stop":          {docWith(`{"id":"end","name":"End","kind":"stop","with":{}}`, setStep), "warning calc : Step 2 “Calc”: it is never reached, because Step 1 “End” ends the run before it."},
		"loop limits":   {docWith(`{"id":"r","name":"R","kind":"repeat","with":{"steps":[` + setStep + `],"until":"true","max_rounds":0,"max_cost":0,"max_time":"1h","at_limit":"fail"}}`), "it may run 0 rounds. Choose from 1 to 1000."},
		"tries":         {docWith(strings.Replace(setStep, `"kind"`, `"retry":{"attempts":99},"kind"`, 1)), "it is to be tried 99 times. Choose from 1 to 20."},

		"formula":         {docWith(valueOf("c", "1 +")), "blocks c with.values[0].formula: Step 1 “Use”: Value “v”, line 1, column 4: The formula ends too early."},
		"text":            {docWith(strings.Replace(aiStep, `{{ input.a }}`, `Hi\n{{ nope }}`, 1)), "blocks ask with.prompt: Step 1 “Ask”: Prompt, line 2, column 4: “nope” is not known here."},
		"no such input":   {docWith(valueOf("c", "input.b")), "Value “v” uses “input.b”, but the input has no “b”. It has: “a”, “note”, “file”."},
		"optional input":  {docWith(valueOf("c", "input.note + 'x'")), "warning c with.values[0].formula: Step 1 “Use”: Value “v” uses “input.note”, which may be empty, because “Note” does not have to be filled in."},
		"file part":       {docWith(valueOf("c", "input.file.colour")), "but “file” has no “colour”. It has: “name”, “type”"},
		"file eml part":   {docWith(valueOf("c", "input.file.subject")), "warning c with.values[0].formula: Step 1 “Use”: Value “v” uses “input.file.subject”, which may be empty"},
		"no such run":     {docWith(valueOf("c", "run.colour")), "but run has no “colour”."},
		"all steps":       {docWith(valueOf("c", "size(steps)")), "uses all steps at once."},
		"no such step":    {docWith(valueOf("c", "steps.nope.x")), "uses step “nope”, which does not exist."},
		"itself":          {docWith(valueOf("c", "steps.c.v")), "which is the step itself."},
		"later":           {docWith(valueOf("c", "steps.calc.x"), setStep), "blocks c with.values[0].formula: Step 1 “Use”: Value “v” uses “steps.calc.x” of Step 2 “Calc”, which comes later. Move this step down or pick another value."},
		"around":          {docWith(ifThen("d", valueOf("c", "steps.d.case"))), "which is not finished before the steps inside it are."},
		"no such output":  {docWith(aiStep, valueOf("c", "steps.ask.whom")), "but it has no “whom”. It has: “who”, “opt”, “total”."},
		"money part":      {docWith(aiStep, valueOf("c", "steps.ask.total.sum")), "but “total” has no “sum”. It has: “amount”, “currency”."},
		"optional answer": {docWith(aiStep, valueOf("c", "steps.ask.opt")), "which may be empty, because “opt” does not have to be filled in."},
		"maybe not run":   {docWith(ifThen("d", setStep), valueOf("c", "steps.calc.x")), "warning c with.values[0].formula: Step 2 “Use”: Value “v” uses “steps.calc.x”, which may be empty, because its step runs only in some cases. Say what to take then with default(…)"},
		"other case":      {docWith(`{"id":"d","name":"D","kind":"branch","with":{"cases":[{"id":"yes","name":"Y","when":"input.a == \"\"","steps":[` + setStep + `]}],"otherwise":[` + valueOf("c", "steps.calc.x") + `]}}`), "blocks c with.values[0].formula: Step 1b “Use”: Value “v” uses “steps.calc.x” of Step 1a “Calc”, which is in another case"},
		"item":            {docWith(valueOf("c", "item.x")), "uses “item”, which exists only inside “Do for each at once”."},
		"round":           {docWith(valueOf("c", "round")), "uses “round”, which exists only inside “Repeat until”."},
		"inside each":     {docWith(`{"id":"e","name":"E","kind":"each","with":{"items":"[1]","at_once":1,"steps":[`+setStep+`]}}`, valueOf("c", "steps.calc.x")), "which runs once for each item. Use the results of Step 1 “E” instead."},
		"round before":    {docWith(`{"id":"r","name":"R","kind":"repeat","with":{"steps":[` + valueOf("c", "steps.calc.x") + `,` + setStep + `],"until":"steps.calc.x > 1","max_rounds":2,"max_cost":1,"max_time":"1h","at_limit":"fail"}}`), "warning c with.values[0].formula: Step 1a “Use”: Value “v” uses “steps.calc.x”, which may be empty, because it is from the round before"},
		"side by side":    {docWith(`{"id":"p","name":"P","kind":"parallel","with":{"branches":[{"id":"l","name":"L","steps":[` + setStep + `]},{"id":"m","name":"M","steps":[` + valueOf("c", "steps.calc.x") + `]}]}}`), "which runs at the same time."},

		"AI picks the address":    {docWith(aiStep, emailStep(`"to":["{{ steps.ask.who }}"],"subject":"s","body":"b"`)), "warning send with.to[0]: Step 2 “Send reply”: an AI chooses who gets this mail, and nobody checks it."},
		"AI picks it indirectly":  {docWith(aiStep, valueOf("c", "steps.ask.who"), emailStep(`"to":["{{ steps.c.v }}"],"subject":"s","body":"b"`)), "an AI chooses who gets this mail"},
		"review in one case only": {docWith(aiStep, ifThen("d", reviewStep), emailStep(`"to":["{{ steps.ask.who }}"],"subject":"s","body":"b"`)), "an AI chooses who gets this mail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Parse([]byte(c.doc))
			require.NoError(t, err)
			all := lines(Check(d))
			require.Contains(t, strings.Join(all, "\n"), c.want)
			for _, p := range Check(d) {
				require.NotContains(t, p.Message, "\n")
				require.Regexp(t, `[.)]$`, p.Message)
			}
		})
	}
}

func TestCheckIsQuietAboutWhatIsFine(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"guarded input":  docWith(valueOf("c", "default(input.note, '') + input.a")),
		"asked for":      docWith(valueOf("c", "has(input.note) ? 1 : 2")),
		"guarded case":   docWith(ifThen("d", setStep), valueOf("c", "default(steps.calc.x, 0)")),
		"within a case":  docWith(ifThen("d", setStep+","+valueOf("c", "steps.calc.x"))),
		"outer from in":  docWith(setStep, ifThen("d", valueOf("c", "steps.calc.x"))),
		"verdict":        docWith(reviewStep, valueOf("c", "steps.ok.verdict + steps.ok.comment")),
		"case":           docWith(ifThen("d", setStep), valueOf("c", "default(steps.d.case, '')")),
		"run":            docWith(valueOf("c", "run.name + run.id")),
		"reviewed":       docWith(aiStep, reviewStep, ifThen("d", emailStep(`"to":["{{ steps.ask.who }}"],"subject":"s","body":"b"`))),
		"fixed address":  docWith(aiStep, emailStep(`"to":["a@b.example, c@d.example"],"subject":"{{ steps.ask.who }}","body":"b"`)),
		"input address":  docWith(aiStep, emailStep(`"to":["{{ input.a }}"],"subject":"s","body":"b"`)),
		"markup in name": docWith(strings.Replace(setStep, `"Calc"`, `"<img src=x onerror=alert(1)>"`, 1)),
	} {
		d, err := Parse([]byte(doc))
		require.NoError(t, err)
		require.Empty(t, lines(Check(d)), name)
	}
}

func TestCheckNamesTheLimits(t *testing.T) {
	t.Parallel()
	deep := setStep
	for i := range MaxNesting {
		deep = ifThen(fmt.Sprintf("d%d", i), deep)
	}
	d, err := Parse([]byte(docWith(deep)))
	require.NoError(t, err)
	require.Contains(t, strings.Join(lines(Check(d)), "\n"), "steps sit inside steps more than 8 deep here")

	d, err = Parse([]byte(docWith(ifThen("d", setStep))))
	require.NoError(t, err)
	require.Empty(t, Check(d))

	many := Document{Semantics: Semantics, Name: "Many"}
	for i := range MaxSteps + 1 {
		many.Steps = append(many.Steps, Step{ID: fmt.Sprint("s", i), Name: "n", Kind: KindSet, With: &Set{Values: []Value{{"x", "1"}}}})
	}
	require.Contains(t, strings.Join(lines(Check(many)), "\n"), "more than 1000 steps")
	many.Steps = many.Steps[:MaxSteps]
	require.Empty(t, Check(many))
	many.Note = strings.Repeat("x", MaxDocument)
	require.Contains(t, strings.Join(lines(Check(many)), "\n"), "at most 1048576 are possible")
}

// Documents that Go code made without Parse are checked, too, not trusted.
func TestCheckSurvivesHandMadeDocuments(t *testing.T) {
	t.Parallel()
	for _, d := range []Document{
		{}, {Steps: []Step{{}}}, {Steps: []Step{{ID: "a", Kind: KindAI}}}, {Steps: []Step{{ID: "a", Kind: KindAI, With: &Set{}}}},
		{Steps: []Step{{ID: "a", Kind: "no\nsuch", With: &Set{}}}},
		{Steps: []Step{{ID: "b", Kind: KindBranch, With: &Branch{Cases: []Case{{ID: "x", Steps: []Step{{}, {}}}, {ID: "x", Steps: []Step{{Kind: KindStop, With: &Stop{}}, {}, {}}}}}}}},
		{Input: []Field{{Type: TypeList}}, Steps: []Step{{OnError: []Catch{{Do: CatchAsk}, {Do: CatchSteps}}}}},
	} {
		require.NotEmpty(t, Blocking(Check(d)))
		_, err := Compile(d)
		var bad *Invalid
		require.ErrorAs(t, err, &bad)
		require.NotEmpty(t, err.Error())
	}
}

func TestProgramsKnowTheirPlaces(t *testing.T) {
	t.Parallel()
	doc := docWith(aiStep, `{"id":"d","name":"D","kind":"branch","with":{"cases":[
		{"id":"yes","name":"Y","when":"steps.ask.who == \"x\"","steps":[`+setStep+`,`+ifThen("inner", valueOf("deep", "1"))+`]},
		{"id":"no","name":"N","when":"steps.ask.total.amount > 5","steps":[]}],
		"otherwise":[`+valueOf("other", "input.a")+`]}}`, emailStep(`"to":["{{ input.a }}"],"cc":["x@y.example"],"subject":"{{ run.name }}","body":"{{ steps.ask.total }}"`))
	d, err := Parse([]byte(doc))
	require.NoError(t, err)
	p, err := Compile(d)
	require.NoError(t, err)
	require.Len(t, p.Roots(), 3)
	require.Nil(t, p.Node("nope"))
	require.Nil(t, p.RunName())

	var numbers []string
	for _, id := range []string{"ask", "d", "calc", "inner", "deep", "other", "send"} {
		n := p.Node(id)
		require.Equal(t, id, n.ID())
		numbers = append(numbers, n.Number)
	}
	require.Equal(t, []string{"1", "2", "2a", "2b", "2b1", "2c", "3"}, numbers)

	branch := p.Node("d")
	cases := branch.Branch().Cases
	require.Len(t, cases, 3)
	require.Equal(t, []ListKey{"yes", "no", ListOtherwise}, []ListKey{cases[0].Key, cases[1].Key, cases[2].Key})
	require.NotNil(t, cases[0].When)
	require.NotNil(t, cases[1].When)
	require.Nil(t, cases[2].When)
	require.Same(t, branch, p.Node("calc").Parent)
	require.Equal(t, 1, p.Node("inner").Index)
	require.Same(t, p.Node("other"), branch.Child(ListOtherwise).Nodes[0])
	require.Nil(t, branch.Child("nope"))

	var refs []string
	for _, r := range append(branch.Refs(), p.Node("send").Refs()...) {
		refs = append(refs, r.String())
	}
	require.Equal(t, []string{"steps.ask.who", "steps.ask.total.amount", "input.a", "run.name", "steps.ask.total"}, refs)

	ai := p.Node("ask").AI()
	require.Equal(t, DefaultAnswerTokens, ai.MaxTokens)
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["who","opt","total"],"properties":{
		"who":{"type":"string"},"opt":{"type":["string","null"]},
		"total":{"type":"object","additionalProperties":false,"required":["amount","currency"],"properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}}}`,
		string(answerSchema(ai.Answer)))
	require.Nil(t, p.Node("ask").Review())
	require.Nil(t, p.Node("ask").Email())
	require.Nil(t, p.Node("send").Email().ReplyTo)
}

func TestReviewsGetTheirDefaults(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(docWith(reviewStep)))
	require.NoError(t, err)
	p, err := Compile(d)
	require.NoError(t, err)
	r := p.Node("ok").Review()
	require.Equal(t, PolicyAny, r.Rule)
	require.Equal(t, DeadlineFail, r.OnDeadline)
	require.Equal(t, ProofLink, r.Proof)
	require.False(t, r.AllowRequester)
	require.Equal(t, Labels{"Approve", "Reject", "Ask for changes"}, r.Labels)
	require.Equal(t, "24h0m0s", r.Due.String())
	require.Nil(t, r.Body)
	require.Nil(t, r.Proposal)
}
