package fakellm

import (
	"encoding/json"
	"fmt"
)

// rules are what a provider demands of a schema for structured output.
type rules struct {
	everyKey bool // every property is required
	closed   bool // no object takes other properties
	noNulls  bool // no list of types, and no null among choices
}

// checkSchema says what the provider would complain of; "" when it would not.
func checkSchema(raw json.RawMessage, r rules) string {
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return "Invalid schema for response_format: " + err.Error()
	}
	if schema["type"] != "object" {
		return "Invalid schema for response_format: schema must be of type object"
	}
	return r.check(schema, "()", 0)
}

func (r rules) check(schema map[string]any, at string, depth int) string {
	if depth > 10 {
		return "Invalid schema: too many levels of nesting"
	}
	if r.noNulls {
		if problem := nulls(schema, at); problem != "" {
			return problem
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		if problem := r.check(items, at+".items", depth+1); problem != "" {
			return problem
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return ""
	}
	if r.closed && schema["additionalProperties"] != false {
		return fmt.Sprintf("Invalid schema: In context=%s, 'additionalProperties' is required to be supplied and to be false.", at)
	}
	return r.checkProperties(schema, properties, at, depth)
}

func (r rules) checkProperties(schema, properties map[string]any, at string, depth int) string {
	required := map[string]bool{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			required[text] = true
		}
	}
	for name, property := range properties {
		if r.everyKey && !required[name] {
			return fmt.Sprintf("Invalid schema: In context=%s, 'required' must include every key; missing %q.", at, name)
		}
		inner, ok := property.(map[string]any)
		if !ok {
			return "Invalid schema: a property is not an object"
		}
		if problem := r.check(inner, at+"."+name, depth+1); problem != "" {
			return problem
		}
	}
	return ""
}

func nulls(schema map[string]any, at string) string {
	if _, list := schema["type"].([]any); list {
		return fmt.Sprintf("Invalid schema: In context=%s, a list of types is not supported.", at)
	}
	choices, _ := schema["enum"].([]any)
	for _, choice := range choices {
		if _, text := choice.(string); !text {
			return fmt.Sprintf("Invalid schema: In context=%s, enum must hold texts only.", at)
		}
	}
	return ""
}
