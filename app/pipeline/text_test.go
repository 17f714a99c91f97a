package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both forms of a document say the same, to the last digit.
func TestTextsComeBackAsTheSameDocument(t *testing.T) {
	t.Parallel()
	documents := map[string]Document{"nest": nest()}
	for _, template := range Templates() {
		documents[template.Slug] = template.Document
	}
	odd := nest()
	odd.Note = " leading\n  indented: yes\n\n- not a list\n# no comment \ttab"
	odd.Steps[0].Name = `quote " and \ and 'x': {y} [z] # é שלום 😀`
	odd.Steps[0].With = &Set{Values: []Value{{"true", "0x10"}, {"null", "1e5"}, {"a", "~"}, {"b", "2026-01-01"}, {"c", "|"}, {"d", "&a *b !c"}}}
	odd.Sample = &Sample{Input: []byte(`{"n":9007199254740993.10,"e":1e400,"s":"","l":[],"o":{},"t":"line one\nline two\n","u":"a\\b"}`)}
	documents["odd"] = odd
	odd = clone(odd)
	odd.Sample.Input = []byte(`"\u0000 \ud800"`)
	require.Equal(t, odd.Indented(), odd.YAML(), "what YAML cannot say is said in JSON")
	for name, d := range documents {
		require.NotEqual(t, d.Indented(), d.YAML(), name)
		for form, text := range map[string]string{"JSON": d.Indented(), "YAML": d.YAML()} {
			back, problems := ReadText(text)
			require.Empty(t, problems, "%s as %s:\n%s", name, form, text)
			require.True(t, string(d.JSON()) == string(back.JSON()), "%s as %s:\n%s", name, form, text)
		}
	}
}

func TestTextProblemsNameTheirLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n \"semantics\": 1,\n \"name\": \"x\"\n \"steps\": []}":                                          "4: This cannot be read as JSON",
		"{\"semantics\": 1,\n\"name\": \"x\",\n\"colour\": 1,\n\"steps\": []}":                              "3: The document, colour",
		"semantics: 1\nname: x\nsteps:\n  - id: a\n    name: A\n    kind: teleport\n    with: {}\n":         "6: Step “a”",
		"semantics: 1\nname: x\nsteps:\n  - id: a\n    name: A\n    kind: set\n    with:\n      value: 1\n": "8: Step “a”",
		"semantics: 1\nname: x\nname: y\nsteps: []\n":                                                       "3: ",
		"semantics: 1\nname: [x\nsteps: []\n":                                                               ": This cannot be read as YAML",
		"semantics: 1\nname: &a x\nsteps: []\n":                                                             "2: Anchors",
		"semantics: 0x1\nname: x\nsteps: []\n":                                                              "1: Write this number",
		"":                                                                                                  "1: Write one document",
		strings.Repeat("[", 100_000):                                                                        "0: Brackets",
		"semantics: 1\nname: x\nsteps:\n- {id: a, name: A, kind: stop, with: {}}\n- {id: a, name: B, kind: stop, with: {}}\n": "0: Two steps have the id “a”",
	} {
		_, problems := ReadText(text)
		require.NotEmpty(t, problems, text)
		require.Contains(t, fmt.Sprintf("%d: %s", problems[0].Line, problems[0].Message), want, text)
	}
}

func FuzzReadText(f *testing.F) {
	f.Add(nest().YAML())
	f.Add(nest().Indented())
	f.Add("a: &b [*b]")
	f.Fuzz(func(t *testing.T, text string) {
		d, problems := ReadText(text)
		if problems != nil {
			return
		}
		for _, again := range []string{d.YAML(), d.Indented()} {
			back, problems := ReadText(again)
			if problems != nil || string(back.JSON()) != string(d.JSON()) {
				t.Fatalf("%q\n%v", again, problems)
			}
		}
	})
}
