package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// ask is a request's body.
type ask struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	MaxTokens           *int64    `json:"max_tokens"`
	MaxCompletionTokens *int64    `json:"max_completion_tokens"`
	Stream              bool      `json:"stream"`
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

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// readAsk reads a body and says what the real server would complain of; "" when it
// would not.
func readAsk(body []byte) (ask, string) {
	var a ask
	if err := json.Unmarshal(body, &a); err != nil {
		return a, "We could not parse the JSON body of your request: " + err.Error()
	}
	switch {
	case a.Model == "":
		return a, "you must provide a model parameter"
	case len(a.Messages) == 0:
		return a, "[] is too short - 'messages'"
	case a.MaxTokens != nil && a.MaxCompletionTokens != nil:
		return a, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
	case a.limit() < 1:
		return a, "this server wants a limit of tokens of at least 1"
	case a.StreamOptions != nil && !a.Stream:
		return a, "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	return a, a.checkFormat()
}

func (a ask) checkFormat() string {
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
	var schema map[string]any
	if err := json.Unmarshal(format.JSONSchema.Schema, &schema); err != nil {
		return "Invalid schema for response_format: " + err.Error()
	}
	if schema["type"] != "object" {
		return "Invalid schema for response_format: schema must be of type object"
	}
	if format.JSONSchema.Strict {
		return strictProblem(schema, "()", 0)
	}
	return ""
}

// strictProblem checks what structured output demands of every object.
func strictProblem(schema map[string]any, at string, depth int) string {
	if depth > 10 {
		return "Invalid schema: too many levels of nesting"
	}
	if items, ok := schema["items"].(map[string]any); ok {
		if problem := strictProblem(items, at+".items", depth+1); problem != "" {
			return problem
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return ""
	}
	if schema["additionalProperties"] != false {
		return fmt.Sprintf("Invalid schema: In context=%s, 'additionalProperties' is required to be supplied and to be false.", at)
	}
	required := map[string]bool{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			required[text] = true
		}
	}
	for name, property := range properties {
		if !required[name] {
			return fmt.Sprintf("Invalid schema: In context=%s, 'required' must include every key; missing %q.", at, name)
		}
		inner, ok := property.(map[string]any)
		if !ok {
			return "Invalid schema: a property is not an object"
		}
		if problem := strictProblem(inner, at+"."+name, depth+1); problem != "" {
			return problem
		}
	}
	return ""
}

// limit is the limit of tokens under either name; 0 without one.
func (a ask) limit() int64 {
	switch {
	case a.MaxCompletionTokens != nil:
		return *a.MaxCompletionTokens
	case a.MaxTokens != nil:
		return *a.MaxTokens
	}
	return 0
}

func (a ask) schema() json.RawMessage {
	if a.ResponseFormat == nil || a.ResponseFormat.JSONSchema == nil {
		return nil
	}
	return a.ResponseFormat.JSONSchema.Schema
}

// content joins the messages of a role.
func (a ask) content(role string) string {
	var texts []string
	for _, m := range a.Messages {
		if m.Role == role {
			texts = append(texts, m.Content)
		}
	}
	return strings.Join(texts, "\n")
}

func (a ask) seen(r *http.Request, key string, body []byte) Seen {
	seen := Seen{
		Key: key, Authorization: r.Header.Get("Authorization"), Header: r.Header.Clone(),
		Model: a.Model, MaxTokens: a.limit(), Stream: a.Stream, Schema: a.schema(),
		IncludeUsage: a.StreamOptions != nil && a.StreamOptions.IncludeUsage,
		System:       a.content("system"), User: a.content("user"), Body: body,
	}
	switch {
	case a.MaxCompletionTokens != nil:
		seen.TokenField = "max_completion_tokens"
	case a.MaxTokens != nil:
		seen.TokenField = "max_tokens"
	}
	return seen
}
