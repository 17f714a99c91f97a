package pipeline

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

func ParseInput(fields []Field, form Form) (input []byte, files []StoredFile, problems []FieldProblem) {
	return nil, nil, nil
}
func ReadFile(name string, data []byte) (map[string]any, error)               { return nil, nil }
func (d Document) SampleForm() (Form, error)                                  { return Form{}, nil }
func (d Document) SampleInput() (input []byte, files []StoredFile, err error) { return nil, nil, nil }
