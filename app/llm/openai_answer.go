package llm

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"
)

// openAIDialect is how OpenAI, and servers that speak its format, answer.
var openAIDialect = dialect{
	whole: wholeOpenAI, usage: readUsage, raw: rawOpenAI, readError: readOpenAIError, classify: classifyOpenAI,
	endings: openAIEndings, idHeader: "X-Request-Id",
}

// openAIEndings maps the finish reasons seen from OpenAI-compatible servers.
var openAIEndings = map[string]ending{
	"stop": endDone, "eos": endDone, "end_turn": endDone,
	"length": endCut, "max_tokens": endCut,
	"content_filter": endRefused, "refusal": endRefused, "safety": endRefused,
}

// openAICodes maps the codes and types that say more than the status. They are compared
// exactly: texts lie, for one provider writes of an insufficient quota when only
// the minute is full.
var openAICodes = map[string]Class{
	"insufficient_quota":                ClassSpendLimit,
	"billing_hard_limit_reached":        ClassSpendLimit,
	"billing_not_active":                ClassSpendLimit,
	"credit_balance_exhausted":          ClassSpendLimit,
	"organization_spend_limit_exceeded": ClassSpendLimit,
	"project_spend_limit_exceeded":      ClassSpendLimit,
	"organization_usage_limit_exceeded": ClassSpendLimit,
	"enforced_spend_limit_reached":      ClassSpendLimit,
	"context_length_exceeded":           ClassContextTooLong,
	"request_too_large":                 ClassContextTooLong,
	"content_filter":                    ClassRefused,
	"content_policy_violation":          ClassRefused,
	"rate_limit_exceeded":               ClassRateLimited,
	"rate_limit_error":                  ClassRateLimited,
	"overloaded_error":                  ClassOverloaded,
	"overloaded":                        ClassOverloaded,
	"invalid_api_key":                   ClassAuth,
	"authentication_error":              ClassAuth,
}

func classifyOpenAI(_ int, e providerError) (Class, bool) {
	if class, ok := openAICodes[e.Code]; ok {
		return class, false
	}
	return openAICodes[e.Type], false
}

func readOpenAIError(body []byte) providerError {
	block, e := readBlock(body)
	e.Type, e.Code = word(block["type"]), word(block["code"])
	return e
}

// addOpenAI adds one piece of a stream. The first choice is the only one that was asked
// for.
func addOpenAI(t *transcript, chunk openai.ChatCompletionChunk) error {
	t.model, t.id = firstText(chunk.Model, t.model), firstText(chunk.ID, t.id)
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		t.say(choice.Delta.JSON.Content.Raw())
		t.decline(choice.Delta.JSON.Refusal.Raw())
		t.finish = firstText(choice.FinishReason, t.finish)
	}
	if chunk.JSON.Usage.Valid() {
		t.usage = []byte(chunk.JSON.Usage.Raw())
		t.complete = len(chunk.Choices) == 0 || t.finish != "" // some servers count as they write
	}
	return nil
}

// wholeOpenAI takes an answer that came in one piece from a server that does not stream.
func wholeOpenAI(t *transcript, body []byte) error {
	var full openai.ChatCompletion
	if err := json.Unmarshal(body, &full); err != nil {
		return err
	}
	t.model, t.id = full.Model, full.ID
	if full.JSON.Usage.Valid() {
		t.usage = []byte(full.JSON.Usage.Raw())
	}
	t.complete = true
	if len(full.Choices) == 0 {
		t.finish = "stop" // complete, and empty
		return nil
	}
	first := full.Choices[0]
	t.say(first.Message.JSON.Content.Raw())
	t.decline(first.Message.JSON.Refusal.Raw())
	t.finish = first.FinishReason
	return nil
}

// rawOpenAI is the answer in the shape of one that came in one piece: a stream's own
// bytes are a hundred times its text.
func rawOpenAI(t *transcript, text, refusal string) any {
	message := map[string]any{"role": "assistant", "content": text}
	if refusal != "" {
		message["refusal"] = refusal
	}
	whole := map[string]any{"id": t.id, "object": "chat.completion", "model": t.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": t.finish}}}
	if t.usage != nil {
		whole["usage"] = t.figures()
	}
	return whole
}
