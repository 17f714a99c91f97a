package fields

import (
	"errors"
	"fmt"
)

// Shape is the kind of value a Schema asks for.
type Shape string

// The shapes.
const (
	ShapeText    Shape = "text"    // any text
	ShapeNumber  Shape = "number"  // a JSON number, kept digit by digit
	ShapeInteger Shape = "integer" // a whole number
	ShapeYesNo   Shape = "yesno"   // true or false
	ShapeDate    Shape = "date"    // text like 2027-01-31
	ShapeTime    Shape = "time"    // text like 2027-01-31T09:30:00Z, zone required
	ShapeChoice  Shape = "choice"  // text, one of Choices
	ShapeList    Shape = "list"    // a list of Item
	ShapeRecord  Shape = "record"  // an object with Fields
)

// Limits of a schema.
const (
	MaxDepth  = 8   // records and lists within each other
	MaxFields = 500 // fields over all records
)

// Schema says what an answer must look like. The outermost shape of a request is
// a record.
type Schema struct {
	Shape       Shape
	Description string // tells the model what is meant; may be empty
	Choices     []string
	Item        *Schema
	Fields      []Field
}

// Field is a named part of a record.
type Field struct {
	Name     string
	Optional bool // the model may leave it out; Data then holds null
	Schema
}

// Check tells whether the schema can be asked for. The error is one sentence
// without full stop that names the place.
func (s *Schema) Check() error {
	if s.Shape != ShapeRecord {
		return errors.New("the outermost shape must be a record")
	}
	fields := 0
	return s.check("", 0, &fields)
}

func (s *Schema) check(path string, depth int, fields *int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%s lies deeper than %d levels", place(path), MaxDepth)
	}
	switch s.Shape {
	case ShapeText, ShapeNumber, ShapeInteger, ShapeYesNo, ShapeDate, ShapeTime:
		return nil
	case ShapeChoice:
		return s.checkChoices(path)
	case ShapeList:
		if s.Item == nil {
			return fmt.Errorf("%s is a list without a shape for its items", place(path))
		}
		return s.Item.check(path+"[]", depth+1, fields)
	case ShapeRecord:
		return s.checkFields(path, depth, fields)
	}
	return fmt.Errorf("%s has the unknown shape %q", place(path), s.Shape)
}

func (s *Schema) checkChoices(path string) error {
	if len(s.Choices) == 0 {
		return fmt.Errorf("%s is a choice without choices", place(path))
	}
	seen := map[string]bool{}
	for _, choice := range s.Choices {
		if choice == "" || seen[choice] {
			return fmt.Errorf("%s has an empty or repeated choice", place(path))
		}
		seen[choice] = true
	}
	return nil
}

func (s *Schema) checkFields(path string, depth int, fields *int) error {
	if len(s.Fields) == 0 {
		return fmt.Errorf("%s is a record without fields", place(path))
	}
	seen := map[string]bool{}
	for i := range s.Fields {
		field := &s.Fields[i]
		if *fields++; *fields > MaxFields {
			return fmt.Errorf("more than %d fields are asked for", MaxFields)
		}
		if field.Name == "" || seen[field.Name] {
			return fmt.Errorf("%s has a field without name or two of the name %q", place(path), field.Name)
		}
		seen[field.Name] = true
		if err := field.Schema.check(join(path, field.Name), depth+1, fields); err != nil {
			return err
		}
	}
	return nil
}

// join appends a field's name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// place names a path in a sentence.
func place(path string) string {
	if path == "" {
		return "the answer"
	}
	return path
}
