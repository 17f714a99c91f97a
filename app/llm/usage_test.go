package llm

import (
	"fmt"
	"math"
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

// FuzzReadUsage: no class is ever negative, and what the provider calls the total
// is reached or the figures are marked.
func FuzzReadUsage(f *testing.F) {
	f.Add(int64(10), int64(4), int64(14), int64(3), int64(2), int64(1), true)
	f.Add(int64(5), int64(400), int64(60405), int64(40000), int64(20000), int64(0), true)
	f.Add(int64(10), int64(34), int64(492), int64(0), int64(0), int64(448), false)
	f.Fuzz(func(t *testing.T, prompt, completion, total, cached, written, reasoning int64, withTotal bool) {
		raw := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}`,
			prompt, completion, cached, written, reasoning)
		if withTotal {
			raw += fmt.Sprintf(`,"total_tokens":%d`, total)
		}
		u, ok := readUsage([]byte(raw + "}"))
		if !ok {
			return
		}
		for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning} {
			require.GreaterOrEqual(t, n, int64(0))
		}
		require.Equal(t, cached, u.CacheRead)
		require.Equal(t, written, u.CacheWrite)
		require.Equal(t, reasoning, u.Reasoning)
		require.GreaterOrEqual(t, u.Total(), prompt+completion)
		if withTotal && !u.Estimated {
			require.Equal(t, total, u.Total())
		}
		if withTotal {
			require.GreaterOrEqual(t, u.Total(), total, "never less than the provider's word")
		}
	})
}
