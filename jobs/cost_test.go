package jobs

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
	"tollgate/billing/ledger"
)

// shape is one way in which a provider says what a call used, and what that costs.
type shape struct {
	name, format, price string
	usage               string // as on the wire
	want                ledger.Micros
	estimated           bool // a figure or a rate had to be guessed
}

// rate is a known rate in micro-USD for a million tokens.
func rate(micros ledger.Micros) ledger.Rate { return ledger.PerMillion(micros) }

// prices are those of the table below, beside the shipped ones.
var prices = map[string]ledger.Price{
	"claude": {Input: rate(3_000_000), Output: rate(15_000_000), CacheRead: rate(300_000), CacheWrite: rate(3_750_000), CacheWriteLong: rate(6_000_000),
		LongOver: 200_000, Long: ledger.Rates{Input: rate(6_000_000), Output: rate(22_500_000), CacheRead: rate(600_000), CacheWrite: rate(7_500_000), CacheWriteLong: rate(12_000_000)}},
	"gpt":       {Input: rate(1_250_000), Output: rate(10_000_000), CacheRead: rate(125_000)},
	"gptwrites": {Input: rate(1_250_000), Output: rate(10_000_000), CacheRead: rate(125_000), CacheWrite: rate(1_562_500)},
	"pro": {Input: rate(1_250_000), Output: rate(10_000_000), CacheRead: rate(310_000),
		LongOver: 200_000, Long: ledger.Rates{Input: rate(2_500_000), Output: rate(15_000_000), CacheRead: rate(625_000)}},
}

// shippedNames are the rows of the table that the release knows the price of.
var shippedNames = map[string]string{"terra": "openai/gpt-5.6-terra", "sonnet": "anthropic/claude-sonnet-5", "flash": "google/gemini-3.8-flash"}

// lastSecond is the end of a launch price.
var lastSecond = time.Date(2026, time.December, 31, 23, 59, 59, 999_999_999, time.UTC)

// shapesOfUsage are worked out by hand from the published meaning of each figure.
var shapesOfUsage = []shape{
	{"plain", "openai", "gpt", `{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}`, 3250, false},
	{"no total", "openai", "gpt", `{"prompt_tokens":1000,"completion_tokens":200}`, 3250, false},
	{"cached inside", "openai", "gpt", `{"prompt_tokens":100000,"completion_tokens":2000,"total_tokens":102000,"prompt_tokens_details":{"cached_tokens":90000}}`, 43_750, false},
	{"all cached", "openai", "gpt", `{"prompt_tokens":100000,"completion_tokens":1,"total_tokens":100001,"prompt_tokens_details":{"cached_tokens":100000}}`, 12_510, false},
	{"cached beside", "openai", "gpt", `{"prompt_tokens":10000,"completion_tokens":2000,"total_tokens":102000,"prompt_tokens_details":{"cached_tokens":90000}}`, 43_750, false},
	{"written inside", "openai", "gptwrites", `{"prompt_tokens":5000,"completion_tokens":10,"total_tokens":5010,"prompt_tokens_details":{"cached_tokens":1000,"cache_write_tokens":3000}}`, 6163, false},
	{"written beside", "openai", "gptwrites", `{"prompt_tokens":5,"completion_tokens":400,"total_tokens":60405,"prompt_tokens_details":{"cached_tokens":40000,"cache_write_tokens":20000}}`, 40_256, false},
	{"written, its rate unknown", "openai", "gpt", `{"prompt_tokens":5000,"completion_tokens":10,"total_tokens":5010,"prompt_tokens_details":{"cache_write_tokens":3000}}`, 6350, true},
	{"reasoning inside", "openai", "gpt", `{"prompt_tokens":10,"completion_tokens":482,"total_tokens":492,"completion_tokens_details":{"reasoning_tokens":448}}`, 4833, false},
	{"reasoning beside", "openai", "gpt", `{"prompt_tokens":10,"completion_tokens":34,"total_tokens":492,"completion_tokens_details":{"reasoning_tokens":448}}`, 4833, false},
	{"only reasoning", "openai", "gpt", `{"prompt_tokens":10,"completion_tokens":448,"total_tokens":458,"completion_tokens_details":{"reasoning_tokens":448}}`, 4493, false},
	{"cached inside, reasoning beside", "openai", "gpt", `{"prompt_tokens":1000,"completion_tokens":34,"total_tokens":1482,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":448}}`, 5620, false},
	{"total above what it names", "openai", "gpt", `{"prompt_tokens":10,"completion_tokens":34,"total_tokens":492}`, 4833, true},
	{"total below", "openai", "gpt", `{"prompt_tokens":10,"completion_tokens":34,"total_tokens":12}`, 353, true},
	{"one token", "openai", "gpt", `{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}`, 1, false},
	{"zeros are figures", "openai", "gpt", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, 0, false},
	{"a million of each", "openai", "gpt", `{"prompt_tokens":1000000,"completion_tokens":1000000,"total_tokens":2000000}`, 11_250_000, false},
	{"shipped", "openai", "terra", `{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}`, 9272, false},
	{"shipped, cached", "openai", "terra", `{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010,"prompt_tokens_details":{"cached_tokens":900}}`, 500, false},
	{"shipped, written", "openai", "terra", `{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010,"prompt_tokens_details":{"cache_write_tokens":900}}`, 2570, false},
	{"shipped, just no long input", "openai", "terra", `{"prompt_tokens":272000,"completion_tokens":10,"total_tokens":272010,"prompt_tokens_details":{"cached_tokens":100000}}`, 364_120, false},
	{"shipped, long input", "openai", "terra", `{"prompt_tokens":272001,"completion_tokens":10,"total_tokens":272011,"prompt_tokens_details":{"cached_tokens":100000}}`, 728_184, false},
	{"plain", "anthropic", "claude", `{"input_tokens":1000,"output_tokens":200}`, 6000, false},
	{"read", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_read_input_tokens":40000,"cache_creation_input_tokens":0}`, 18_015, false},
	{"written for minutes", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_read_input_tokens":0,"cache_creation_input_tokens":20000,"cache_creation":{"ephemeral_5m_input_tokens":20000,"ephemeral_1h_input_tokens":0}}`, 81_015, false},
	{"written, time not said", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_creation_input_tokens":20000}`, 81_015, false},
	{"written for an hour", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_creation_input_tokens":20000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":20000}}`, 126_015, false},
	{"both, and read", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_read_input_tokens":40000,"cache_creation_input_tokens":20000,"cache_creation":{"ephemeral_5m_input_tokens":5000,"ephemeral_1h_input_tokens":15000}}`, 126_765, false},
	{"parts below the whole", "anthropic", "claude", `{"input_tokens":5,"output_tokens":400,"cache_creation_input_tokens":20000,"cache_creation":{"ephemeral_5m_input_tokens":5000,"ephemeral_1h_input_tokens":5000}}`, 114_765, true},
	{"thinking inside", "anthropic", "claude", `{"input_tokens":10,"output_tokens":482,"output_tokens_details":{"thinking_tokens":448}}`, 7260, false},
	{"thinking above the output", "anthropic", "claude", `{"input_tokens":10,"output_tokens":34,"output_tokens_details":{"thinking_tokens":448}}`, 6750, true},
	{"just no long input", "anthropic", "claude", `{"input_tokens":150000,"output_tokens":1,"cache_read_input_tokens":50000}`, 465_015, false},
	{"long input", "anthropic", "claude", `{"input_tokens":150001,"output_tokens":1,"cache_read_input_tokens":50000}`, 930_029, false},
	{"long by what it wrote into the cache", "anthropic", "claude", `{"input_tokens":1,"output_tokens":1000,"cache_read_input_tokens":100000,"cache_creation_input_tokens":100000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":100000}}`, 1_282_506, false},
	{"long output is no long input", "anthropic", "claude", `{"input_tokens":1,"output_tokens":900000}`, 13_500_003, false},
	{"half a micro goes up", "anthropic", "claude", `{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":5,"cache_creation_input_tokens":0}`, 2, false},
	{"shipped", "anthropic", "sonnet", `{"input_tokens":1234,"output_tokens":567}`, 8138, false},
	{"shipped, every class", "anthropic", "sonnet", `{"input_tokens":5,"output_tokens":400,"cache_read_input_tokens":1000,"cache_creation_input_tokens":500,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":200},"output_tokens_details":{"thinking_tokens":100}}`, 5760, false},
	{"plain", "gemini", "pro", `{"promptTokenCount":1000,"candidatesTokenCount":200,"totalTokenCount":1200}`, 3250, false},
	{"cached", "gemini", "pro", `{"promptTokenCount":100000,"candidatesTokenCount":2000,"cachedContentTokenCount":90000,"totalTokenCount":102000}`, 60_400, false},
	{"thoughts beside", "gemini", "pro", `{"promptTokenCount":10,"candidatesTokenCount":34,"thoughtsTokenCount":448,"totalTokenCount":492}`, 4833, false},
	{"thoughts inside", "gemini", "pro", `{"promptTokenCount":10,"candidatesTokenCount":482,"thoughtsTokenCount":448,"totalTokenCount":492}`, 4833, false},
	{"only thoughts", "gemini", "pro", `{"promptTokenCount":10,"thoughtsTokenCount":448,"totalTokenCount":458}`, 4493, false},
	{"what tools read", "gemini", "pro", `{"promptTokenCount":10,"candidatesTokenCount":34,"toolUsePromptTokenCount":100,"totalTokenCount":144}`, 478, false},
	{"just no long input", "gemini", "pro", `{"promptTokenCount":200000,"candidatesTokenCount":10,"totalTokenCount":200010}`, 250_100, false},
	{"long input, cached", "gemini", "pro", `{"promptTokenCount":200001,"candidatesTokenCount":10,"cachedContentTokenCount":200000,"totalTokenCount":200011}`, 125_153, false},
	{"nothing written", "gemini", "pro", `{"promptTokenCount":1000,"totalTokenCount":1000}`, 1250, false},
	{"total above what it names", "gemini", "pro", `{"promptTokenCount":10,"candidatesTokenCount":34,"totalTokenCount":492}`, 4833, true},
	{"shipped, cached without a rate", "gemini", "flash", `{"promptTokenCount":1000,"candidatesTokenCount":10,"cachedContentTokenCount":900,"totalTokenCount":1010}`, 788, true},
	{"shipped, in its last second", "gemini", "flash", `{"promptTokenCount":1000,"candidatesTokenCount":200,"totalTokenCount":1200}`, 1500, false},
}

// TestCostOfUsageOnTheWire: from a provider's figures, read by its adapter, to integer
// micro-USD. S45 and S46 stand among the rows of each format.
func TestCostOfUsageOnTheWire(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(shapesOfUsage), 40)
	server := fakellm.New(1)
	web := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); web.Close() })
	client, err := llm.NewHTTP(web.Listener.Addr().String())
	require.NoError(t, err)
	openAI, err := llm.NewOpenAI(llm.Config{BaseURL: web.URL + "/v1", HTTP: client})
	require.NoError(t, err)
	anthropic, err := llm.NewAnthropic(llm.Config{BaseURL: web.URL, HTTP: client})
	require.NoError(t, err)
	gemini, err := llm.NewGemini(llm.Config{BaseURL: web.URL, HTTP: client})
	require.NoError(t, err)
	registry, err := llm.NewRegistry(llm.OpenAIEntry("openai", openAI, "m"), llm.AnthropicEntry(anthropic, "m"), llm.GeminiEntry(gemini, "m"))
	require.NoError(t, err)
	models := map[string]string{"openai": "openai/m", "anthropic": "anthropic/m", "gemini": "google/m"}
	for _, row := range shapesOfUsage {
		price, ok := prices[row.price]
		if !ok {
			price, err = ledger.PriceAt(shippedNames[row.price], lastSecond)
			require.NoError(t, err)
		}
		for _, whole := range []bool{false, true} {
			server.Play(fakellm.Turn{Usage: json.RawMessage(row.usage), Whole: whole, Text: "fine"})
			answer, err := llm.Call(t.Context(), registry, llm.Request{Model: models[row.format], Prompt: "x", MaxTokens: 100})
			require.NoError(t, err)
			used := tokens(answer.Usage)
			require.Equal(t, row.want, price.Cost(used), "%s: %s", row.format, row.name)
			require.Equal(t, row.estimated, used.Estimated || price.Guesses(used), "%s: %s", row.format, row.name)
		}
	}
}

// TestCostWithoutFigures: what is counted from the text is marked, and never above what
// was held for the call.
func TestCostWithoutFigures(t *testing.T) {
	t.Parallel()
	server := fakellm.New(1)
	web := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); web.Close() })
	client, err := llm.NewHTTP(web.Listener.Addr().String())
	require.NoError(t, err)
	provider, err := llm.NewAnthropic(llm.Config{BaseURL: web.URL, HTTP: client})
	require.NoError(t, err)
	registry, err := llm.NewRegistry(llm.AnthropicEntry(provider, "m"))
	require.NoError(t, err)
	server.Play(fakellm.Turn{NoUsage: true, Text: "some words"})
	req := llm.Request{Model: "anthropic/m", Prompt: "a question of some length", MaxTokens: 100}
	answer, err := llm.Call(t.Context(), registry, req)
	require.NoError(t, err)
	used := tokens(answer.Usage)
	require.True(t, used.Estimated)
	price := prices["claude"]
	require.Positive(t, price.Cost(used))
	require.LessOrEqual(t, price.Cost(used), price.HoldFor(llm.InputBound(req), req.MaxTokens))
}

// TestTheSecondAPriceEnds: a call that may end behind the turn is held at the dearer of
// both prices and costs what was valid when it began; where the price behind the turn is
// not known, it does not begin.
func TestTheSecondAPriceEnds(t *testing.T) {
	t.Parallel()
	turn := lastSecond.Add(time.Nanosecond)
	list := ledger.PriceList{
		{Provider: "p", Model: "m", To: turn, Input: rate(750_000), Output: rate(3_750_000)},
		{Provider: "p", Model: "m", From: turn, Input: rate(1_500_000), Output: rate(7_500_000)},
	}
	used := ledger.Tokens{Input: 1_000_000, Output: 1_000_000}
	for _, test := range []struct {
		at         time.Time
		takes      time.Duration
		hold, cost ledger.Micros
	}{
		{turn.Add(-time.Minute), time.Second, 4_500_000, 4_500_000},
		{turn.Add(-time.Second), time.Second - 1, 4_500_000, 4_500_000},
		{turn.Add(-time.Second), time.Second, 9_000_000, 4_500_000},
		{turn.Add(-1), time.Minute, 9_000_000, 4_500_000},
		{turn, time.Minute, 9_000_000, 9_000_000},
	} {
		quote, err := list.Quote("p/m", test.at, test.takes, used.Input, used.Output)
		require.NoError(t, err)
		require.Equal(t, test.hold, quote.Amount, test.at)
		require.Equal(t, test.cost, quote.Price.Cost(used), test.at)
	}
	_, err := ledger.QuoteFor("google/gemini-3.8-flash", lastSecond, time.Minute, 1, 1)
	require.ErrorIs(t, err, ledger.ErrUnknownPrice, "its price of the new year has no output rate yet")
}
