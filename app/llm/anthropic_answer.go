package llm

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
)

// anthropicDialect is how Anthropic answers.
var anthropicDialect = dialect{
	whole: wholeAnthropic, usage: readAnthropicUsage, raw: rawAnthropic, readError: readAnthropicError,
	classify: classifyAnthropic, idHeader: "Request-Id",
	endings: map[string]ending{
		"end_turn": endDone, "stop_sequence": endDone, "max_tokens": endCut, "refusal": endRefused,
		"model_context_window_exceeded": endFull,
	},
}

// anthropicCodes maps the types of errors, and the codes that say more.
var anthropicCodes = map[string]Class{
	"enforced_spend_limit_reached":      ClassSpendLimit,
	"credit_balance_exhausted":          ClassSpendLimit,
	"organization_spend_limit_exceeded": ClassSpendLimit,
	"workspace_spend_limit_exceeded":    ClassSpendLimit,
	"billing_error":                     ClassSpendLimit,
	"authentication_error":              ClassAuth,
	"permission_error":                  ClassAuth,
	"rate_limit_error":                  ClassRateLimited,
	"overloaded_error":                  ClassOverloaded,
	"timeout_error":                     ClassTimeout,
	"request_too_large":                 ClassContextTooLong,
	"invalid_request_error":             ClassInvalidRequest,
	"not_found_error":                   ClassInvalidRequest,
	"api_error":                         ClassServer,
}

// classifyAnthropic knows three cases that share one type with slips of ours and can be
// told by their text only.
func classifyAnthropic(_ int, e providerError) (Class, bool) {
	if class, ok := anthropicCodes[e.Code]; ok {
		return class, false
	}
	if e.Type == "invalid_request_error" {
		switch {
		case strings.Contains(e.Message, "credit balance is too low"):
			return ClassSpendLimit, false
		case strings.Contains(e.Message, "content filtering policy"):
			return ClassRefused, false
		case tooLongText(e.Message):
			return ClassContextTooLong, false
		}
	}
	return anthropicCodes[e.Type], false
}

func readAnthropicError(body []byte) providerError {
	block, e := readBlock(body)
	details, _ := block["details"].(map[string]any)
	e.Type, e.Code = word(block["type"]), firstText(word(block["error_code"]), word(details["error_code"]))
	return e
}

// addAnthropic adds one event of a stream.
func addAnthropic(t *transcript, event anthropic.MessageStreamEventUnion) error {
	switch event.Type {
	case "message_start":
		t.model, t.id = event.Message.Model, event.Message.ID
		t.usage = merged(t.usage, event.Message.JSON.Usage.Raw())
	case "content_block_start":
		t.say(event.ContentBlock.JSON.Text.Raw())
	case "content_block_delta":
		t.say(event.Delta.JSON.Text.Raw())
	case "message_delta":
		t.finish = firstText(string(event.Delta.StopReason), t.finish)
		if event.JSON.Usage.Valid() {
			t.usage = merged(t.usage, event.JSON.Usage.Raw())
			t.complete = true
		}
	}
	return nil
}

// merged is the figures told so far, each as it was told last.
func merged(sofar []byte, raw string) []byte {
	all := map[string]json.RawMessage{}
	for _, part := range [][]byte{sofar, []byte(raw)} {
		var figures map[string]json.RawMessage
		if json.Unmarshal(part, &figures) != nil {
			continue
		}
		for name, figure := range figures {
			if string(figure) != "null" {
				all[name] = figure
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	joined, err := json.Marshal(all)
	if err != nil {
		return nil // each part was JSON
	}
	return joined
}

// wholeAnthropic takes an answer that came in one piece.
func wholeAnthropic(t *transcript, body []byte) error {
	var full anthropic.Message
	if err := json.Unmarshal(body, &full); err != nil {
		return err
	}
	t.model, t.id, t.finish, t.complete = full.Model, full.ID, string(full.StopReason), true
	t.usage = merged(nil, full.JSON.Usage.Raw())
	for _, block := range full.Content {
		t.say(block.JSON.Text.Raw())
	}
	return nil
}

// rawAnthropic is the answer in the shape of one that came in one piece.
func rawAnthropic(t *transcript, text, _ string) any {
	whole := map[string]any{"id": t.id, "type": "message", "role": "assistant", "model": t.model,
		"content": []any{map[string]any{"type": "text", "text": text}}, "stop_reason": t.finish}
	if t.usage != nil {
		whole["usage"] = t.figures()
	}
	return whole
}

// anthropicUsage is Anthropic's usage block. What is read and what is written each stand
// beside the cache's figures; thinking is part of what is written.
type anthropicUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Writes     *struct {
		Minutes *int64 `json:"ephemeral_5m_input_tokens"`
		Hour    *int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	OutputPart *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func readAnthropicUsage(raw []byte) (Usage, bool) {
	var w anthropicUsage
	if json.Unmarshal(raw, &w) != nil || w.Input == nil || w.Output == nil {
		return Usage{}, false
	}
	var minutes, hour, thinking int64
	if w.Writes != nil {
		minutes, hour = value(w.Writes.Minutes), value(w.Writes.Hour)
	}
	if w.OutputPart != nil {
		thinking = value(w.OutputPart.Thinking)
	}
	written := value(w.CacheWrite)
	if !counts(*w.Input, *w.Output, value(w.CacheRead), written, minutes, hour, thinking) {
		return Usage{}, false
	}
	u := Usage{Input: *w.Input, CacheRead: value(w.CacheRead), CacheWrite: minutes, CacheWriteLong: hour,
		Output: *w.Output - thinking, Reasoning: thinking}
	switch {
	case w.Writes == nil:
		u.CacheWrite = written
	case w.CacheWrite != nil && written != minutes+hour:
		// The parts and the whole contradict each other: the dearer reading counts.
		u.CacheWriteLong += max(0, written-minutes-hour)
		u.Estimated = true
	}
	if u.Output < 0 {
		u.Output, u.Estimated = 0, true
	}
	return u, true
}

// anthropicStream lets errors inside a stream through as the provider sent them.
type anthropicStream struct {
	*ssestream.Stream[anthropic.MessageStreamEventUnion]
}

// Err implements stream.
func (s anthropicStream) Err() error {
	err := s.Stream.Err()
	if sent := new(anthropic.Error); errors.As(err, &sent) {
		return &eventError{data: []byte(sent.RawJSON())}
	}
	return err
}
