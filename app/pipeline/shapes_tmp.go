package pipeline

import "encoding/json"

func Parse(data []byte) (Document, error)  { return Document{}, nil }
func (d Document) JSON() []byte            { return nil }
func Check(d Document) []Problem           { return nil }
func Compile(d Document) (*Program, error) { return nil, nil }
func Schema() json.RawMessage              { return nil }

// Outputs lists what steps.<id> holds after a step of this configuration.
func Outputs(s Step) []Field { return nil }

type Template struct {
	Slug, Title, Summary string
	Document             Document
	SampleFiles          map[string][]byte
}

func Templates() []Template { return nil }

type FieldProblem struct{ Field, Message string }
type Upload struct {
	Name string
	Data []byte
}
type Form struct {
	Values map[string][]string
	Files  map[string]Upload
}
type StoredFile struct {
	Field, Name, Type, Digest string
	Data                      []byte
}

// ParseInput ...
func ParseInput(fields []Field, form Form) (input []byte, files []StoredFile, problems []FieldProblem) {
	return nil, nil, nil
}
func ReadFile(name string, data []byte) (map[string]any, error) { return nil, nil }
func (d Document) SampleForm() (Form, error)                    { return Form{}, nil }

// SampleInput is the sample's input as a run gets it.
func (d Document) SampleInput() (input []byte, files []StoredFile, err error) { return nil, nil, nil }
