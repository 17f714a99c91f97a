package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

func TestRequestsThatAreNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	tests := map[string]func(*llm.Request){
		"prompt":                   func(r *llm.Request) { r.Prompt = "" },
		"at most 8388608":          func(r *llm.Request) { r.Prompt = strings.Repeat("a", llm.MaxPromptBytes) },
		"limit in tokens":          func(r *llm.Request) { r.MaxTokens = 0 },
		"at most 1048576":          func(r *llm.Request) { r.MaxTokens = llm.MaxTokensCeiling + 1 },
		`"openai/gpt-9" is not`:    func(r *llm.Request) { r.Model = "openai/gpt-9" },
		`"gpt-5.6-terra" is not`:   func(r *llm.Request) { r.Model = "gpt-5.6-terra" },
		`"" is not`:                func(r *llm.Request) { r.Model = "" },
		"must be a record":         func(r *llm.Request) { r.Answer = &llm.Schema{Shape: llm.ShapeText} },
		"without fields":           func(r *llm.Request) { r.Answer = &llm.Schema{Shape: llm.ShapeRecord} },
		"choice without choices":   func(r *llm.Request) { r.Answer = one(llm.Schema{Shape: llm.ShapeChoice}) },
		"repeated choice":          func(r *llm.Request) { r.Answer = one(llm.Schema{Shape: llm.ShapeChoice, Choices: []string{"a", "a"}}) },
		"without a shape":          func(r *llm.Request) { r.Answer = one(llm.Schema{Shape: llm.ShapeList}) },
		`unknown shape "file"`:     func(r *llm.Request) { r.Answer = one(llm.Schema{Shape: "file"}) },
		"deeper than 8":            func(r *llm.Request) { r.Answer = one(nested(12)) },
		"more than 500 fields":     func(r *llm.Request) { r.Answer = wide(501) },
		`two of the name "a"`:      func(r *llm.Request) { r.Answer.Fields = append(r.Answer.Fields, r.Answer.Fields[0]) },
		"a has the unknown shape ": func(r *llm.Request) { r.Answer = one(llm.Schema{}) },
	}
	for want, spoil := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Answer = one(llm.Schema{Shape: llm.ShapeText})
			spoil(&req)
			_, err := b.call(t, req)
			var fault *llm.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, llm.ClassInvalidRequest, fault.Class)
			require.False(t, fault.Dispatched)
			require.Contains(t, fault.Message, want)
		})
	}
	require.Empty(t, b.server.Seen())
}

func one(schema llm.Schema) *llm.Schema {
	return &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{{Name: "a", Schema: schema}}}
}

func nested(levels int) llm.Schema {
	schema := llm.Schema{Shape: llm.ShapeText}
	for range levels {
		item := schema
		schema = llm.Schema{Shape: llm.ShapeList, Item: &item}
	}
	return schema
}

func wide(n int) *llm.Schema {
	schema := &llm.Schema{Shape: llm.ShapeRecord}
	for i := range n {
		schema.Fields = append(schema.Fields, llm.SchemaField{Name: strings.Repeat("f", i+1), Schema: llm.Schema{Shape: llm.ShapeText}})
	}
	return schema
}

// rogue breaks the promise to return *Error only.
type rogue struct{}

func (rogue) Call(context.Context, llm.Request) (llm.Answer, error) {
	return llm.Answer{Text: "half"}, errors.New("secret detail")
}

func TestCallReturnsErrorOnly(t *testing.T) {
	t.Parallel()
	registry, err := llm.NewRegistry(llm.Entry{Prefix: "x", Provider: rogue{}, Models: []llm.Model{{ID: "x/y"}}})
	require.NoError(t, err)
	req := ask()
	req.Model = "x/y"
	answer, err := llm.Call(t.Context(), registry, req)
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.True(t, fault.Dispatched)
	require.NotContains(t, err.Error(), "secret")
	require.Equal(t, llm.Answer{}, answer)
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	require.Equal(t, []llm.Model{
		{ID: "practice/standard", Name: "Practice model (no key, reads nothing)", Practice: true, TakesFiles: true},
		{ID: "openai/gpt-5.6-terra", Name: "GPT-5.6 Terra", TakesFiles: true, MaxOutput: 128_000, ContextTokens: 1_050_000},
		{ID: "openai/local-model", Name: "local-model"},
	}, b.registry.Models())
	b.registry.Models()[0].ID = "changed"
	require.Equal(t, "practice/standard", b.registry.Models()[0].ID)
	_, id, err := b.registry.Provider("openai/gpt-5.6-terra")
	require.NoError(t, err)
	require.Equal(t, "gpt-5.6-terra", id)
	for name, entries := range map[string][]llm.Entry{
		"prefix":      {{Provider: rogue{}}},
		"slash":       {{Prefix: "a/b", Provider: rogue{}}},
		"provider":    {{Prefix: "a"}},
		"twice":       {{Prefix: "a", Provider: rogue{}}, {Prefix: "a", Provider: rogue{}}},
		"begin":       {{Prefix: "a", Provider: rogue{}, Models: []llm.Model{{ID: "b/c"}}}},
		"no id":       {{Prefix: "a", Provider: rogue{}, Models: []llm.Model{{ID: "a/"}}}},
		"model twice": {{Prefix: "a", Provider: rogue{}, Models: []llm.Model{{ID: "a/b"}, {ID: "a/b"}}}},
	} {
		_, err := llm.NewRegistry(entries...)
		require.Error(t, err, name)
	}
}

// TestSchemaJSON: the schema as it is shown to models, and the stricter one that is
// sent; both keep the order of fields.
func TestSchemaJSON(t *testing.T) {
	t.Parallel()
	const want = `{"type":"object","properties":{` +
		`"category":{"type":"string","description":"what the mail is","enum":["complaint","question"]},` +
		`"note":{"type":"string"},"total":{"type":"number"},"count":{"type":"integer"},"urgent":{"type":"boolean"},` +
		`"due":{"type":["string","null"],"format":"date"},"seen":{"type":["string","null"],"format":"date-time"},` +
		`"lines":{"type":"array","items":{"type":"object","properties":{"amount":{"type":"number"},"kind":{"type":["string","null"],"enum":["a","b",null]}},` +
		`"required":["amount"],"additionalProperties":false}}},` +
		`"required":["category","note","total","count","urgent","lines"],"additionalProperties":false}`
	require.Equal(t, want, string(everyShape().JSON()))
	b := setup(t, nil)
	_, err := b.call(t, askFields())
	require.NoError(t, err)
	strict := strings.NewReplacer(`"urgent","lines"]`, `"urgent","due","seen","lines"]`, `["amount"]`, `["amount","kind"]`).Replace(want)
	require.JSONEq(t, strict, string(b.server.Seen()[0].Schema))
}

// TestInputBound: the server counts one token per byte that it really received and
// the turns around, the most a tokenizer can make of it.
func TestInputBound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Config){
		"schema mode": nil, "by instruction": func(cfg *llm.Config) { cfg.NoSchemaMode = true },
	} {
		for format := range providers {
			t.Run(format+", "+name, func(t *testing.T) {
				t.Parallel()
				testInputBound(t, setupAs(t, format, change))
			})
		}
	}
}

func testInputBound(t *testing.T, b *bundle) {
	t.Helper()
	for _, text := range []string{"a", strings.Repeat("word ", 1000), "日本語 😀", strings.Repeat("\xff", 700), "\x00\x01<&>\u2028", strings.Repeat("\xed\xa0\xbd", 50)} {
		for _, answer := range []*llm.Schema{nil, everyShape(), wide(40)} {
			req := ask()
			req.Instructions, req.Prompt, req.Answer, req.MaxTokens = text, text, answer, 100_000
			usage := b.fault(t, req, fakellm.Turn{Dense: true, Blank: true}).Usage
			require.False(t, usage.Estimated)
			require.Greater(t, usage.Input, int64(2*len(text)))
			require.LessOrEqual(t, usage.Input, llm.InputBound(req), "%q", text[:1])
		}
	}
}

func TestPracticeSample(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	req := practice()
	req.Answer = noteOnly()
	req.Sample = json.RawMessage(`{ "note": "recorded", "more": 1 }`)
	answer, err := b.call(t, req)
	require.NoError(t, err)
	require.Equal(t, `{"note":"recorded"}`, string(answer.Data))
	require.Empty(t, answer.Note)
	require.True(t, answer.Practice)
	req.Answer, req.Sample = nil, json.RawMessage(`"recorded text"`)
	answer, err = b.call(t, req)
	require.NoError(t, err)
	require.Equal(t, "recorded text", answer.Text)
	require.Empty(t, answer.Note)
	for _, sample := range []string{`{"other":1}`, `3`, `null`, `{`, `{"note":7`} {
		req.Answer, req.Sample = noteOnly(), json.RawMessage(sample)
		answer, err := b.call(t, req)
		require.NoError(t, err, "a sample that no longer fits is not an error: %s", sample)
		require.Equal(t, llm.PracticeNote, answer.Note)
		require.Contains(t, string(answer.Data), "not read from your document")
	}
}

// TestPracticeMadeUp: a value of every shape, the same for the same request, that
// says what it is.
func TestPracticeMadeUp(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	req := practice()
	req.Answer = everyShape()
	first, err := b.call(t, req)
	require.NoError(t, err)
	require.Equal(t, llm.PracticeNote, first.Note)
	require.True(t, first.Practice)
	require.Empty(t, first.Repairs)
	var data struct {
		Category, Note string
		Lines          []any
	}
	require.NoError(t, json.Unmarshal(first.Data, &data))
	require.Equal(t, "complaint", data.Category)
	require.Contains(t, data.Note, "practice answer")
	require.Len(t, data.Lines, 2)
	req.Key = "another try"
	again, err := b.call(t, req)
	require.NoError(t, err)
	require.Equal(t, first, again)
	req.Prompt += "!"
	other, err := b.call(t, req)
	require.NoError(t, err)
	require.NotEqual(t, string(first.Data), string(other.Data))
	req.Answer = nil
	plain, err := b.call(t, req)
	require.NoError(t, err)
	require.Contains(t, plain.Text, "not read from your document")
	require.Nil(t, plain.Data)
}

func practice() llm.Request {
	req := ask()
	req.Model = llm.PracticeModel
	return req
}

func TestPracticeUsage(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	req := practice()
	small, err := b.call(t, req)
	require.NoError(t, err)
	req.Prompt = strings.Repeat("An invoice line. ", 500)
	large, err := b.call(t, req)
	require.NoError(t, err)
	require.Greater(t, large.Usage.Input, 50*small.Usage.Input)
	for _, answer := range []llm.Answer{small, large} {
		require.False(t, answer.Usage.Estimated)
		require.LessOrEqual(t, answer.Usage.Input, llm.InputBound(req))
		require.LessOrEqual(t, answer.Usage.Output, req.MaxTokens)
		require.Positive(t, answer.Usage.Output)
	}
	req.MaxTokens = 5
	_, err = b.call(t, req)
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, llm.ClassTruncated, fault.Class)
	require.EqualValues(t, 5, fault.Usage.Output)
}

func TestPracticeTime(t *testing.T) {
	t.Parallel()
	slow := llm.NewPractice(time.Hour, 2*time.Hour) // brought down to 30 s
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		req := practice()
		req.Model = "standard"
		_, err := slow.Call(ctx, req)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("answered at once: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	cancel()
	err := <-done
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, fault.Dispatched)
	req := practice()
	req.Model = "other"
	_, err = llm.NewPractice(0, 0).Call(t.Context(), req)
	require.ErrorAs(t, err, &fault)
	require.Equal(t, llm.ClassInvalidRequest, fault.Class)
}
