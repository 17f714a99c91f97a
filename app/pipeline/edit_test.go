package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nest is a document with a decision, a loop and a list, to be edited.
func nest() Document {
	set := func(id, formula string) Step {
		return Step{ID: id, Name: id, Kind: KindSet, With: &Set{Values: []Value{{"v", formula}}}}
	}
	return Document{Semantics: Semantics, Name: "Nest", Steps: []Step{
		set("a", "1"),
		{ID: "b", Name: "b", Kind: KindBranch, With: &Branch{
			Cases:     []Case{{ID: "yes", Name: "Yes", When: "steps.a.v > 1", Steps: []Step{set("c", "steps.a.v"), set("d", "steps.c.v")}}},
			Otherwise: []Step{set("e", "2")},
		}},
		{ID: "f", Name: "f", Kind: KindRepeat, With: &Repeat{Until: "steps.g.v > 2", MaxRounds: 3, MaxCost: 1, MaxTime: DefaultLoopTime, AtLimit: LimitFail, Steps: []Step{set("g", "default(steps.g.v, 0) + 1")}}},
	}, Result: []Value{{"v", "steps.a.v"}}}
}

// order spells the ids of a document as they nest.
func order(d Document) string {
	var spell func([]Step) string
	spell = func(steps []Step) string {
		var out []string
		for i := range steps {
			word := steps[i].ID
			for _, inner := range steps[i].inside() {
				word += "(" + spell(*inner.steps) + ")"
			}
			out = append(out, word)
		}
		return strings.Join(out, " ")
	}
	return spell(d.Steps)
}

func TestStepsAreEdited(t *testing.T) {
	t.Parallel()
	at := func(parent string, list ListKey, i int) Place { return Place{parent, list, i} }
	add := func(p Place, k Kind) func(Document) (Document, error) {
		return func(d Document) (Document, error) { d, _, err := d.WithStep(p, k, ""); return d, err }
	}
	move := func(id string, p Place) func(Document) (Document, error) {
		return func(d Document) (Document, error) { return d.WithMoved(id, p) }
	}
	nudge := func(id string, up bool) func(Document) (Document, error) {
		return func(d Document) (Document, error) { return d.WithNudged(id, up) }
	}
	cases := map[string]struct {
		edit func(Document) (Document, error)
		want string // or the beginning of what is refused
	}{
		"add first":        {add(at("", "", 0), KindAI), "ask_ai a b(c d)(e) f(g)"},
		"add last":         {add(at("", "", 9), KindStop), "a b(c d)(e) f(g) stop"},
		"add in a case":    {add(at("b", "yes", 1), KindWait), "a b(c wait_until d)(e) f(g)"},
		"add otherwise":    {add(at("b", ListOtherwise, 0), KindSet), "a b(c d)(change_data e) f(g)"},
		"add a decision":   {add(at("f", ListSteps, 1), KindBranch), "a b(c d)(e) f(g decide()())"},
		"add nowhere":      {add(at("x", ListSteps, 0), KindSet), "The step around"},
		"add in no list":   {add(at("b", "no", 0), KindSet), "“b” has no such list"},
		"add nothing":      {add(at("", "", 0), "teleport"), "“teleport” is not"},
		"remove":           {func(d Document) (Document, error) { return d.WithoutStep("b") }, "a f(g)"},
		"remove inner":     {func(d Document) (Document, error) { return d.WithoutStep("c") }, "a b(d)(e) f(g)"},
		"remove none":      {func(d Document) (Document, error) { return d.WithoutStep("z") }, "This step is not"},
		"down":             {nudge("a", false), "b(c d)(e) a f(g)"},
		"up":               {nudge("f", true), "a f(g) b(c d)(e)"},
		"up at the top":    {nudge("a", true), "This step is the first"},
		"down at the end":  {nudge("d", false), "This step is the last"},
		"move into a case": {move("a", at("b", "yes", 2)), "b(c d a)(e) f(g)"},
		"move out":         {move("c", at("", "", 0)), "c a b(d)(e) f(g)"},
		"move along":       {move("a", at("", "", 3)), "b(c d)(e) f(g) a"},
		"move a group":     {move("b", at("f", ListSteps, 0)), "a f(b(c d)(e) g)"},
		"move into itself": {move("b", at("b", "yes", 0)), "A step cannot be moved into itself"},
		"move to nowhere":  {move("a", at("zz", "yes", 0)), "The step around"},
		"copy":             {func(d Document) (Document, error) { d, _, err := d.WithCopy("b"); return d, err }, "a b(c d)(e) b_2(c_2 d_2)(e_2) f(g)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := nest()
			before := string(d.JSON())
			changed, err := c.edit(d)
			require.Equal(t, before, string(d.JSON()), "the document itself is left alone")
			if err != nil {
				var bad *BadEdit
				require.ErrorAs(t, err, &bad)
				require.True(t, strings.HasPrefix(bad.Reason, c.want), bad.Reason)
				return
			}
			require.Equal(t, c.want, order(changed))
			_, err = Parse(changed.JSON())
			require.NoError(t, err)
		})
	}
}

func TestCopiedStepsReadEachOther(t *testing.T) {
	t.Parallel()
	d, id, err := nest().WithCopy("b")
	require.NoError(t, err)
	require.Equal(t, "b_2", id)
	s, _, _ := d.StepAt("d_2")
	require.Equal(t, "steps.c_2.v", s.With.(*Set).Values[0].Formula)
	s, _, _ = d.StepAt("c_2")
	require.Equal(t, "steps.a.v", s.With.(*Set).Values[0].Formula, "what is outside of the copy is read as before")
	s, _, _ = d.StepAt("d")
	require.Equal(t, "steps.c.v", s.With.(*Set).Values[0].Formula)
}

func TestRereadKnowsFormulasFromWords(t *testing.T) {
	t.Parallel()
	renamed := map[string]string{"one": "uno"}
	for source, want := range map[string]string{
		`steps.one.v`:                               `steps.uno.v`,
		`steps.one`:                                 `steps.uno`,
		`steps.one_more.v + steps.one.v`:            `steps.one_more.v + steps.uno.v`,
		`"steps.one.v" + steps.one.v`:               `"steps.one.v" + steps.uno.v`,
		`"a \" steps.one" + steps.one.v`:            `"a \" steps.one" + steps.uno.v`,
		`item.steps.one + mysteps.one`:              `item.steps.one + mysteps.one`,
		`Hi "x {{ steps.one.v }}" {{callback.one}}`: `Hi "x {{ steps.uno.v }}" {{callback.uno}}`,
		`[steps.one.v][0]`:                          `[steps.uno.v][0]`,
	} {
		require.Equal(t, want, reread(source, renamed))
	}
}

func TestTooDeepAndTooManyAreRefused(t *testing.T) {
	t.Parallel()
	d := Document{Semantics: Semantics, Name: "Deep"}
	at := Place{}
	for range MaxNesting {
		var err error
		var id string
		d, id, err = d.WithStep(at, KindEach, "")
		require.NoError(t, err)
		at = Place{Parent: id, List: ListSteps}
	}
	_, _, err := d.WithStep(at, KindSet, "")
	require.ErrorContains(t, err, "at most 8 are possible")

	many := Document{Semantics: Semantics, Name: "Many"}
	for i := range MaxSteps {
		many.Steps = append(many.Steps, Step{ID: fmt.Sprintf("s%d", i), Name: "s", Kind: KindSet, With: &Set{}})
	}
	_, _, err = many.WithStep(Place{}, KindSet, "")
	require.ErrorContains(t, err, "more than 1000 steps")
}

func TestTurnedOffStepsAreLeftOut(t *testing.T) {
	t.Parallel()
	d, err := nest().WithSwitched("c", true)
	require.NoError(t, err)
	require.Equal(t, "a b(d)(e) f(g)", order(d.Active()))
	require.Equal(t, "a b(c d)(e) f(g)", order(d))
	sketch := Sketch(d)
	require.Empty(t, sketch.Node("c").Number)
	require.Equal(t, "2a", sketch.Node("d").Number)
	require.Equal(t, "2b", sketch.Node("e").Number)
	var told []string
	for _, p := range Blocking(Check(d)) {
		if p.Step == "d" {
			told = append(told, p.Message)
		}
	}
	require.Len(t, told, 1)
	require.Contains(t, told[0], "Step 2a “d”", "checks and the outline count alike")
	require.Contains(t, told[0], "“c”, which is turned off. Turn it on, or pick another value.")

	group, err := nest().WithSwitched("b", true)
	require.NoError(t, err)
	require.Equal(t, "a f(g)", order(group.Active()))
	require.Equal(t, "2", Sketch(group).Node("f").Number)
	on, err := group.WithSwitched("b", false)
	require.NoError(t, err)
	require.Equal(t, string(nest().JSON()), string(on.JSON()))
}

// Whatever is done to a document in whatever order, ids stay unique, nothing nests too
// deep, and the document survives its own form.
func TestEditsKeepTheDocumentSound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := nest()
		for range 60 {
			d = editAtRandom(r, d)
			seen := map[string]bool{}
			for i := range d.Steps {
				require.LessOrEqual(t, d.Steps[i].Levels(), MaxNesting)
				d.Steps[i].each(func(s *Step) {
					require.False(t, seen[s.ID], "%s twice", s.ID)
					seen[s.ID] = true
				})
			}
			again, err := Parse(d.JSON())
			require.NoError(t, err)
			require.Equal(t, order(d), order(again))
		}
	}
}

func editAtRandom(r *rand.Rand, d Document) Document {
	all := grow(&d).all
	pick := func() string {
		if len(all) == 0 {
			return ""
		}
		return all[r.IntN(len(all))].ID()
	}
	place := func() Place {
		s, _, ok := d.StepAt(pick())
		if !ok || len(s.inside()) == 0 {
			return Place{Index: r.IntN(5)}
		}
		lists := s.inside()
		return Place{s.ID, lists[r.IntN(len(lists))].key, r.IntN(4)}
	}
	var changed Document
	var err error
	switch r.IntN(6) {
	case 0:
		changed, _, err = d.WithStep(place(), Kinds()[r.IntN(len(Kinds()))], "")
	case 1:
		changed, err = d.WithMoved(pick(), place())
	case 2:
		changed, _, err = d.WithCopy(pick())
	case 3:
		changed, err = d.WithoutStep(pick())
	case 4:
		changed, err = d.WithNudged(pick(), r.IntN(2) == 0)
	default:
		changed, err = d.WithSwitched(pick(), r.IntN(2) == 0)
	}
	if err != nil {
		return d
	}
	return changed
}

// Every list that a kind tells of can be edited.
func TestEveryListOfStepsCanBeEdited(t *testing.T) {
	t.Parallel()
	d := full(t)
	for i := range d.Steps {
		s := &d.Steps[i]
		for k := range s.OnError {
			s.OnError[k].Do = CatchSteps
		}
		told, lists := listsOf(s), s.inside()
		require.Len(t, lists, len(told), s.Kind)
		for k := range told {
			require.Equal(t, told[k].key, lists[k].key)
			require.Len(t, *lists[k].steps, len(told[k].steps))
		}
	}
}
