package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// openAI is OpenAI's chat completions format.
type openAI struct{}

func (openAI) name() string     { return "openai" }
func (openAI) idHeader() string { return "X-Request-Id" }

// openAIAsk is a request's body.
type openAIAsk struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	Stream              bool   `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

func (openAI) read(_ *http.Request, body []byte) (Seen, string) {
	var a openAIAsk
	if err := json.Unmarshal(body, &a); err != nil {
		return Seen{}, "We could not parse the JSON body of your request: " + err.Error()
	}
	seen := a.seen()
	switch {
	case a.Model == "":
		return seen, "you must provide a model parameter"
	case len(a.Messages) == 0:
		return seen, "[] is too short - 'messages'"
	case a.MaxTokens != nil && a.MaxCompletionTokens != nil:
		return seen, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
	case seen.MaxTokens < 1:
		return seen, "this server wants a limit of tokens of at least 1"
	case a.StreamOptions != nil && !a.Stream:
		return seen, "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	return seen, a.checkFormat()
}

func (a openAIAsk) seen() Seen {
	seen := Seen{Model: a.Model, Stream: a.Stream, IncludeUsage: a.StreamOptions != nil && a.StreamOptions.IncludeUsage}
	switch {
	case a.MaxCompletionTokens != nil:
		seen.MaxTokens, seen.TokenField = *a.MaxCompletionTokens, "max_completion_tokens"
	case a.MaxTokens != nil:
		seen.MaxTokens, seen.TokenField = *a.MaxTokens, "max_tokens"
	}
	if a.ResponseFormat != nil && a.ResponseFormat.JSONSchema != nil {
		seen.Schema = a.ResponseFormat.JSONSchema.Schema
	}
	texts := map[string][]string{}
	for _, m := range a.Messages {
		texts[m.Role] = append(texts[m.Role], m.Content.Texts...)
		seen.Files = append(seen.Files, m.Content.Files...)
	}
	seen.System, seen.User = strings.Join(texts["system"], "\n"), strings.Join(texts["user"], "\n")
	return seen
}

func (a openAIAsk) checkFormat() string {
	format := a.ResponseFormat
	if format == nil || format.Type == "text" || format.Type == "json_object" {
		return ""
	}
	if format.Type != "json_schema" || format.JSONSchema == nil {
		return "Invalid value for 'response_format'"
	}
	name := format.JSONSchema.Name
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "Invalid 'response_format.json_schema.name'"
	}
	return checkSchema(format.JSONSchema.Schema, rules{everyKey: format.JSONSchema.Strict, closed: format.JSONSchema.Strict})
}

func (openAI) fail(w http.ResponseWriter, turn Turn) {
	block := map[string]any{"message": turn.Message, "type": turn.Type, "param": nil, "code": nil}
	if turn.Code != "" {
		block["code"] = turn.Code
	}
	writeJSON(w, turn.Status, map[string]any{"error": block})
}

func (openAI) finishes(reply) (string, string) { return "stop", "length" }

func (openAI) usage(u figures) json.RawMessage {
	block := map[string]any{"prompt_tokens": u.prompt, "completion_tokens": u.output + u.reasoning, "total_tokens": u.prompt + u.output + u.reasoning}
	if u.cached+u.written > 0 {
		block["prompt_tokens_details"] = map[string]any{"cached_tokens": u.cached, "cache_write_tokens": u.written}
	}
	if u.reasoning > 0 {
		block["completion_tokens_details"] = map[string]any{"reasoning_tokens": u.reasoning}
	}
	return encode(block)
}

func (openAI) whole(r reply) any {
	message := map[string]any{"role": "assistant", "content": r.text()}
	if r.turn.Null || r.turn.Refusal != "" {
		message["content"] = nil
	}
	if r.turn.Refusal != "" {
		message["refusal"] = r.turn.Refusal
	}
	choices := []any{map[string]any{"index": 0, "message": message, "finish_reason": orNull(r.finish)}}
	if r.turn.NoChoices {
		choices = []any{}
	}
	whole := map[string]any{"id": r.id, "object": "chat.completion", "created": 1, "model": r.model, "choices": choices}
	if !r.turn.NoUsage {
		whole["usage"] = r.usage
	}
	return whole
}

func (openAI) writer(out *events, r reply) writer { return &openAIWriter{events: out, r: r} }

type openAIWriter struct {
	*events
	r reply
}

func (e *openAIWriter) begin()              { e.delta(`{"role":"assistant","content":""}`, "null") }
func (e *openAIWriter) piece(quoted string) { e.delta(`{"content":`+quoted+`}`, "null") }
func (e *openAIWriter) null()               { e.delta(`{"content":null}`, "null") }
func (e *openAIWriter) decline(text string) { e.delta(`{"refusal":`+quote(text)+`}`, "null") }
func (e *openAIWriter) broken()             { e.data(`{"id":"x","choices":[{"delta":{"content":"half`) }
func (e *openAIWriter) fail(event string)   { e.data(event) }
func (e *openAIWriter) done()               { e.data("[DONE]") }

func (e *openAIWriter) end(finish string, usage json.RawMessage) {
	if finish != "" && !e.r.turn.NoChoices {
		e.delta("{}", quote(finish))
	}
	if e.r.turn.NoChoices {
		e.chunk("[]", "null")
	}
	if e.r.turn.UsageCut {
		panic(http.ErrAbortHandler)
	}
	if usage != nil {
		e.chunk("[]", string(usage))
	}
}

func (e *openAIWriter) delta(delta, finish string) {
	if !e.r.turn.NoChoices {
		e.chunk(`[{"index":0,"delta":`+delta+`,"finish_reason":`+finish+`}]`, "null")
	}
}

func (e *openAIWriter) chunk(choices, usage string) {
	e.data(fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":1,"model":%q,"choices":%s,"usage":%s}`,
		e.r.id, e.r.model, choices, usage))
}
