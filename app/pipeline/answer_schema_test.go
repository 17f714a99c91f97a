package pipeline

import (
	"encoding/json"

	"tollgate/app/expr"
)

// answerSchema is the JSON Schema of an object with these fields, in the narrow
// form that model providers take for strict answers: every field is listed as
// required and nothing else is allowed; a field that may stay empty allows null.
func answerSchema(fields []Field) json.RawMessage {
	out, err := expr.EncodeJSON(recordSchema(fields))
	if err != nil {
		return nil // only text that is no text fails, and Check refuses that
	}
	return out
}

// Strict providers want every field required and nothing else allowed.
func recordSchema(fields []Field) map[string]any {
	properties := map[string]any{}
	required := []any{}
	for _, f := range fields {
		properties[f.Name] = f.schema()
		required = append(required, f.Name)
	}
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

// A field that may stay empty says so by allowing null, since it must be there.
func (f Field) schema() map[string]any {
	out := f.typeSchema()
	if !f.Required {
		out["type"] = []any{out["type"], "null"}
		if choices, ok := out["enum"].([]any); ok {
			out["enum"] = append(choices, nil)
		}
	}
	if about := f.about(); about != "" {
		out["description"] = about
	}
	return out
}

// about tells a model what the field means.
func (f Field) about() string {
	switch {
	case f.Help == "":
		return f.Label
	case f.Label == "":
		return f.Help
	}
	return f.Label + ": " + f.Help
}

func (f Field) typeSchema() map[string]any {
	switch f.Type {
	case TypeNumber:
		return map[string]any{"type": "number"}
	case TypeMoney:
		return moneySchema(f.Currency)
	case TypeDate:
		return map[string]any{"type": "string", "format": "date"}
	case TypeDateTime:
		return map[string]any{"type": "string", "format": "date-time"}
	case TypeYesNo:
		return map[string]any{"type": "boolean"}
	case TypeChoice:
		var values []any
		for _, c := range f.Choices {
			values = append(values, c.Value)
		}
		return map[string]any{"type": "string", "enum": values}
	case TypeList:
		entry := f.entry()
		entry.Required = true
		return map[string]any{"type": "array", "items": entry.schema()}
	case TypeRecord:
		return recordSchema(f.Fields)
	}
	return map[string]any{"type": "string"}
}

// With a fixed currency the model has nothing to choose, and nothing to get wrong.
func moneySchema(currency string) map[string]any {
	code := map[string]any{"type": "string"}
	if currency != "" {
		code["enum"] = []any{currency}
	}
	return map[string]any{
		"type": "object", "required": []any{"amount", "currency"}, "additionalProperties": false,
		"properties": map[string]any{"amount": map[string]any{"type": "number"}, "currency": code},
	}
}
