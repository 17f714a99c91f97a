package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// checkEditable tells whether the fields of a question can be offered for editing.
func checkEditable(fields []EditableField) error {
	seen := map[string]bool{}
	for i := range fields {
		field := &fields[i]
		if field.Name == "" || seen[field.Name] {
			return fmt.Errorf("%w: the name of field %q is empty or used twice", ErrBadQuestion, field.Name)
		}
		seen[field.Name] = true
		if !field.Type.known() {
			return fmt.Errorf("%w: field %q is of type %q, which a reviewer cannot edit", ErrBadQuestion, field.Name, field.Type)
		}
		if len(field.Value) == 0 {
			field.Value = json.RawMessage("null")
		}
		if !json.Valid(field.Value) {
			return fmt.Errorf("%w: field %q has no readable value", ErrBadQuestion, field.Name)
		}
	}
	return nil
}

func (t FieldType) known() bool {
	all := []FieldType{FieldText, FieldNumber, FieldMoney, FieldDate, FieldDateTime, FieldYesNo, FieldChoice}
	return slices.Contains(all, t)
}

// checkEdits keeps of the edits those that change something, compactly written, and
// lists every problem at once. A required field must be filled in even if the proposal
// left it empty.
func (d Detail) checkEdits(edits map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	changed := map[string]json.RawMessage{}
	left := maps.Clone(edits)
	var problems []FieldProblem
	for _, field := range d.Content.Editable {
		value, given := left[field.Name]
		delete(left, field.Name)
		if !given {
			value = field.Value
		}
		if same(value, field.Value) && !(field.Required && same(value, json.RawMessage("null"))) {
			continue
		}
		if err := field.Check(value); err != nil {
			problems = append(problems, FieldProblem{Field: field.Name, Message: err.Error()})
			continue
		}
		if !same(value, field.Value) {
			changed[field.Name] = compact(value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		problems = append(problems, FieldProblem{Field: line(name), Message: "There is no such field to edit."})
	}
	if len(changed) > 0 && !d.CanEdit() {
		problems = append(problems, FieldProblem{Field: "verdict", Message: "Several people must agree here, so nothing can be edited. Reject it and say what to change."})
	}
	if len(problems) > 0 {
		return nil, &Invalid{Problems: problems}
	}
	return changed, nil
}

// same compares values as written. Line ends of text do not count: browsers send their
// own.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(compact(a), compact(b)) {
		return true
	}
	var first, second string
	if json.Unmarshal(a, &first) != nil || json.Unmarshal(b, &second) != nil {
		return false
	}
	return text(first) == text(second)
}

func compact(value json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, value); err != nil {
		return value
	}
	return out.Bytes()
}
