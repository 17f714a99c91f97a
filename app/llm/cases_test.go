package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
	"tollgate/app/outbound"
)

// Tests named after the numbered cases of hard situations that the product must
// survive; each goes through the real client library.

func TestS29NulInAnswer(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		b.server.Play(fakellm.Turn{Text: "a\x00b"}, fakellm.Turn{Text: `{"note":"a\u0000b","x\u0000y":1}`})
		answer, err := b.call(t, ask())
		require.NoError(t, err)
		require.Equal(t, "a\uFFFDb", answer.Text)
		require.NotEmpty(t, answer.Repairs)
		require.NotContains(t, string(answer.Raw), "\x00")
		req := ask()
		req.Answer = noteOnly()
		answer, err = b.call(t, req)
		require.NoError(t, err)
		require.Equal(t, `{"note":"a�b"}`, string(answer.Data))
		require.NotEmpty(t, answer.Repairs)
	})
}

func TestS30TextThatSpeaksOfTheEscape(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		spoken := `JSON writes NUL as \u0000, and a half as \ud83d.`
		b.server.Play(fakellm.Turn{Text: spoken}, fakellm.Turn{Text: `{"note":` + quoted(t, spoken) + `}`})
		answer, err := b.call(t, ask())
		require.NoError(t, err)
		require.Equal(t, spoken, answer.Text)
		req := ask()
		req.Answer = noteOnly()
		answer, err = b.call(t, req)
		require.NoError(t, err)
		var data struct{ Note string }
		require.NoError(t, json.Unmarshal(answer.Data, &data))
		require.Equal(t, spoken, data.Note)
		require.Empty(t, answer.Repairs)
	})
}

func TestS32HalvesOfACharacter(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		b.server.Play(
			fakellm.Turn{Pieces: []string{`"well \ud83d"`, `"\ude00 done "`, `"\ud83d"`}},
			fakellm.Turn{Pieces: []string{`"{\"note\":\"\\ud83d"`, `"\\ude00 \ud83d"`, `"\ude00 \\ud83d\"}"`}},
		)
		answer, err := b.call(t, ask())
		require.NoError(t, err)
		require.Equal(t, "well 😀 done \uFFFD", answer.Text)
		req := ask()
		req.Answer = noteOnly()
		answer, err = b.call(t, req)
		require.NoError(t, err)
		require.Equal(t, `{"note":"😀 😀 �"}`, string(answer.Data))
	})
}

func TestS33NumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Answer = &llm.Schema{Shape: llm.ShapeRecord, Fields: []llm.SchemaField{
			{Name: "order", Schema: llm.Schema{Shape: llm.ShapeInteger}}, {Name: "sum", Schema: llm.Schema{Shape: llm.ShapeNumber}}}}
		b.server.Play(fakellm.Turn{Text: `{"sum": 0.10, "order": 9007199254740993123456789}`})
		answer, err := b.call(t, req)
		require.NoError(t, err)
		require.Equal(t, `{"order":9007199254740993123456789,"sum":0.10}`, string(answer.Data))
		for _, number := range []string{"1e400", "1e999999999999999999999", "1e-400", strings.Repeat("9", 300), "NaN", "Infinity", "-"} {
			fault := b.fault(t, req, fakellm.Turn{Text: `{"order": 1, "sum": ` + number + `}`})
			require.Equal(t, llm.ClassMalformed, fault.Class, number)
		}
	})
}

// One field of twenty is no number: where it may be empty the others are kept and the
// note names it; where it may not, the error does.
func TestS34OneFieldIsNoNumber(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		for _, bad := range []string{"NaN", "Infinity", "-Infinity"} {
			for _, optional := range []bool{true, false} {
				req := ask()
				req.Answer = &llm.Schema{Shape: llm.ShapeRecord}
				var text, want []string
				for n := range 20 {
					name, value := fmt.Sprintf("f%d", n), fmt.Sprintf("-%d.0", n) // the first is -0.0
					req.Answer.Fields = append(req.Answer.Fields, llm.SchemaField{Name: name, Optional: optional, Schema: llm.Schema{Shape: llm.ShapeNumber}})
					want = append(want, fmt.Sprintf(`"%s":%s`, name, value))
					text = append(text, fmt.Sprintf(`"%s": %s`, name, value))
				}
				text[7], want[7] = `"f7": `+bad, `"f7":null`
				turn := fakellm.Turn{Text: "{" + strings.Join(text, ", ") + `, "said": "NaN, as \"NaN\" goes"}`}
				if !optional {
					fault := b.fault(t, req, turn)
					require.Equal(t, llm.ClassMalformed, fault.Class)
					require.Contains(t, fault.Message+fault.Detail, "f7", "the field is named")
					continue
				}
				b.server.Play(turn)
				answer, err := b.call(t, req)
				require.NoError(t, err)
				require.Equal(t, "{"+strings.Join(want, ",")+"}", string(answer.Data))
				require.Contains(t, strings.Join(answer.Repairs, "\n"), "f7")
			}
		}
	})
}

func TestS36DeepNesting(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Answer = noteOnly()
		req.MaxTokens = llm.MaxTokensCeiling
		for name, text := range map[string]string{
			"lists":           strings.Repeat("[", 1<<20),
			"lists, closed":   strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19),
			"objects":         strings.Repeat(`{"a":`, 1<<18),
			"braces":          strings.Repeat("{", 1<<20),
			"inside an field": `{"note":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`,
		} {
			began := time.Now()
			fault := b.fault(t, req, fakellm.Turn{Body: whole(t, b.format, text), ContentType: "application/json"})
			require.Equal(t, llm.ClassMalformed, fault.Class, name)
			require.Less(t, time.Since(began), 20*time.Second, name)
		}
	})
}

func TestS37Overloaded(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		fault := b.fault(t, ask(), fakellm.Turn{Status: 529, Header: map[string]string{"Retry-After": "2"}})
		require.Equal(t, llm.ClassOverloaded, fault.Class)
		require.Equal(t, 2*time.Second, fault.RetryAfter)
		require.Equal(t, 529, fault.Status)
		answer, err := b.call(t, func() llm.Request { r := ask(); r.Model = b.other; return r }())
		require.NoError(t, err, "the next model of a chain is asked by the engine, with the same package")
		require.Equal(t, "local-model", answer.Model)
	})
}

func TestS38RetryAfter(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		tests := []struct {
			header map[string]string
			want   time.Duration
		}{
			{map[string]string{"Retry-After": "3"}, 3 * time.Second},
			{map[string]string{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 40 * time.Second},
			{map[string]string{"Retry-After": "Wed, 21 Oct 2025 07:28:00 GMT"}, time.Millisecond},
			{map[string]string{"Retry-After": "soon"}, 0},
			{map[string]string{"Retry-After": "86400"}, 24 * time.Hour},
			{map[string]string{"Retry-After": "-5"}, 0},
			{map[string]string{"Retry-After": "0"}, time.Millisecond},
			{map[string]string{"Retry-After": "1.5"}, 1500 * time.Millisecond},
			{map[string]string{"Retry-After": "1e300"}, outbound.MaxRetryAfter},
			{map[string]string{"Retry-After": "99999999999999999999"}, outbound.MaxRetryAfter},
			{map[string]string{"Retry-After": "NaN"}, 0},
			{map[string]string{"Retry-After": "Inf"}, outbound.MaxRetryAfter},
			{map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, outbound.MaxRetryAfter},
			{map[string]string{"Retry-After-Ms": "250", "Retry-After": "1"}, 250 * time.Millisecond},
			{nil, 0},
		}
		for _, test := range tests {
			fault := b.fault(t, ask(), fakellm.Turn{Status: 429, Header: test.header})
			require.Equal(t, test.want, fault.RetryAfter, "%v", test.header)
		}
	})
}

func TestS39Empty(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		for name, turn := range map[string]fakellm.Turn{
			"blank": {Blank: true}, "no choices": {NoChoices: true}, "spaces": {Text: "   "}, "null": {Null: true}, "no choices, whole": {NoChoices: true, Whole: true},
			"blank, whole": {Blank: true, Whole: true}, "null, whole": {Null: true, Whole: true},
		} {
			fault := b.fault(t, ask(), turn)
			require.Equal(t, llm.ClassEmpty, fault.Class, name)
			require.Positive(t, fault.Usage.Input, "%s: tokens are charged all the same", name)
			require.False(t, fault.Usage.Estimated, name)
		}
	})
}

func TestS40Refused(t *testing.T) {
	t.Parallel()
	finishes := map[string][]string{
		"openai": {"content_filter", "refusal"}, "anthropic": {"refusal"},
		"gemini": {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"},
	}
	everyFormat(t, func(t *testing.T, b *bundle) {
		turns := map[string]fakellm.Turn{
			"refusal": {Refusal: "I will not."}, "refusal, whole": {Refusal: "I will not.", Whole: true},
		}
		for _, finish := range finishes[b.format] {
			turns["blank, "+finish] = fakellm.Turn{Blank: true, Finish: finish}
			turns["text, "+finish] = fakellm.Turn{Text: "no", Finish: finish}
			turns["whole, "+finish] = fakellm.Turn{Text: "no", Finish: finish, Whole: true}
		}
		for name, turn := range turns {
			fault := b.fault(t, ask(), turn)
			require.Equal(t, llm.ClassRefused, fault.Class, name)
			require.True(t, fault.Terminal, name)
			require.Positive(t, fault.Usage.Input, name)
		}
		fault := b.fault(t, ask(), fakellm.Turn{Refusal: "I will not."})
		require.Equal(t, "I will not.", fault.Detail)
		fault = b.fault(t, ask(), fakellm.Turn{Text: "so far", Finish: "paused"})
		require.Contains(t, fault.Message, `"paused"`)
		require.Equal(t, "so far", fault.Answer.Text)
	})
}

func TestS41CutByTheLimit(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := askFields()
		fault := b.fault(t, req, fakellm.Turn{Text: "```json\n{\"category\":\"complaint\",\"note\":\"it beg", Finish: b.words("cut")})
		require.Equal(t, llm.ClassTruncated, fault.Class)
		require.Contains(t, fault.Message, "500 tokens")
		require.Contains(t, fault.Message, "max_tokens")
		req.MaxTokens = 3
		_, err := b.call(t, req)
		require.ErrorAs(t, err, &fault)
		require.Equal(t, llm.ClassTruncated, fault.Class, "the limit was kept by the server")
		require.EqualValues(t, 3, fault.Usage.Output)
	})
}

func TestS42BackTicksInAValue(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Answer = noteOnly()
		object := "{\"note\":\"use ```sh\\nls\\n``` here\"}"
		for _, text := range []string{
			object, "```json\n" + object + "\n```", "```\n" + object + "```", "Here you are:\n" + object, object + "\n[1]",
			"Sure! ```json\n" + object + "\n``` Anything else? [1] {2} {name}", "<think>{\"note\":\"draft\"}</think>" + object,
			"[" + object + "]", quoted(t, object), "\ufeff" + object,
		} {
			b.server.Play(fakellm.Turn{Text: text})
			answer, err := b.call(t, req)
			require.NoError(t, err, text)
			require.Equal(t, object, string(answer.Data), text)
			require.Equal(t, text, answer.Text, "the text is kept as it came")
		}
	})
}

func TestS43BracketsBehind(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		req := ask()
		req.Answer = noteOnly()
		b.server.Play(fakellm.Turn{Text: "```json\n{\"note\":\"x\"}\n```\nSee [docs]. Or {this}."})
		answer, err := b.call(t, req)
		require.NoError(t, err)
		require.Equal(t, `{"note":"x"}`, string(answer.Data))
		require.Contains(t, answer.Text, "See [docs].")
	})
}

func TestS44StreamBreaksOff(t *testing.T) {
	t.Parallel()
	everyFormat(t, func(t *testing.T, b *bundle) {
		long := strings.Repeat("abcd", 400)
		for name, turn := range map[string]fakellm.Turn{
			"reset":       {Text: long, CutAfter: 300},
			"error event": {Text: long, ErrorAfter: 300, ErrorEvent: `{"type":"error","error":{"type":"api_error","message":"upstream gone"}}`},
			"quiet end":   {Text: long, EndAfter: 300},
		} {
			fault := b.fault(t, ask(), turn)
			require.True(t, fault.Dispatched, name)
			require.True(t, fault.Usage.Estimated, name)
			require.GreaterOrEqual(t, fault.Usage.Output, int64(300), "%s: what had come is counted", name)
			require.LessOrEqual(t, fault.Usage.Output, ask().MaxTokens, name)
			require.Positive(t, fault.Usage.Input, name)
			require.LessOrEqual(t, fault.Usage.Input, llm.InputBound(ask()), name)
			require.Equal(t, strings.Repeat("abcd", 300), fault.Answer.Text, name)
		}
		b.server.Play(fakellm.Turn{Text: "complete", UsageCut: true}, fakellm.Turn{Text: "complete", NoUsage: true}, fakellm.Turn{Text: "complete", NoDone: true})
		for range 2 {
			answer, err := b.call(t, ask())
			require.NoError(t, err, "the text was complete; only the figures are missing")
			require.True(t, answer.Usage.Estimated)
			require.Positive(t, answer.Usage.Output)
		}
		answer, err := b.call(t, ask())
		require.NoError(t, err)
		require.False(t, answer.Usage.Estimated)
	})
}

// usages says one usage in each format's own figures.
type usages map[string]string

func (u usages) run(t *testing.T, want llm.Usage) {
	t.Helper()
	everyFormat(t, func(t *testing.T, b *bundle) {
		raw, ok := u[b.format]
		if !ok {
			return // the format has no such figures
		}
		for _, whole := range []bool{false, true} {
			b.server.Play(fakellm.Turn{Usage: json.RawMessage(raw), Whole: whole})
			answer, err := b.call(t, ask())
			require.NoError(t, err)
			require.Equal(t, want, answer.Usage)
		}
	})
}

func TestS45CacheTokensOnce(t *testing.T) {
	t.Parallel()
	usages{
		"openai":    `{"prompt_tokens":5,"completion_tokens":400,"total_tokens":60405,"prompt_tokens_details":{"cached_tokens":40000,"cache_write_tokens":20000}}`,
		"anthropic": `{"input_tokens":5,"output_tokens":400,"cache_read_input_tokens":40000,"cache_creation_input_tokens":20000}`,
	}.run(t, llm.Usage{Input: 5, CacheRead: 40000, CacheWrite: 20000, Output: 400})
	usages{
		"openai":    `{"prompt_tokens":100000,"completion_tokens":2000,"total_tokens":102000,"prompt_tokens_details":{"cached_tokens":90000}}`,
		"anthropic": `{"input_tokens":10000,"output_tokens":2000,"cache_read_input_tokens":90000,"cache_creation_input_tokens":0}`,
		"gemini":    `{"promptTokenCount":100000,"candidatesTokenCount":2000,"cachedContentTokenCount":90000,"totalTokenCount":102000}`,
	}.run(t, llm.Usage{Input: 10000, CacheRead: 90000, Output: 2000})
	usages{
		"anthropic": `{"input_tokens":5,"output_tokens":4,"cache_read_input_tokens":0,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200}}`,
	}.run(t, llm.Usage{Input: 5, CacheWrite: 100, CacheWriteLong: 200, Output: 4})
}

func TestS46ThinkingTokens(t *testing.T) {
	t.Parallel()
	want := llm.Usage{Input: 10, Output: 34, Reasoning: 448}
	usages{
		"openai":    `{"prompt_tokens":10,"completion_tokens":482,"total_tokens":492,"completion_tokens_details":{"reasoning_tokens":448}}`,
		"anthropic": `{"input_tokens":10,"output_tokens":482,"output_tokens_details":{"thinking_tokens":448}}`,
		"gemini":    `{"promptTokenCount":10,"candidatesTokenCount":34,"thoughtsTokenCount":448,"totalTokenCount":492}`,
	}.run(t, want)
	usages{
		"openai": `{"prompt_tokens":10,"completion_tokens":34,"total_tokens":492,"completion_tokens_details":{"reasoning_tokens":448}}`,
		"gemini": `{"promptTokenCount":10,"candidatesTokenCount":482,"thoughtsTokenCount":448,"totalTokenCount":492}`,
	}.run(t, want)
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	require.NoError(t, err)
	return string(raw)
}

// whole is an answer in one piece with a text.
func whole(t *testing.T, format, text string) string {
	t.Helper()
	return map[string]string{
		"openai": `{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + quoted(t, text) +
			`},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		"anthropic": `{"id":"x","type":"message","model":"m","content":[{"type":"text","text":` + quoted(t, text) +
			`}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
		"gemini": `{"candidates":[{"content":{"parts":[{"text":` + quoted(t, text) +
			`}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`,
	}[format]
}
