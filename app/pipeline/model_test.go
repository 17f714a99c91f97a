package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func asks(id string, models ...string) Step {
	return Step{ID: id, Name: id, Kind: KindAI, With: &AI{Models: models, Prompt: "Read it."}}
}

func TestModelIsReplacedAtAnyDepth(t *testing.T) {
	t.Parallel()
	branch := func(steps ...Step) Step {
		return Step{ID: "b", Kind: KindBranch, With: &Branch{Cases: []Case{{ID: "yes", When: "true", Steps: steps}}, Otherwise: []Step{asks("o", "a/other")}}}
	}
	cases := map[string]struct {
		steps []Step
		had   []string
	}{
		"nothing asks":        {[]Step{{ID: "s", Kind: KindSet, With: &Set{}}}, nil},
		"one":                 {[]Step{asks("x", "a/one")}, []string{"a/one"}},
		"no model":            {[]Step{asks("x")}, nil},
		"a chain":             {[]Step{asks("x", "a/one", "a/two"), asks("y", "a/two", "a/three")}, []string{"a/one", "a/two", "a/three"}},
		"a case":              {[]Step{branch(asks("x", "a/one"))}, []string{"a/one", "a/other"}},
		"a case in a case":    {[]Step{branch(branch(asks("x", "a/one")))}, []string{"a/one", "a/other"}},
		"repeat":              {[]Step{{ID: "r", Kind: KindRepeat, With: &Repeat{Steps: []Step{asks("x", "a/one")}}}}, []string{"a/one"}},
		"each":                {[]Step{{ID: "e", Kind: KindEach, With: &Each{Steps: []Step{branch(asks("x", "a/one"))}}}}, []string{"a/one", "a/other"}},
		"parallel":            {[]Step{{ID: "p", Kind: KindParallel, With: &Parallel{Branches: []Lane{{ID: "l", Steps: []Step{asks("x", "a/one")}}, {ID: "m", Steps: []Step{asks("y", "a/two")}}}}}}, []string{"a/one", "a/two"}},
		"what a failure does": {[]Step{{ID: "s", Kind: KindSet, With: &Set{}, OnError: []Catch{{Do: CatchSteps, Steps: []Step{asks("x", "a/one")}}}}}, []string{"a/one"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Document{Semantics: Semantics, Name: "One", Steps: c.steps}
			before := string(d.JSON())
			require.Equal(t, c.had, d.Models())
			changed := d.WithModel("b/new")
			require.Equal(t, before, string(d.JSON()), "the document itself is left alone")
			if before == string(changed.JSON()) {
				require.NotContains(t, before, `"ai"`)
				return
			}
			require.Equal(t, []string{"b/new"}, changed.Models())
			require.Equal(t, string(changed.JSON()), string(changed.WithModel("b/new").JSON()))
		})
	}
}

// Whatever lists steps is gone through, also kinds that come to the document one day.
func TestModelReachesEveryListOfSteps(t *testing.T) {
	t.Parallel()
	d := full(t)
	for i := range d.Steps {
		for _, list := range listsOf(&d.Steps[i]) {
			for k := range list.steps {
				list.steps[k].Kind, list.steps[k].With = KindAI, &AI{Models: []string{"a/one", "a/two"}}
			}
		}
	}
	before := string(d.JSON())
	after := string(d.WithModel("b/new").JSON())
	require.Positive(t, strings.Count(before, "a/two"))
	require.NotContains(t, after, "a/one")
	require.NotContains(t, after, "a/two")
	require.Equal(t, before, string(d.JSON()))
}

// Nothing but the models changes in the templates, and they can still be published.
func TestTemplatesTakeAnotherModel(t *testing.T) {
	t.Parallel()
	for _, template := range Templates() {
		changed := template.Document.WithModel("openai/gpt-5.6-terra")
		require.Empty(t, Blocking(Check(changed)), template.Slug)
		require.Equal(t, string(template.Document.JSON()), string(changed.WithModel("practice/standard").JSON()), template.Slug)
	}
}

// Questions about failures are reviews, too.
func TestRequestersAreAllowedEverywhere(t *testing.T) {
	t.Parallel()
	for _, template := range Templates() {
		document := template.Document.WithRequester()
		document.Sample = nil
		text := string(document.JSON())
		require.Equal(t, strings.Count(text, `"question":`), strings.Count(text, `"allow_requester":true`), template.Slug)
		require.NotContains(t, string(template.Document.JSON()), "allow_requester", template.Slug)
	}
}
