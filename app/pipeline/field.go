package pipeline

// FieldType says what a field holds.
type FieldType string

// The types of fields.
const (
	TypeText     FieldType = "text"
	TypeNumber   FieldType = "number"   // exact decimal
	TypeMoney    FieldType = "money"    // {"amount", "currency"}
	TypeDate     FieldType = "date"     // "2026-11-30"
	TypeDateTime FieldType = "datetime" // RFC 3339 with a zone
	TypeYesNo    FieldType = "yesno"
	TypeChoice   FieldType = "choice"
	TypeFile     FieldType = "file" // what ReadFile gives
	TypeList     FieldType = "list"
	TypeRecord   FieldType = "record"
)

// Field describes one value that people type in, a model answers or a reviewer edits.
type Field struct {
	Name     string    `json:"name"` // how formulas call it
	Label    string    `json:"label,omitempty"`
	Help     string    `json:"help,omitempty"` // for people; for a model it is the field's meaning
	Type     FieldType `json:"type"`
	Required bool      `json:"required,omitempty"`
	Long     bool      `json:"long,omitempty"`     // text of several lines
	Currency string    `json:"currency,omitempty"` // money: the only currency it may be in; empty: any
	Choices  []Choice  `json:"choices,omitempty"`
	Of       *Field    `json:"of,omitempty"`     // list: what each entry is
	Fields   []Field   `json:"fields,omitempty"` // record: its fields
}

// Choice is one of the values that a choice field may have.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label,omitempty"`
}

// Title is the label, or the name where there is none.
func (f Field) Title() string {
	if f.Label != "" {
		return f.Label
	}
	return f.Name
}

// Title is the label, or the value where there is none.
func (c Choice) Title() string {
	if c.Label != "" {
		return c.Label
	}
	return c.Value
}

// entry is what the entries of a list are; text where the list does not say.
func (f Field) entry() Field {
	if f.Of == nil {
		return Field{Type: TypeText}
	}
	return *f.Of
}
