package llm

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzUsage: whatever a provider calls its figures, no class is negative, and none is
// beyond what can be priced.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"prompt_tokens":5,"completion_tokens":400,"total_tokens":60405,"prompt_tokens_details":{"cached_tokens":40000}}`))
	f.Add([]byte(`{"input_tokens":5,"output_tokens":9,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":3},"output_tokens_details":{"thinking_tokens":20}}`))
	f.Add([]byte(`{"promptTokenCount":10,"cachedContentTokenCount":90,"thoughtsTokenCount":6,"totalTokenCount":12}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, read := range map[string]func([]byte) (Usage, bool){"openai": readUsage, "anthropic": readAnthropicUsage, "gemini": readGeminiUsage} {
			u, ok := read(raw)
			if !ok && u != (Usage{}) {
				t.Fatalf("%s: unusable figures came along: %+v", name, u)
			}
			for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning} {
				if n < 0 || n > 8*maxCount {
					t.Fatalf("%s: %+v of %s", name, u, raw)
				}
			}
		}
	})
}

// answers is a transport that answers everything alike.
type answers struct {
	status int
	kind   string
	body   []byte
}

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: req}, nil
}

// seeds are answers of each format, from which others are made.
var seeds = []struct {
	body   string
	status int
	stream bool
}{
	{"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", 200, true},
	{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n", 200, true},
	{"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1,\"totalTokenCount\":2}}\n\n", 200, true},
	{`{"error":{"type":"rate_limit_error","details":[{"violations":[{"quotaId":"PerDay"}]}]}}`, 429, false},
	{"event: error\ndata: boom\n\n", 200, true},
}

// FuzzAnswer: whatever a server sends, each adapter gives an answer that keeps the
// package's promises, or an *Error, and what was live is a beginning of the text.
func FuzzAnswer(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed.body), seed.status, seed.stream)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, stream bool) {
		meet(t, body, status, stream)
	})
}

// meet lets each adapter get an answer.
func meet(t *testing.T, body []byte, status int, stream bool) {
	t.Helper()
	kind := "application/json"
	if stream {
		kind = "text/event-stream"
	}
	cfg := Config{BaseURL: "http://models.example", Key: FixedKey("sk-secret"),
		HTTP: &http.Client{Transport: answers{status: 200 + (status&0x1ff)%400, kind: kind, body: body}}}
	openAI, _ := NewOpenAI(cfg)
	anthropic, _ := NewAnthropic(cfg)
	gemini, _ := NewGemini(cfg)
	for _, provider := range []Provider{openAI, anthropic, gemini} {
		checkAnswer(t, provider)
	}
}

// TestSpoiledAnswers is FuzzAnswer with answers that are spoiled at random, so that some
// of it is part of every run of the suite.
func TestSpoiledAnswers(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	scraps := []string{"\n", "\n\n", "data: ", "event: error\n", `\ud83d`, `\u0000`, "\xff", `"`, "{", "}", "[", "null", "-1", "1e999", "99999999999999999999", `"text":`, `"usage":`}
	for range 4000 {
		seed := seeds[chance.IntN(len(seeds))]
		body := []byte(seed.body)
		for range chance.IntN(4) {
			at, to := chance.IntN(len(body)+1), chance.IntN(len(body)+1)
			switch chance.IntN(4) {
			case 0:
				body = body[:at]
			case 1:
				body = slices.Concat(body[:at], []byte(scraps[chance.IntN(len(scraps))]), body[at:])
			case 2:
				body = slices.Concat(body[:min(at, to)], body[max(at, to):])
			case 3:
				body = slices.Concat(body[:max(at, to)], body[min(at, to):])
			}
		}
		meet(t, body, seed.status+chance.IntN(2)*chance.IntN(400), seed.stream != (chance.IntN(9) == 0))
	}
}

func checkAnswer(t *testing.T, provider Provider) {
	t.Helper()
	var live bytes.Buffer
	req := Request{Model: "m", Prompt: "x", MaxTokens: 10, Live: func(text string) { live.WriteString(text) }}
	answer, err := provider.Call(t.Context(), req)
	if err != nil {
		fault := new(Error)
		if !errors.As(err, &fault) || fault.Class == "" || fault.Message == "" {
			t.Fatalf("%v gives %#v", provider, err)
		}
		if bytes.Contains([]byte(fault.Error()), []byte("sk-secret")) || !fault.Dispatched && fault.Usage != nil {
			t.Fatalf("%v says %v", provider, fault)
		}
		answer = fault.Answer
	} else if blank(answer.Text) {
		t.Fatalf("%v takes a blank answer", provider)
	}
	if !utf8.ValidString(answer.Text) || bytes.ContainsRune([]byte(answer.Text), 0) || !utf8.Valid(live.Bytes()) {
		t.Fatalf("%v hands on a broken text %q", provider, answer.Text)
	}
	if err == nil && !bytes.Equal(live.Bytes(), []byte(answer.Text)) {
		t.Fatalf("%v was live %q and is %q", provider, live.String(), answer.Text)
	}
}
