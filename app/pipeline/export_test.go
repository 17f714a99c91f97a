package pipeline

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// openWorkflowSchema is the published schema of the DSL.
func openWorkflowSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile("testdata/open-workflow/workflow-1.0.3.json")
	require.NoError(t, err)
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	// Its pattern of time spans looks ahead, which Go's expressions cannot; we write spans as
	// records and never meet it.
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		return regexp.Compile(strings.NewReplacer(`(?!$)`, "", `(?=\d)`, "").Replace(pattern))
	})
	require.NoError(t, c.AddResource("workflow.json", schema))
	compiled, err := c.Compile("workflow.json")
	require.NoError(t, err)
	return compiled
}

// Every template is exported as the DSL's schema wants it, with all its steps, and what is
// lost is named.
func TestTemplatesAreExported(t *testing.T) {
	t.Parallel()
	schema := openWorkflowSchema(t)
	for _, template := range Templates() {
		data, losses := template.Document.Export()
		require.NoError(t, validate(t, schema, data), template.Slug)
		again, _ := template.Document.Export()
		require.Equal(t, string(data), string(again), "the same document is the same export")
		for id := range template.Program.byID {
			require.Contains(t, string(data), `"`+id+`"`, template.Slug)
		}
		var says []string
		for _, l := range losses {
			says = append(says, l.Step+": "+l.Says)
		}
		golden(t, template.Slug+"-export.txt", []byte(strings.Join(says, "\n")+"\n"))
		expressionsCompile(t, template.Slug, data)
	}
}

// expressionsCompile reads every runtime expression with jq, where that is installed.
func expressionsCompile(t *testing.T, name string, data []byte) {
	t.Helper()
	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Log("jq is not installed, so expressions were not read with it")
		return
	}
	var doc any
	require.NoError(t, json.Unmarshal(data, &doc))
	var all []string
	rewrite(doc, func(s string) string {
		if rest, ok := strings.CutPrefix(s, "${ "); ok {
			all = append(all, "("+strings.TrimSuffix(rest, " }")+")")
		}
		return s
	})
	program := `"context workflow item index round error" as $_ | {} as $context | {} as $workflow | 1 as $item | 1 as $index | 1 as $round | {} as $error | empty, [` + strings.Join(all, ",\n") + `]`
	out, err := exec.CommandContext(t.Context(), jq, "-n", "if false then ("+program+") else empty end").CombinedOutput() //nolint:gosec // a test's own text
	require.NoError(t, err, "%s: %s", name, out)
}

// What the DSL has, and what it lacks, by kind.
func TestExportOfEveryKind(t *testing.T) {
	t.Parallel()
	schema := openWorkflowSchema(t)
	day := Duration(86_400_000_000_000)
	d := Document{Semantics: 3, Name: "Über «alles» " + strings.Repeat("x", 100), Steps: []Step{
		{ID: "get", Name: "Get", Kind: KindHTTP, Timeout: &day, With: &HTTP{Method: "POST", URL: "https://erp.example/{{ input.a }}", Body: `{"a": 1}`,
			Headers: []Header{{Name: "X", Value: "1"}, {Name: "Y", Secret: "s"}}, Query: []Param{{"q", "{{ input.a }}"}}}, Retry: &Retry{Attempts: 3}},
		{ID: "run", Name: "Run", Kind: KindChild, With: &Child{Pipeline: "0195", Wait: true, Input: []Value{{"a", "1"}}}},
		{ID: "nap", Name: "Nap", Kind: KindWait, With: &Wait{For: &day}},
		{ID: "day", Name: "Day", Kind: KindWait, With: &Wait{Until: "input.day"}},
		{ID: "ev", Name: "Ev", Kind: KindEvent, With: &Event{Name: "paid", Callback: true}},
		{ID: "set", Name: "Set", Kind: KindSet, With: &Set{Values: []Value{{"m", `money(1, "EUR")`}}}, OnError: []Catch{
			{Do: CatchFail, Exception: "broken", Message: "{{ error.message }}"}, {Do: CatchDefault, Default: []byte(`{"m": 1}`)},
		}},
		{ID: "off", Name: "Off", Kind: KindStop, Off: true, With: &Stop{}},
	}}
	data, losses := d.Export()
	require.NoError(t, validate(t, schema, data))
	require.NotContains(t, string(data), `"off"`)
	var says []string
	for _, l := range losses {
		says = append(says, l.Says)
	}
	for _, part := range []string{"secrets are not exported", "whether it arrived", "failed try", "has to be exported, too", "until a date", "may fail itself", "another system answers", "“money” has no equal in jq"} {
		require.Contains(t, strings.Join(says, "\n"), part)
	}
	require.Contains(t, string(data), `\"to be written anew: money(1, \\\"EUR\\\")\"`)
	empty, _ := Document{Name: "株式会社"}.Export()
	require.NoError(t, validate(t, schema, empty))
	require.Contains(t, string(empty), `"name": "pipeline"`)
}
