package llm

import "encoding/json"

// wireUsage is the usage block of OpenAI-compatible servers. Pointers tell a
// literal 0, which is a figure, from a missing one.
type wireUsage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`
	Total      *int64 `json:"total_tokens"`
	PromptPart *struct {
		Cached     *int64 `json:"cached_tokens"`
		CacheWrite *int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionPart *struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// maxCount bounds each figure, so that no sum overflows and no slip of a provider
// becomes a fortune.
const maxCount = 1 << 40

// readUsage turns a usage block into disjoint classes. It reports false when the
// block is missing or unusable.
//
// Servers differ in whether cached tokens are part of the prompt's figure and
// thoughts part of the completion's. OpenAI counts both inside; gateways in front
// of other providers may count them beside. The total decides, and where none is
// given, a part larger than its whole.
func readUsage(raw []byte) (Usage, bool) {
	var w wireUsage
	if json.Unmarshal(raw, &w) != nil || w.Prompt == nil || w.Completion == nil {
		return Usage{}, false
	}
	prompt, completion := *w.Prompt, *w.Completion
	var cached, written, reasoning int64
	if w.PromptPart != nil {
		cached, written = value(w.PromptPart.Cached), value(w.PromptPart.CacheWrite)
	}
	if w.CompletionPart != nil {
		reasoning = value(w.CompletionPart.Reasoning)
	}
	if !counts(prompt, completion, cached, written, reasoning, value(w.Total)) {
		return Usage{}, false
	}
	cacheBeside := cached+written > prompt
	thoughtsBeside := reasoning > completion
	if w.Total != nil {
		cacheBeside, thoughtsBeside = placeBeside(*w.Total-prompt-completion, cached+written, reasoning, cacheBeside, thoughtsBeside)
	}
	u := Usage{Input: prompt, CacheRead: cached, CacheWrite: written, Output: completion, Reasoning: reasoning}
	if !cacheBeside {
		u.Input -= cached + written
	}
	if !thoughtsBeside {
		u.Output -= reasoning
	}
	return reconcile(u, w.Total), true
}

// placeBeside decides, for cache and for thoughts, by what the total holds beyond
// prompt and completion. A part larger than its whole stays beside whatever the
// total says.
func placeBeside(beyond, cache, reasoning int64, cacheMust, thoughtsMust bool) (bool, bool) {
	switch beyond {
	case 0:
		return cacheMust, thoughtsMust
	case reasoning:
		return cacheMust, true
	case cache:
		return true, thoughtsMust
	case cache + reasoning:
		return true, true
	}
	return cacheMust, thoughtsMust
}

// reconcile makes the classes add up to the provider's total. Tokens that the
// total holds beyond the classes are counted as output, the dearest class; a total
// below the classes is not believed. Both are marked.
func reconcile(u Usage, total *int64) Usage {
	if total == nil || *total == u.Total() {
		return u
	}
	u.Estimated = true
	u.Output += max(0, *total-u.Total())
	return u
}

// counts tells whether figures can be counts of tokens.
func counts(figures ...int64) bool {
	for _, n := range figures {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// counted is the usage of a call whose provider gave no figures.
func counted(req Request, text string, pieces int64) Usage {
	output := max(estimate(text), pieces)
	if req.MaxTokens > 0 {
		output = min(output, req.MaxTokens)
	}
	return Usage{Input: estimateInput(req), Output: output, Estimated: true}
}
