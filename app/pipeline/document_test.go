package pipeline

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// full is a document with every entry of every kind filled in.
func full(t testing.TB) Document {
	t.Helper()
	d := Document{Semantics: Semantics}
	steps := []Step{}
	fill(reflect.ValueOf(&d).Elem(), 0)
	for i, kind := range Kinds() {
		s := Step{}
		fill(reflect.ValueOf(&s).Elem(), 1)
		s.ID, s.Kind, s.With = "s"+letters(i), kind, kinds[kind].empty()
		fill(reflect.ValueOf(s.With).Elem(), 1)
		steps = append(steps, s)
	}
	d.Semantics, d.Steps = Semantics, steps
	return d
}

// words that a schema wants to be of a certain shape.
var filling = map[reflect.Type]string{
	reflect.TypeFor[Kind](): "set", reflect.TypeFor[FieldType](): "text", reflect.TypeFor[CatchAction](): "ask",
	reflect.TypeFor[RefusalAction](): "fail", reflect.TypeFor[KeepLevel](): "full", reflect.TypeFor[MissingAction](): "fail", reflect.TypeFor[PolicyRule](): "n",
	reflect.TypeFor[DeadlineAction](): "fail", reflect.TypeFor[Proof](): "link", reflect.TypeFor[LimitAction](): "best",
	reflect.TypeFor[WaitFor](): "all", reflect.TypeFor[Combine](): "collect", reflect.TypeFor[UnsureAction](): "ask",
	reflect.TypeFor[SendAs](): "json", reflect.TypeFor[AnswerAs](): "text", reflect.TypeFor[AuthKind](): "bearer",
	reflect.TypeFor[StopOutcome](): "raise", reflect.TypeFor[ConcurrencyPolicy](): "skip",
}

// fill sets every field of v to something, three levels of nesting deep.
func fill(v reflect.Value, depth int) {
	switch {
	case v.Type() == rawType:
		v.SetBytes([]byte(`{"a":9007199254740993.10}`))
		return
	case v.Type() == durationType:
		v.SetInt(3600e9)
		return
	case v.Type() == reflect.TypeFor[Config]():
		v.Set(reflect.ValueOf(&Set{Values: []Value{{"v", "1"}}}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 4 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
			fillByName(v, i)
		}
	case reflect.Slice:
		if depth < 5 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), depth+1)
			fill(v.Index(1), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]json.RawMessage{"b": json.RawMessage(`1.0`), "a": json.RawMessage(`null`)}))
	case reflect.String:
		v.SetString("x1")
		if word, ok := filling[v.Type()]; ok {
			v.SetString(word)
		}
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(2)
	}
}

func fillByName(v reflect.Value, i int) {
	words := map[string]string{"role": "finance", "currency": "EUR", "method": "POST"}
	if word, ok := words[jsonName(v.Type().Field(i))]; ok {
		v.Field(i).SetString(word)
	}
	if jsonName(v.Type().Field(i)) == "models" {
		v.Field(i).Set(reflect.ValueOf([]string{"practice/standard"}))
	}
}

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("pipeline.json", v))
	s, err := c.Compile("pipeline.json")
	require.NoError(t, err)
	return s
}

func validate(t testing.TB, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return s.Validate(v)
}

func TestEveryEntryMakesTheRoundTrip(t *testing.T) {
	t.Parallel()
	d := full(t)
	data := d.JSON()
	got, err := Parse(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(d, got, cmpopts.EquateEmpty()))
	require.Equal(t, string(data), string(got.JSON()))
	require.NoError(t, validate(t, compiledSchema(t), data))
}

// The schema and the model know exactly the same entries.
func TestSchemaAndModelAgreeOnEveryKey(t *testing.T) {
	t.Parallel()
	var root map[string]any
	require.NoError(t, json.Unmarshal(Schema(), &root))
	defs := root["$defs"].(map[string]any)
	pairs := map[string]reflect.Type{
		"step": stepType, "value": reflect.TypeFor[Value](), "choice": reflect.TypeFor[Choice](), "field": reflect.TypeFor[Field](),
		"entry": reflect.TypeFor[Field](), "retry": reflect.TypeFor[Retry](), "catch": reflect.TypeFor[Catch](),
		"fact": reflect.TypeFor[Fact](), "proposal": reflect.TypeFor[Proposal](), "editable": reflect.TypeFor[Editable](),
		"person": reflect.TypeFor[Person](), "policy": reflect.TypeFor[Policy](), "labels": reflect.TypeFor[Labels](),
		"consequences": reflect.TypeFor[Consequences](), "case": reflect.TypeFor[Case](), "lane": reflect.TypeFor[Lane](),
		"header": reflect.TypeFor[Header](), "param": reflect.TypeFor[Param](), "auth": reflect.TypeFor[Auth](), "look_up": reflect.TypeFor[LookUp](), "sample": reflect.TypeFor[Sample](), "concurrency": reflect.TypeFor[Concurrency](),
	}
	for _, k := range Kinds() {
		pairs[string(k)] = reflect.TypeOf(kinds[k].empty()).Elem()
	}
	same := func(name string, schema map[string]any, model reflect.Type) {
		var keys, required []string
		for i := range model.NumField() {
			keys = append(keys, jsonName(model.Field(i)))
			if !strings.Contains(model.Field(i).Tag.Get("json"), ",omit") {
				required = append(required, jsonName(model.Field(i)))
			}
		}
		slices.Sort(keys)
		require.Equal(t, keys, slices.Sorted(maps.Keys(schema["properties"].(map[string]any))), name)
		if name == "entry" {
			required = slices.DeleteFunc(required, func(s string) bool { return s == "name" })
		}
		var listed []string
		for _, r := range asList(schema["required"]) {
			listed = append(listed, r.(string))
		}
		require.ElementsMatch(t, required, listed, "required entries of %s", name)
		require.Equal(t, false, schema["additionalProperties"], name)
	}
	same("document", root, reflect.TypeFor[Document]())
	for name, model := range pairs {
		same(name, defs[name].(map[string]any), model)
	}
	for name, def := range defs {
		if _, object := def.(map[string]any)["properties"]; object {
			require.Contains(t, pairs, name, "a definition that no part of the model has")
		}
	}
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	step := func(s string) string { return `{"semantics":1,"name":"n","steps":[` + s + `]}` }
	for src, want := range map[string]Problem{
		`[]`:                                 {Field: "", Message: "a record in {} belongs here"},
		`{"nam":"x"}`:                        {Field: "nam", Message: "not known. Remove it, or use one of: concurrency, cost_centre, input"},
		`{"name":7}`:                         {Field: "name", Message: "a text in quotes"},
		`{"semantics":1.5}`:                  {Field: "semantics", Message: "a whole number"},
		`{"run_cap":99999999999999999999}`:   {Field: "run_cap", Message: "a whole number"},
		`{"input":[{"name":"a","typ":"x"}]}`: {Field: "input[0].typ", Message: "not known"},
		`{"input":[null]}`:                   {Field: "input[0]", Message: "is empty"},
		`{"name":"a\u0000b"}`:                {Field: "name", Message: "NUL"},
		`{"name":"a\ud800b"}`:                {Field: "name", Message: "half a character"},
		step(`{"id":"a","kind":"ai","with":{"promt":"x"}}`):                                                      {Step: "a", Field: "with.promt", Message: "use one of: answer, ask, files, if_missing"},
		step(`{"id":"a","kind":"ay","with":{}}`):                                                                 {Step: "a", Field: "kind", Message: "“ay” is not a kind of step"},
		step(`{"kind":"review","with":{"facts":[{"label":1}]}}`):                                                 {Field: "steps[0].with.facts[0].label", Message: "a text"},
		step(`{"id":"a","kind":"set","timeout":"1y","with":{}}`):                                                 {Step: "a", Field: "timeout", Message: "is not a time span"},
		step(`{"id":"a","kind":"set","with":[]}`):                                                                {Step: "a", Field: "with", Message: "a record in {}"},
		step(`{"id":"a","kind":"branch","with":{"cases":[{"steps":[{"id":"b","kind":"set","with":{"x":1}}]}]}}`): {Step: "b", Field: "with.x", Message: "not known"},
		`{"sample":{"answers":{"a\u0000":1}}}`:                                                                   {Field: "sample.answers.a ", Message: "NUL"},
		`{"name":"a","name":"b"}`:                                                                                {Message: "appears twice"},
		strings.Repeat("[", 1000):                                                                                {Message: "nested deeper"},
		strings.Repeat(" ", MaxDocument+1):                                                                       {Message: "at most 1048576"},
	} {
		_, err := Parse([]byte(src))
		var bad *Invalid
		require.ErrorAs(t, err, &bad, src)
		got := bad.Problems[0]
		require.Contains(t, got.Message, want.Message, src)
		require.Equal(t, []string{want.Step, want.Field}, []string{got.Step, got.Field}, src)
		require.Equal(t, Blocks, got.Severity)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full(f).JSON())
	f.Add([]byte(docWith(aiStep, reviewStep, ifThen("d", emailStep(`"to":["{{ steps.ask.who }}"],"subject":"s","body":"b"`)))))
	f.Add([]byte(`{"semantics":1,"name":"n","steps":[{"id":"a","name":"A","kind":"set","with":{"values":[{"name":"x","formula":"input.a + 1"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil {
			var bad *Invalid
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Problems)
			return
		}
		once := d.JSON()
		again, err := Parse(once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(again.JSON()))
		program, err := Compile(d)
		if err != nil {
			var bad *Invalid
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Problems)
			return
		}
		require.NotEmpty(t, program.Roots())
	})
}
