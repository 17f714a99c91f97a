package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func onError(step, entries string) string {
	return strings.Replace(step, `"kind"`, `"on_error":[`+entries+`],"kind"`, 1)
}

func TestCheckOfWhatIsDoneAboutFailures(t *testing.T) {
	t.Parallel()
	each := `{"id":"e","name":"E","kind":"each","with":{"items":"[1]","at_once":1,"steps":[` + setStep + `]}}`
	for name, c := range map[string]struct{ doc, want string }{
		"no steps":              {docWith(onError(setStep, `{"do":"steps"}`)), "blocks calc on_error[0].steps: Step 1 “Calc”: “if it fails” has no steps to run."},
		"no value":              {docWith(onError(setStep, `{"do":"default"}`)), "has no value to go on with. Enter one."},
		"no question":           {docWith(onError(setStep, `{"do":"ask"}`)), "has no question to ask. Enter it and choose people."},
		"bad class":             {docWith(onError(setStep, `{"classes":["Rate Limit"],"do":"fail"}`)), "blocks calc on_error[0].classes[0]: Step 1 “Calc”: “Rate Limit” is not the name of a failure."},
		"bad exception":         {docWith(onError(setStep, `{"do":"fail","exception":"No!"}`)), "“No!” is not the name of an exception."},
		"never reached":         {docWith(onError(setStep, `{"do":"fail"},{"do":"default","default":1}`)), "warning calc on_error[1]: Step 1 “Calc”: “if it fails” has an entry that is never reached"},
		"a code of the ask":     {docWith(onError(setStep, `{"do":"ask","ask":{"question":"Well?","people":[{"everyone":true}],"proof":"link_code"}}`)), "blocks calc on_error[0].ask.proof"},
		"error outside":         {docWith(valueOf("c", "error.message")), "uses “error.message”, which exists only in what is done “if it fails”."},
		"error's parts":         {docWith(onError(setStep, `{"do":"steps","steps":[`+valueOf("c", "error.colour")+`]}`)), "but the failure has no “colour”. It has: “class”, “name”, “message”, “step”."},
		"item behind its list":  {docWith(onError(each, `{"do":"steps","steps":[`+valueOf("c", "item")+`]}`)), "uses “item”, which exists only inside"},
		"inside a failed list":  {docWith(onError(each, `{"do":"steps","steps":[`+valueOf("c", "steps.calc.x")+`]}`)), "which ran in an item or round that failed."},
		"inside a failed case":  {docWith(onError(ifThen("d", setStep), `{"do":"steps","steps":[`+valueOf("c", "steps.calc.x")+`]}`)), "may be empty, because it may be what failed."},
		"what may be missing":   {docWith(onError(setStep, `{"do":"default","default":{"y":1}}`), valueOf("c", "steps.calc.x")), "warning c with.values[0].formula: Step 2 “Use”: Value “v” uses “steps.calc.x”, which may be empty, because the step may fail"},
		"what the default adds": {docWith(onError(setStep, `{"do":"default","default":{"y":1}}`), valueOf("c", "steps.calc.y")), "warning c"},
		"AI behind a failure":   {docWith(onError(setStep, `{"do":"steps","steps":[`+aiStep+`]}`), emailStep(`"to":["{{ default(steps.calc.who, '') }}"],"subject":"s","body":"b"`)), "an AI chooses who gets this mail"},
		"review gone past":      {docWith(aiStep, onError(reviewStep, `{"do":"default","default":1}`), emailStep(`"to":["{{ steps.ask.who }}"],"subject":"s","body":"b"`)), "an AI chooses who gets this mail"},
	} {
		d, err := Parse([]byte(c.doc))
		require.NoError(t, err, name)
		require.Contains(t, strings.Join(lines(Check(d)), "\n"), c.want, name)
	}
}

func TestFailuresThatAreHandledWell(t *testing.T) {
	t.Parallel()
	loop := `{"id":"r","name":"R","kind":"repeat","with":{"steps":[` +
		onError(setStep, `{"classes":["formula","exception"],"do":"steps","steps":[`+valueOf("c", "text(round) + error.name + error.step")+`]}`) +
		`],"until":"true","max_rounds":2,"max_cost":1,"max_time":"1h","at_limit":"fail"}}`
	for _, doc := range []string{
		docWith(loop),
		docWith(onError(setStep, `{"do":"default","default":{"x":1}}`), valueOf("c", "steps.calc.x")),
		docWith(onError(setStep, `{"do":"ask","ask":{"question":"{{ error.message }}?","people":[{"everyone":true}],"due":"1d"}}`)),
		docWith(onError(setStep, `{"do":"fail","exception":"on_hold","message":"{{ error.class }}"}`)),
	} {
		d, err := Parse([]byte(doc))
		require.NoError(t, err)
		require.Empty(t, lines(Check(d)), doc)
		again, err := Parse(d.JSON())
		require.NoError(t, err)
		require.Equal(t, string(d.JSON()), string(again.JSON()))
	}
}

func TestEntriesFitTheirFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		classes []string
		class   string
		raised  bool
		fits    bool
	}{
		{nil, "server", false, true}, {nil, "on_hold", true, true},
		{[]string{"server"}, "server", false, true}, {[]string{"server"}, "timeout", false, false},
		{[]string{"on_hold"}, "on_hold", true, true}, {[]string{"exception"}, "on_hold", true, true},
		{[]string{"exception"}, "server", false, false},
	} {
		entry := CompiledCatch{Classes: c.classes}
		require.Equal(t, c.fits, entry.Fits(c.class, c.raised), "%+v", c)
	}
}

// An address is for one execution, so it can be handed on only where it is clear which.
func TestCheckOfAddresses(t *testing.T) {
	t.Parallel()
	signed := `{"id":"signed","name":"Signed","kind":"event","with":{"name":"signed","callback":true,"deadline":"1d"}}`
	for name, c := range map[string]struct{ doc, want string }{
		"beside":      {docWith(valueOf("c", "callback.signed"), signed), ""},
		"inside":      {docWith(ifThen("d", valueOf("c", "callback.signed")), signed), ""},
		"too late":    {docWith(signed, valueOf("c", "callback.signed")), "must come later in the same list of steps"},
		"out of it":   {docWith(valueOf("c", "callback.signed"), ifThen("d", signed)), "must come later in the same list of steps"},
		"no address":  {docWith(valueOf("c", "callback.calc"), setStep), "the address of Step 2 “Calc”, which has none."},
		"no step":     {docWith(valueOf("c", "callback.nope")), "step “nope”, which does not exist."},
		"all of them": {docWith(valueOf("c", "callback"), signed), "Name the step that waits for the answer"},
		"a part":      {docWith(valueOf("c", "callback.signed.x"), signed), "Name the step that waits for the answer"},
		"with a key":  {docWith(strings.Replace(signed, `"callback"`, `"key":"k","callback"`, 1)), "a key means nothing"},
	} {
		d, err := Parse([]byte(c.doc))
		require.NoError(t, err, name)
		all := lines(Check(d))
		if c.want == "" {
			require.Empty(t, all, name)
			require.Equal(t, 3, d.needs())
			continue
		}
		require.Contains(t, strings.Join(all, "\n"), c.want, name)
	}
}
