package llm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadUsage is the table of usage shapes. In each the classes add up to the
// provider's total, or the figures are marked.
func TestReadUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		want      Usage
	}{
		{"plain", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}`, Usage{Input: 10, Output: 4}},
		{"no total", `{"prompt_tokens":10,"completion_tokens":4}`, Usage{Input: 10, Output: 4}},
		{"zeros are figures", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, Usage{}},
		{"details null", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":null,"completion_tokens_details":null}`, Usage{Input: 10, Output: 4}},
		{"details empty", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{},"completion_tokens_details":{}}`, Usage{Input: 10, Output: 4}},
		{"cached inside", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":7}}`, Usage{Input: 3, CacheRead: 7, Output: 4}},
		{"all cached", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":10}}`, Usage{CacheRead: 10, Output: 4}},
		{"written inside", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":5}}`, Usage{Input: 3, CacheRead: 2, CacheWrite: 5, Output: 4}},
		{"cached inside, no total", `{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":7}}`, Usage{Input: 3, CacheRead: 7, Output: 4}},
		{"cached beside", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":7}}`, Usage{Input: 10, CacheRead: 7, Output: 4}},
		{"cached beside, no total", `{"prompt_tokens":5,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":7}}`, Usage{Input: 5, CacheRead: 7, Output: 4}},
		{"thoughts inside", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 10, Output: 3, Reasoning: 6}},
		{"only thoughts", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":9}}`, Usage{Input: 10, Reasoning: 9}},
		{"thoughts beside", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":25,"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 10, Output: 9, Reasoning: 6}},
		{"thoughts beside, no total", `{"prompt_tokens":10,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 10, Output: 2, Reasoning: 6}},
		{"both inside", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 6, CacheRead: 4, Output: 3, Reasoning: 6}},
		{"both beside", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 10, CacheRead: 4, Output: 9, Reasoning: 6}},
		{"cached inside, thoughts beside", `{"prompt_tokens":10,"completion_tokens":9,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 6, CacheRead: 4, Output: 9, Reasoning: 6}},
		{"total above", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":20}`, Usage{Input: 10, Output: 10, Estimated: true}},
		{"total below", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":3}`, Usage{Input: 10, Output: 4, Estimated: true}},
		{"cached above the prompt, total denies", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":12}}`, Usage{Input: 10, CacheRead: 12, Output: 4, Estimated: true}},
		{"thoughts above the output, total denies", `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":6}}`, Usage{Input: 10, Output: 4, Reasoning: 6, Estimated: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := readUsage([]byte(test.raw))
			require.True(t, ok)
			require.Equal(t, test.want, got)
		})
	}
}

func TestReadUsageUnusable(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{"prompt_tokens":1}`, `{"completion_tokens":1}`, `{"prompt_tokens":-1,"completion_tokens":1}`,
		`{"prompt_tokens":1,"completion_tokens":-4}`, `{"prompt_tokens":"1","completion_tokens":1}`, `{"prompt_tokens":1.5,"completion_tokens":1}`,
		fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":1}`, int64(math.MaxInt64)), `{"prompt_tokens":1e30,"completion_tokens":1}`,
		`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":-7}`,
		`{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":-5}}`,
	} {
		_, ok := readUsage([]byte(raw))
		require.False(t, ok, raw)
	}
}

// TestReadUsageAddsUp: whatever the figures, no class is negative, and the classes
// reach what the provider calls the total or are marked. Small numbers, so that all
// coincidences of inside and beside occur.
func TestReadUsageAddsUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		n := func(limit int64) int64 { return random.Int64N(limit+2) - 1 }
		prompt, completion, total, cached, written, reasoning := n(6), n(6), n(20), n(6), n(3), n(6)
		raw := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}`,
			prompt, completion, cached, written, reasoning)
		withTotal := random.IntN(4) > 0
		if withTotal {
			raw += fmt.Sprintf(`,"total_tokens":%d`, total)
		}
		u, ok := readUsage([]byte(raw + "}"))
		negative := min(prompt, completion, cached, written, reasoning) < 0 || withTotal && total < 0
		if ok == negative {
			t.Fatalf("usable: %v for %s", ok, raw)
		}
		if !ok {
			continue
		}
		bad := min(u.Input, u.Output) < 0 || u.CacheRead != cached || u.CacheWrite != written || u.Reasoning != reasoning ||
			u.Total() < prompt+completion || withTotal && (u.Total() < total || !u.Estimated && u.Total() != total)
		if bad {
			t.Fatalf("%+v for %s", u, raw)
		}
	}
}

// TestReadAnthropicUsage: the cache's figures stand beside the input, thinking is part of
// the output, and writes of an hour are apart from those of minutes.
func TestReadAnthropicUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		want      Usage
	}{
		{"plain", `{"input_tokens":10,"output_tokens":4}`, Usage{Input: 10, Output: 4}},
		{"zeros are figures", `{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}`, Usage{}},
		{"nulls", `{"input_tokens":10,"output_tokens":4,"cache_read_input_tokens":null,"cache_creation_input_tokens":null,"cache_creation":null,"output_tokens_details":null}`, Usage{Input: 10, Output: 4}},
		{"read", `{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":7}`, Usage{Input: 3, CacheRead: 7, Output: 4}},
		{"written, no parts", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":7}`, Usage{Input: 3, CacheWrite: 7, Output: 4}},
		{"written for minutes", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":7,"ephemeral_1h_input_tokens":0}}`, Usage{Input: 3, CacheWrite: 7, Output: 4}},
		{"written for an hour", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":7}}`, Usage{Input: 3, CacheWriteLong: 7, Output: 4}},
		{"both", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":2}}`, Usage{Input: 3, CacheWrite: 5, CacheWriteLong: 2, Output: 4}},
		{"parts without the whole", `{"input_tokens":3,"output_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":2}}`, Usage{Input: 3, CacheWrite: 5, CacheWriteLong: 2, Output: 4}},
		{"parts below the whole", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":2}}`, Usage{Input: 3, CacheWrite: 5, CacheWriteLong: 4, Output: 4, Estimated: true}},
		{"parts above the whole", `{"input_tokens":3,"output_tokens":4,"cache_creation_input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":2}}`, Usage{Input: 3, CacheWrite: 5, CacheWriteLong: 2, Output: 4, Estimated: true}},
		{"thinking inside", `{"input_tokens":10,"output_tokens":9,"output_tokens_details":{"thinking_tokens":6}}`, Usage{Input: 10, Output: 3, Reasoning: 6}},
		{"only thinking", `{"input_tokens":10,"output_tokens":9,"output_tokens_details":{"thinking_tokens":9}}`, Usage{Input: 10, Reasoning: 9}},
		{"thinking above the output", `{"input_tokens":10,"output_tokens":4,"output_tokens_details":{"thinking_tokens":6}}`, Usage{Input: 10, Reasoning: 6, Estimated: true}},
	}
	for _, test := range tests {
		got, ok := readAnthropicUsage([]byte(test.raw))
		require.True(t, ok, test.name)
		require.Equal(t, test.want, got, test.name)
	}
	for _, raw := range []string{``, `null`, `{}`, `{"input_tokens":1}`, `{"output_tokens":1}`, `{"input_tokens":-1,"output_tokens":1}`,
		`{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":-1}`, `{"input_tokens":1,"output_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":-4}}`,
		`{"input_tokens":"1","output_tokens":1}`, `{"input_tokens":1.5,"output_tokens":1}`, `{"input_tokens":1e30,"output_tokens":1}`} {
		_, ok := readAnthropicUsage([]byte(raw))
		require.False(t, ok, raw)
	}
}

// TestReadGeminiUsage: the cache's figure is part of the prompt, thoughts stand beside
// the answer, and what is zero is left out.
func TestReadGeminiUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		want      Usage
	}{
		{"plain", `{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":14}`, Usage{Input: 10, Output: 4}},
		{"no total", `{"promptTokenCount":10,"candidatesTokenCount":4}`, Usage{Input: 10, Output: 4}},
		{"nothing written", `{"promptTokenCount":10,"totalTokenCount":10}`, Usage{Input: 10}},
		{"cached", `{"promptTokenCount":10,"candidatesTokenCount":4,"cachedContentTokenCount":7,"totalTokenCount":14}`, Usage{Input: 3, CacheRead: 7, Output: 4}},
		{"all cached", `{"promptTokenCount":10,"candidatesTokenCount":4,"cachedContentTokenCount":10,"totalTokenCount":14}`, Usage{CacheRead: 10, Output: 4}},
		{"cached beside", `{"promptTokenCount":5,"candidatesTokenCount":4,"cachedContentTokenCount":10,"totalTokenCount":19}`, Usage{Input: 5, CacheRead: 10, Output: 4}},
		{"thoughts beside", `{"promptTokenCount":10,"candidatesTokenCount":4,"thoughtsTokenCount":6,"totalTokenCount":20}`, Usage{Input: 10, Output: 4, Reasoning: 6}},
		{"thoughts inside, as the total says", `{"promptTokenCount":10,"candidatesTokenCount":9,"thoughtsTokenCount":6,"totalTokenCount":19}`, Usage{Input: 10, Output: 3, Reasoning: 6}},
		{"only thoughts", `{"promptTokenCount":10,"thoughtsTokenCount":6,"totalTokenCount":16}`, Usage{Input: 10, Reasoning: 6}},
		{"tools", `{"promptTokenCount":10,"candidatesTokenCount":4,"toolUsePromptTokenCount":5,"totalTokenCount":19}`, Usage{Input: 15, Output: 4}},
		{"all", `{"promptTokenCount":10,"candidatesTokenCount":4,"cachedContentTokenCount":3,"thoughtsTokenCount":6,"toolUsePromptTokenCount":5,"totalTokenCount":25}`, Usage{Input: 12, CacheRead: 3, Output: 4, Reasoning: 6}},
		{"total above", `{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":20}`, Usage{Input: 10, Output: 10, Estimated: true}},
		{"total below", `{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":3}`, Usage{Input: 10, Output: 4, Estimated: true}},
	}
	for _, test := range tests {
		got, ok := readGeminiUsage([]byte(test.raw))
		require.True(t, ok, test.name)
		require.Equal(t, test.want, got, test.name)
	}
	for _, raw := range []string{``, `null`, `{}`, `{"promptTokenCount":1}`, `{"totalTokenCount":1}`, `{"promptTokenCount":-1,"totalTokenCount":1}`,
		`{"promptTokenCount":1,"totalTokenCount":1,"thoughtsTokenCount":-2}`, `{"promptTokenCount":1,"totalTokenCount":1e30}`, `{"promptTokenCount":"1","totalTokenCount":1}`} {
		_, ok := readGeminiUsage([]byte(raw))
		require.False(t, ok, raw)
	}
}
