package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// anthropic is Anthropic's messages format.
type anthropic struct{}

func (anthropic) name() string     { return "anthropic" }
func (anthropic) idHeader() string { return "Request-Id" }

// anthropicAsk is a request's body. What is not listed is refused, as the real server
// does.
type anthropicAsk struct {
	Model     string  `json:"model"`
	MaxTokens int64   `json:"max_tokens"`
	System    content `json:"system"`
	Messages  []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Stream       bool `json:"stream"`
	OutputConfig *struct {
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

func (anthropic) read(r *http.Request, body []byte) (Seen, string) {
	var a anthropicAsk
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return Seen{}, "invalid request: " + err.Error()
	}
	seen := a.seen()
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return seen, "anthropic-version: header is required"
	case a.Model == "":
		return seen, "model: Field required"
	case a.MaxTokens < 1:
		return seen, "max_tokens: Field required"
	case len(a.Messages) == 0:
		return seen, "messages: at least one message is required"
	case a.Messages[0].Role != "user":
		return seen, "messages: first message must use the \"user\" role"
	case seen.CacheMarks > 4:
		return seen, "A maximum of 4 blocks with cache_control may be provided."
	case a.OutputConfig == nil || a.OutputConfig.Format == nil:
		return seen, ""
	case a.OutputConfig.Format.Type != "json_schema":
		return seen, "output_config.format.type: Input should be 'json_schema'"
	}
	return seen, checkSchema(seen.Schema, rules{closed: true})
}

func (a anthropicAsk) seen() Seen {
	seen := Seen{Model: a.Model, MaxTokens: a.MaxTokens, TokenField: "max_tokens", Stream: a.Stream, IncludeUsage: true,
		System: strings.Join(a.System.Texts, "\n"), CacheMarks: a.System.Marks}
	var texts []string
	for _, m := range a.Messages {
		texts = append(texts, m.Content.Texts...)
		seen.Files = append(seen.Files, m.Content.Files...)
		seen.CacheMarks += m.Content.Marks
	}
	seen.User = strings.Join(texts, "\n")
	if a.OutputConfig != nil && a.OutputConfig.Format != nil {
		seen.Schema = a.OutputConfig.Format.Schema
	}
	return seen
}

var anthropicTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

func (anthropic) fail(w http.ResponseWriter, turn Turn) {
	kind := turn.Type
	if kind == "" {
		kind = anthropicTypes[turn.Status]
	}
	if kind == "" {
		kind = "api_error"
	}
	block := map[string]any{"type": kind, "message": turn.Message}
	if turn.Code != "" {
		block["error_code"] = turn.Code
	}
	writeJSON(w, turn.Status, map[string]any{"type": "error", "error": block, "request_id": w.Header().Get("Request-Id")})
}

func (anthropic) finishes(r reply) (string, string) {
	if r.turn.Refusal != "" {
		return "refusal", "max_tokens"
	}
	return "end_turn", "max_tokens"
}

func (anthropic) usage(u figures) json.RawMessage {
	return encode(map[string]any{
		"input_tokens": u.prompt - u.cached - u.written - u.hour, "cache_read_input_tokens": u.cached,
		"cache_creation_input_tokens": u.written + u.hour, "output_tokens": u.output + u.reasoning,
		"cache_creation":        map[string]any{"ephemeral_5m_input_tokens": u.written, "ephemeral_1h_input_tokens": u.hour},
		"output_tokens_details": map[string]any{"thinking_tokens": u.reasoning}, "service_tier": "standard",
	})
}

func (anthropic) whole(r reply) any {
	blocks := []any{map[string]any{"type": "text", "text": r.text() + r.turn.Refusal}}
	if r.turn.NoChoices || r.turn.Null {
		blocks = []any{}
	}
	whole := r.message(blocks)
	whole["stop_reason"] = orNull(r.finish)
	if !r.turn.NoUsage {
		whole["usage"] = r.usage
	}
	return whole
}

func (r reply) message(blocks []any) map[string]any {
	return map[string]any{"id": "msg_" + r.id, "type": "message", "role": "assistant", "model": r.model, "content": blocks,
		"stop_reason": nil, "stop_sequence": nil}
}

func (anthropic) writer(out *events, r reply) writer { return &anthropicWriter{events: out, r: r} }

type anthropicWriter struct {
	*events
	r     reply
	block bool // a text block is open
}

func (e *anthropicWriter) begin() {
	message := e.r.message([]any{})
	if !e.r.turn.NoUsage {
		u := e.r.figures
		u.output, u.reasoning = 1, 0
		message["usage"] = anthropic{}.usage(u)
		if e.r.turn.Usage != nil {
			message["usage"] = e.r.turn.Usage
		}
	}
	e.event("message_start", string(encode(map[string]any{"type": "message_start", "message": message})))
	e.event("ping", `{"type":"ping"}`)
}

func (e *anthropicWriter) open() {
	if !e.block {
		e.block = true
		e.event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	}
}

func (e *anthropicWriter) piece(quoted string) {
	e.open()
	e.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quoted+`}}`)
}

func (e *anthropicWriter) null() {}

func (e *anthropicWriter) decline(text string) { e.piece(quote(text)) }

func (e *anthropicWriter) broken() {
	e.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half`)
}

func (e *anthropicWriter) fail(event string) { e.event("error", event) }

func (e *anthropicWriter) end(finish string, usage json.RawMessage) {
	if e.block {
		e.event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	}
	tail := ""
	if usage != nil && !e.r.turn.UsageCut {
		tail = `,"usage":` + string(usage)
	}
	if finish != "" || usage != nil {
		e.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null}%s}`, encode(orNull(finish)), tail))
	}
	if e.r.turn.UsageCut {
		panic(http.ErrAbortHandler)
	}
}

func (e *anthropicWriter) done() { e.event("message_stop", `{"type":"message_stop"}`) }
