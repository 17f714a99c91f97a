package pipeline

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangesAreSentences(t *testing.T) {
	t.Parallel()
	base := func() Document {
		limit := int64(2_000_000)
		d := nest()
		d.RunCap = &limit
		d.Input = []Field{{Name: "mail", Label: "Mail", Type: TypeText}}
		d.Steps = append(d.Steps, Step{ID: "ask", Name: "Ask", Kind: KindAI, With: &AI{
			Models: []string{"a/one"}, Prompt: "Read it all", Answer: []Field{{Name: "total", Label: "Total", Type: TypeNumber}}, MaxCost: 500_000,
		}})
		return d
	}
	edit := func(id string, change func(*Step)) func(Document) Document {
		return func(d Document) Document {
			d, err := d.WithChanged(id, func(s *Step) error { change(s); return nil })
			require.NoError(t, err)
			return d
		}
	}
	ask := func(change func(*AI)) func(Document) Document {
		return edit("ask", func(s *Step) { change(s.With.(*AI)) })
	}
	must := func(d Document, err error) Document { require.NoError(t, err); return d }
	for name, c := range map[string]struct {
		change func(Document) Document
		want   []string
	}{
		"nothing": {func(d Document) Document { d.Semantics = 1; return d }, nil},
		"name":    {func(d Document) Document { d.Name = "New"; return d }, []string{"The name changes from “Nest” to “New”."}},
		"cap":     {func(d Document) Document { d.RunCap = nil; return d }, []string{"The most a run may cost is removed."}},
		"a field": {func(d Document) Document {
			d.Input = append(d.Input, Field{Name: "x", Label: "Extra", Type: TypeText})
			return d
		}, []string{"The field “Extra” is added."}},
		"no field":    {func(d Document) Document { d.Input = nil; return d }, []string{"The field “Mail” is removed."}},
		"rename":      {edit("a", func(s *Step) { s.Name = "First" }), []string{"Step 1 “a” is now called “First”."}},
		"model":       {ask(func(a *AI) { a.Models = []string{"b/two"} }), []string{"Step 4 “Ask”: the model changes from “a/one” to “b/two”."}},
		"prompt":      {ask(func(a *AI) { a.Prompt = "Read it" }), []string{"Step 4 “Ask”: the prompt changes."}},
		"money":       {ask(func(a *AI) { a.MaxCost = 1_250_000 }), []string{"Step 4 “Ask”: the most it may cost changes from “$0.50” to “$1.25”."}},
		"answer type": {ask(func(a *AI) { a.Answer[0].Type = TypeText }), []string{"Step 4 “Ask”: the type of “Total” changes from “number” to “text”."}},
		"answer gone": {ask(func(a *AI) { a.Answer = nil }), []string{"Step 4 “Ask”: the answer field “Total” is removed."}},
		"condition":   {edit("b", func(s *Step) { s.With.(*Branch).Cases[0].When = "true" }), []string{"Step 2 “b”: the condition of “Yes” changes from “steps.a.v > 1” to “true”."}},
		"added": {func(d Document) Document {
			d, _, err := d.WithStep(Place{Parent: "b", List: "yes"}, KindStop, "")
			return must(d, err)
		}, []string{"Step 2a “Stop” is added inside “b”: stop."}},
		"removed":      {func(d Document) Document { return must(d.WithoutStep("b")) }, []string{"“b” is removed, with 3 steps inside."}},
		"turned off":   {func(d Document) Document { return must(d.WithSwitched("b", true)) }, []string{"“b” is turned off, with 3 steps inside."}},
		"moved along":  {func(d Document) Document { return must(d.WithNudged("a", false)) }, []string{"Step 2 “a” is moved."}},
		"moved inside": {func(d Document) Document { return must(d.WithMoved("a", Place{Parent: "f", List: ListSteps})) }, []string{"Step 2a “a” is moved inside “f”."}},
		"on error":     {edit("a", func(s *Step) { s.OnError = []Catch{{Do: CatchFail}} }), []string{"Step 1 “a”: the answer to failures “1” is added."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var says []string
			for _, change := range Changes(base(), c.change(base())) {
				says = append(says, change.Says)
			}
			require.Equal(t, c.want, says)
		})
	}
}

// Two documents that run differently differ in a sentence, and the same ones in none.
func TestNoChangeIsOverlooked(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		before := nest()
		for range 10 {
			before = editAtRandom(r, before)
		}
		after := before
		for range 4 {
			after = editAtRandom(r, after)
		}
		require.Empty(t, Changes(before, clone(before)))
		if string(before.Active().JSON()) != string(after.Active().JSON()) {
			require.NotEmpty(t, Changes(before, after), "%s\n%s", before.JSON(), after.JSON())
		}
	}
}

func TestEverySettingIsCompared(t *testing.T) {
	t.Parallel()
	d := full(t)
	d = d.Active()
	for i := range d.Steps {
		d.Steps[i].Off = false
	}
	require.Empty(t, Changes(d, clone(d)))
}

func TestDiffWordsMakesUpBothTexts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	text := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString([]string{"one", " ", "two", "\n", "drei", ", ", "é", "{{ x }}"}[r.IntN(8)])
		}
		return b.String()
	}
	for range 500 {
		before, after := text(), text()
		var old, new string
		for _, run := range DiffWords(before, after) {
			if !run.Added {
				old += run.Text
			}
			if !run.Removed {
				new += run.Text
			}
		}
		require.Equal(t, before, old)
		require.Equal(t, after, new)
	}
	require.Equal(t, []WordRun{{Text: "Read "}, {Text: "all", Removed: true}, {Text: "some", Added: true}, {Text: " mails"}}, DiffWords("Read all mails", "Read some mails"))
}
