package llm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

// TestEveryFormatOnTheWire: the key, the limit, the texts and the schema arrive where
// each provider wants them, and nothing comes from the environment.
func TestEveryFormatOnTheWire(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"openai": "max_completion_tokens", "anthropic": "max_tokens", "gemini": "maxOutputTokens"}
	everyFormat(t, func(t *testing.T, b *bundle) {
		answer, err := b.call(t, askFields())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(answer.Data), `{"category":`), "fields in the order asked: %s", answer.Data)
		require.True(t, strings.HasPrefix(answer.RequestID, "req_"))
		require.False(t, answer.Usage.Estimated)
		got := b.server.Seen()[0]
		require.Equal(t, b.format, got.Format)
		require.Equal(t, "step-1", got.Key)
		require.Equal(t, "sk-tenant", got.APIKey)
		require.EqualValues(t, 500, got.MaxTokens)
		require.Equal(t, fields[b.format], got.TokenField)
		require.True(t, got.Stream && got.IncludeUsage)
		require.Equal(t, "Be brief.", got.System)
		require.Equal(t, "What does the mail say?", got.User)
		require.NotEmpty(t, got.Schema)
		require.Equal(t, got.Body, answer.Sent)
		require.Contains(t, got.Header.Get("User-Agent"), "Tollgate")
		for name, values := range got.Header {
			require.NotContains(t, strings.Join(values, ""), "environment", name)
			require.NotEqual(t, "X-Env", name)
		}
	})
}

// TestSameBytes: two calls that differ in their data only begin with the same bytes, or
// no provider could serve the beginning from its cache.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		for _, prompt := range []string{"first", "second, and longer"} {
			req := askFields()
			req.Cache = true
			req.Prompt, req.Instructions = prompt, strings.Repeat("Be brief. ", 1000)
			_, err := b.call(t, req)
			require.NoError(t, err)
		}
		seen := b.server.Seen()
		require.Equal(t, seen[0].System, seen[1].System)
		require.Equal(t, seen[0].Schema, seen[1].Schema)
		marks := map[string]int{"anthropic": 1}[b.format]
		require.Equal(t, marks, seen[0].CacheMarks)
		short, unpriced := askFields(), askFields()
		short.Cache, unpriced.Instructions = true, strings.Repeat("Be brief. ", 1000)
		for _, req := range []llm.Request{short, unpriced} {
			_, err := b.call(t, req)
			require.NoError(t, err)
		}
		require.Zero(t, b.server.Seen()[2].CacheMarks, "short instructions are never cached")
		require.Zero(t, b.server.Seen()[3].CacheMarks, "writing the cache costs, and nobody knows how much")
	})
}

// TestByInstruction: where there is no schema mode, or the schema is too much for it,
// the fields are asked for in words.
func TestByInstruction(t *testing.T) {
	t.Parallel()
	for format := range providers {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			b := setupAs(t, format, func(cfg *llm.Config) { cfg.NoSchemaMode = true })
			b.server.Play(fakellm.Turn{Text: "Gladly:\n```json\n{\"note\":\"fine\"}\n```"})
			req := ask()
			req.Answer = noteOnly()
			answer, err := b.call(t, req)
			require.NoError(t, err)
			require.JSONEq(t, `{"note":"fine"}`, string(answer.Data))
			got := b.server.Seen()[0]
			require.Empty(t, got.Schema)
			require.True(t, strings.HasPrefix(got.System, "Be brief."))
			require.Contains(t, got.System, string(req.Answer.JSON()))
		})
	}
	b := setupAs(t, "anthropic", nil)
	req := ask()
	req.Answer = wide(25)
	for i := range req.Answer.Fields {
		req.Answer.Fields[i].Optional = true
	}
	b.server.Play(fakellm.Turn{Text: `{"f":"x"}`})
	_, err := b.call(t, req)
	require.NoError(t, err)
	require.Empty(t, b.server.Seen()[0].Schema, "its schema mode takes 24 optional fields")
}

// TestOptionalFields: a field that is left out is empty in every format.
func TestOptionalFields(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Answer = &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{
			{Name: "kind", Optional: true, Schema: llm.Schema{Shape: llm.ShapeChoice, Choices: []string{"a", "b"}}},
			{Name: "due", Optional: true, Schema: llm.Schema{Shape: llm.ShapeDate}}, {Name: "note", Schema: llm.Schema{Shape: llm.ShapeText}}}}
		for _, text := range []string{`{"note":"x"}`, `{"kind":null,"due":null,"note":"x"}`} {
			b.server.Play(fakellm.Turn{Text: text})
			answer, err := b.call(t, req)
			require.NoError(t, err)
			require.Equal(t, `{"kind":null,"due":null,"note":"x"}`, string(answer.Data))
		}
	})
}

// TestFiles: images and documents arrive in each format's own way, texts as text, all
// before the question.
func TestFiles(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Files = []llm.File{
			{Name: "scan.png", MediaType: "image/png", Content: []byte("\x89PNG")},
			{Name: "photo.jpg", MediaType: "image/jpeg; q=1", Content: []byte("jpeg")},
			{Name: "invoice\x00.pdf", MediaType: "application/pdf", Content: []byte("%PDF-1.7")},
			{Name: "lines.csv", MediaType: "text/csv; charset=utf-8", Content: []byte("a,b\n1,2")},
		}
		_, err := b.call(t, req)
		require.NoError(t, err)
		got := b.server.Seen()[0]
		require.Equal(t, []string{"image/png", "image/jpeg", "application/pdf"}, got.Files)
		require.Equal(t, "File lines.csv:\na,b\n1,2\nWhat does the mail say?", got.User)
		require.Contains(t, string(got.Body), "iVBORw==")
		require.Contains(t, string(got.Body), "JVBERi0xLjc=")
		require.GreaterOrEqual(t, llm.InputBound(req), int64(1<<20), "nobody knows how many pages a document hides")
	})
}

// TestEstimateOfACutStream: what a provider said it had read counts, and what it wrote
// is counted from the text, where the final figures are missing.
func TestEstimateOfACutStream(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		fault := b.fault(t, ask(), fakellm.Turn{Text: strings.Repeat("abcd", 50), Cached: 7, CutAfter: 40})
		require.True(t, fault.Usage.Estimated)
		require.GreaterOrEqual(t, fault.Usage.Output, int64(40))
		if b.format != "openai" { // which tells at the end only
			require.EqualValues(t, 7, fault.Usage.CacheRead)
		}
	})
}
