package llm

import (
	"encoding/json"
	"strings"
)

// geminiDialect is how Gemini answers.
var geminiDialect = dialect{
	whole: wholeGemini, usage: readGeminiUsage, raw: rawGemini, readError: readGeminiError,
	classify: classifyGemini, idHeader: "X-Request-Id",
	endings: map[string]ending{
		"stop": endDone, "max_tokens": endCut,
		"safety": endRefused, "recitation": endRefused, "blocklist": endRefused, "prohibited_content": endRefused,
		"spii": endRefused, "language": endRefused, "image_safety": endRefused, "model_armor": endRefused, "blocked": endRefused,
	},
}

// geminiCodes maps the names of errors, and the reasons that say more.
var geminiCodes = map[string]Class{
	"API_KEY_INVALID":      ClassAuth,
	"API_KEY_EXPIRED":      ClassAuth,
	"SERVICE_DISABLED":     ClassAuth,
	"BILLING_DISABLED":     ClassSpendLimit,
	"UNAUTHENTICATED":      ClassAuth,
	"PERMISSION_DENIED":    ClassAuth,
	"FAILED_PRECONDITION":  ClassAuth, // not for this account or country without billing
	"RESOURCE_EXHAUSTED":   ClassRateLimited,
	"UNAVAILABLE":          ClassOverloaded,
	"DEADLINE_EXCEEDED":    ClassTimeout,
	"NOT_FOUND":            ClassInvalidRequest,
	"INTERNAL":             ClassServer,
	"spending cap reached": ClassSpendLimit,
	"quota of the day":     ClassRateLimited,
}

// classifyGemini also tells whether waiting is useless: the quota of a day is refused
// with the same name as that of a minute.
func classifyGemini(_ int, e providerError) (Class, bool) {
	if class, ok := geminiCodes[e.Code]; ok {
		return class, e.Code == dayQuota
	}
	return geminiCodes[e.Type], false
}

// The codes that readGeminiError finds in texts and details.
const (
	dayQuota    = "quota of the day"
	spendingCap = "spending cap reached"
)

func readGeminiError(body []byte) providerError {
	block, e := readBlock(body)
	e.Type = word(block["status"])
	details, _ := block["details"].([]any)
	for _, detail := range details {
		detail, _ := detail.(map[string]any)
		if wait := word(detail["retryDelay"]); wait != "" {
			e.Wait = wait
		}
		if reason := word(detail["reason"]); reason != "" {
			e.Code = reason
		}
		violations, _ := detail["violations"].([]any)
		for _, violation := range violations {
			violation, _ := violation.(map[string]any)
			if strings.Contains(word(violation["quotaId"]), "PerDay") {
				e.Code = dayQuota
			}
		}
	}
	if e.Type == "RESOURCE_EXHAUSTED" && strings.Contains(strings.ToLower(e.Message), "spending cap") {
		e.Code = spendingCap
	}
	return e
}

// geminiChunk is one piece of a stream, or a whole answer; they look the same.
type geminiChunk struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []struct {
				Text    json.RawMessage `json:"text"`
				Thought bool            `json:"thought"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback *struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage      json.RawMessage `json:"usageMetadata"`
	Model      string          `json:"modelVersion"`
	ResponseID string          `json:"responseId"`
}

// addGemini adds one piece. The first candidate is the only one that was asked for.
func addGemini(t *transcript, chunk geminiChunk) error {
	t.model, t.id = firstText(chunk.Model, t.model), firstText(chunk.ResponseID, t.id)
	for _, candidate := range chunk.Candidates {
		if candidate.Index != 0 {
			continue
		}
		for _, part := range candidate.Content.Parts {
			if !part.Thought {
				t.say(string(part.Text))
			}
		}
		t.finish = firstText(candidate.FinishReason, t.finish)
	}
	if f := chunk.PromptFeedback; f != nil && f.BlockReason != "" {
		reason, err := json.Marshal(firstText(f.Message, f.BlockReason))
		if err != nil {
			return err
		}
		t.decline(string(reason))
		t.finish = "blocked"
	}
	if len(chunk.Usage) > 0 && string(chunk.Usage) != "null" {
		t.usage = chunk.Usage
		t.complete = t.finish != "" || len(chunk.Candidates) == 0
	}
	return nil
}

// wholeGemini takes an answer that came in one piece.
func wholeGemini(t *transcript, body []byte) error {
	var full geminiChunk
	if err := json.Unmarshal(body, &full); err != nil {
		return err
	}
	return addGemini(t, full)
}

// rawGemini is the answer in the shape of one that came in one piece.
func rawGemini(t *transcript, text, refusal string) any {
	whole := map[string]any{"responseId": t.id, "modelVersion": t.model, "candidates": []any{map[string]any{
		"index": 0, "content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": text}}}, "finishReason": t.finish}}}
	if refusal != "" {
		whole["promptFeedback"] = map[string]any{"blockReasonMessage": refusal}
	}
	if t.usage != nil {
		whole["usageMetadata"] = t.figures()
	}
	return whole
}

// geminiUsage is Gemini's usage block. Cached tokens are part of the prompt; thoughts
// stand beside the answer, and what tools read beside the prompt. Zeros are left out.
type geminiUsage struct {
	Prompt   *int64 `json:"promptTokenCount"`
	Answer   *int64 `json:"candidatesTokenCount"`
	Cached   *int64 `json:"cachedContentTokenCount"`
	Thoughts *int64 `json:"thoughtsTokenCount"`
	Tools    *int64 `json:"toolUsePromptTokenCount"`
	Total    *int64 `json:"totalTokenCount"`
}

func readGeminiUsage(raw []byte) (Usage, bool) {
	var w geminiUsage
	if json.Unmarshal(raw, &w) != nil || w.Prompt == nil || w.Answer == nil && w.Total == nil {
		return Usage{}, false
	}
	prompt, answer, cached, thoughts, tools := *w.Prompt, value(w.Answer), value(w.Cached), value(w.Thoughts), value(w.Tools)
	if !counts(prompt, answer, cached, thoughts, tools, value(w.Total)) {
		return Usage{}, false
	}
	cachedBeside, thoughtsBeside := cached > prompt, true
	if w.Total != nil && *w.Total == prompt+answer+tools && thoughts > 0 && thoughts <= answer {
		thoughtsBeside = false // as one of the two ways into the models counts them
	}
	u := Usage{Input: prompt + tools, CacheRead: cached, Output: answer, Reasoning: thoughts}
	if !cachedBeside {
		u.Input -= cached
	}
	if !thoughtsBeside {
		u.Output -= thoughts
	}
	return reconcile(u, w.Total), true
}
