package pipeline

// anything is the type of outputs whose shape only the other side knows.
const anything FieldType = ""

// Outputs lists what steps.<id> holds after a step, as formulas name it and as
// the builder offers it. A field that is not Required may be empty.
func Outputs(s Step) []Field {
	if s.handled() {
		return handledOutputs(ownOutputs(s), &s)
	}
	return ownOutputs(s)
}

// ownOutputs are those of a step that did not fail.
func ownOutputs(s Step) []Field {
	switch c := s.With.(type) {
	case *AI:
		return aiOutputs(c)
	case *Review:
		return reviewOutputs(c)
	case *Email:
		return []Field{
			{Name: "to", Label: "Addresses", Type: TypeList, Of: &Field{Type: TypeText}, Required: true},
			{Name: "subject", Label: "Subject", Type: TypeText, Required: true},
			{Name: "message_id", Label: "Message ID", Type: TypeText, Required: true},
		}
	case *Set:
		return valueOutputs(c.Values)
	case *Branch:
		return []Field{{Name: "case", Label: "Way taken", Type: TypeText}}
	case *Repeat:
		return repeatOutputs(c)
	case *Each:
		return eachOutputs(c)
	case *Parallel:
		return parallelOutputs(c)
	case *Event:
		return eventOutputs()
	case *HTTP:
		return named("status", "headers", "body")
	case *Child:
		return childOutputs(c)
	case *Emit:
		return named("event")
	}
	return nil
}

// childOutputs know the result only of a run that was waited for.
func childOutputs(c *Child) []Field {
	if c.Wait {
		return named("run", "result")
	}
	return named("run")
}

func named(names ...string) []Field {
	var out []Field
	for _, n := range names {
		out = append(out, Field{Name: n, Type: anything, Required: true})
	}
	return out
}

func valueOutputs(values []Value) []Field {
	var out []Field
	for _, v := range values {
		out = append(out, Field{Name: v.Name, Type: anything, Required: true})
	}
	return out
}

// Where empty fields are let through, any field may be empty.
func aiOutputs(c *AI) []Field {
	if len(c.Answer) == 0 {
		return []Field{{Name: "text", Label: "Answer", Type: TypeText, Long: true, Required: true}}
	}
	if c.IfMissing != MissingEmpty {
		return c.Answer
	}
	var out []Field
	for _, f := range c.Answer {
		f.Required = false
		out = append(out, f)
	}
	return out
}

// By and at are there also when time ran out; by says so then.
func reviewOutputs(c *Review) []Field {
	out := []Field{
		{Name: "verdict", Label: "Verdict", Type: TypeChoice, Required: true, Choices: []Choice{
			{VerdictApproved, "Approved"}, {VerdictRejected, "Rejected"}, {VerdictTimeout, "No answer in time"},
		}},
		{Name: "comment", Label: "Comment", Type: TypeText, Required: true},
		{Name: "by", Label: "Decided by", Type: TypeText, Required: true},
		{Name: "at", Label: "Decided at", Type: TypeDateTime, Required: true},
	}
	for _, e := range c.Editable {
		out = append(out, e.Field)
	}
	return out
}

// RunFields lists what run holds.
func RunFields() []Field {
	return []Field{
		{Name: "id", Label: "ID", Type: TypeText, Required: true},
		{Name: "number", Label: "Number", Type: TypeNumber, Required: true},
		{Name: "name", Label: "Name", Type: TypeText, Required: true},
		{Name: "pipeline", Label: "Pipeline", Type: TypeText, Required: true},
		{Name: "started_by", Label: "Started by", Type: TypeText, Required: true},
		{Name: "started_at", Label: "Started at", Type: TypeDateTime, Required: true},
	}
}

// fileFields lists what a file holds; those of a single format may be missing.
func fileFields() []Field {
	return []Field{
		{Name: "name", Type: TypeText, Required: true}, {Name: "type", Type: TypeText, Required: true},
		{Name: "size", Type: TypeNumber, Required: true}, {Name: "digest", Type: TypeText, Required: true},
		{Name: "text", Type: TypeText, Required: true},
		{Name: "from", Type: TypeText}, {Name: "from_name", Type: TypeText}, {Name: "reply_to", Type: TypeText},
		{Name: "to", Type: TypeText}, {Name: "subject", Type: TypeText}, {Name: "date", Type: TypeDateTime},
		{Name: "body", Type: TypeText}, {Name: "attachments", Type: TypeList},
		{Name: "columns", Type: TypeList}, {Name: "rows", Type: TypeList}, {Name: "data", Type: anything},
	}
}

// parts lists what a value of field f holds; known is false where only the value
// itself can tell.
func (f Field) parts() (fields []Field, known bool) {
	switch f.Type {
	case TypeRecord:
		return f.Fields, true
	case TypeFile:
		return fileFields(), true
	case TypeMoney:
		return []Field{{Name: "amount", Type: TypeNumber, Required: true}, {Name: "currency", Type: TypeText, Required: true}}, true
	case TypeList, anything:
		return nil, false
	}
	return nil, true
}

func findField(fields []Field, name string) (Field, bool) {
	for _, f := range fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

func fieldNames(fields []Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}
