package fakellm

import (
	"encoding/json"
	"fmt"
	"slices"
)

// text is the answer when the turn gives none: a value of the schema, or a
// sentence.
func (s *Server) text(ask Seen) string {
	seed := s.hash(ask.Model, ask.System, ask.User)
	raw := ask.Schema
	if raw == nil {
		return fmt.Sprintf("Fake answer %04x.", seed&0xffff)
	}
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return "{}" // checked when the request was read
	}
	value, err := json.Marshal(sample(schema, seed, 0))
	if err != nil {
		return "{}" // built from plain values above
	}
	return string(value)
}

// sample makes a value of a schema.
func sample(schema map[string]any, seed uint64, depth int) any {
	if choices, ok := schema["enum"].([]any); ok && len(choices) > 0 {
		return choices[seed%uint64(len(choices))]
	}
	if depth > 12 {
		return nil
	}
	switch kind(schema) {
	case "object":
		object := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			inner, _ := property.(map[string]any)
			object[name] = sample(inner, seed+uint64(len(name)), depth+1)
		}
		return object
	case "array":
		items, _ := schema["items"].(map[string]any)
		return []any{sample(items, seed, depth+1)}
	case "number":
		return json.Number(fmt.Sprintf("%d.50", seed%1000))
	case "integer":
		return json.Number(fmt.Sprint(seed % 1000))
	case "boolean":
		return seed%2 == 0
	}
	return sampleText(schema, seed)
}

func sampleText(schema map[string]any, seed uint64) string {
	switch schema["format"] {
	case "date":
		return fmt.Sprintf("2027-01-%02d", 1+seed%28)
	case "date-time":
		return fmt.Sprintf("2027-01-%02dT09:30:00Z", 1+seed%28)
	}
	return fmt.Sprintf("fake text %04x", seed&0xffff)
}

// kind is the type of a schema, also when it allows null.
func kind(schema map[string]any) string {
	switch types := schema["type"].(type) {
	case string:
		return types
	case []any:
		if at := slices.IndexFunc(types, func(t any) bool { return t != "null" }); at >= 0 {
			name, _ := types[at].(string)
			return name
		}
	}
	return ""
}
