package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"

	"tollgate/app/expr"
)

// Form is what a browser sends for a list of fields. A field's value is found
// under its name; money has its currency under name.currency, a date with time
// its zone under name.zone, and a record its fields under name.field.
type Form struct {
	Values map[string][]string
	Files  map[string]Upload
}

// Upload is a file as it was sent, at most MaxInputFile bytes.
type Upload struct {
	Name string
	Data []byte
}

// StoredFile is a file to be stored as a value; the input names it by its digest.
type StoredFile struct {
	Field, Name, Type string
	Digest            string // SHA-256, hexadecimal
	Data              []byte
}

// FieldProblem says what is wrong with one field and what to do. Field is the
// name under which the form sent it.
type FieldProblem struct{ Field, Message string }

// ParseInput turns a form into the JSON record that a run starts with: one entry
// per field, null for one that was left empty, numbers in the digits that were
// typed. Where there are problems there is no input.
func ParseInput(fields []Field, form Form) ([]byte, []StoredFile, []FieldProblem) {
	p := inputParser{form: form}
	out := p.record("", fields)
	return p.finish(out)
}

// DecodeInput is ParseInput for a JSON record, as programs and samples send it. A
// file is {"name", "content"}.
func DecodeInput(fields []Field, data []byte) ([]byte, []StoredFile, []FieldProblem) {
	v, err := expr.DecodeJSONLimit(data, MaxValue)
	if err != nil {
		return nil, nil, []FieldProblem{{"", "The input is not JSON that can be read: " + err.Error() + "."}}
	}
	p := inputParser{}
	return p.finish(p.fit(Field{Name: "", Label: "Input", Type: TypeRecord, Required: true, Fields: fields}, "", v))
}

// HandOnInput is DecodeInput for a record that one run hands to another: its files are
// stored already and go as they are.
func HandOnInput(fields []Field, record any) ([]byte, []FieldProblem) {
	p := inputParser{handsOn: true}
	data, _, problems := p.finish(p.fit(Field{Label: "Input", Type: TypeRecord, Required: true, Fields: fields}, "", record))
	return data, problems
}

type inputParser struct {
	handsOn  bool // files are stored already
	form     Form
	files    []StoredFile
	problems []FieldProblem
}

// Several large files can make an input too large though each is not.
func (p *inputParser) finish(record any) ([]byte, []StoredFile, []FieldProblem) {
	if len(p.problems) > 0 {
		return nil, nil, p.problems
	}
	data, err := expr.EncodeJSONLimit(record, MaxValue)
	if err != nil {
		return nil, nil, []FieldProblem{{"", "The input is too large: " + err.Error() + "."}}
	}
	return data, p.files, nil
}

// maxInputProblems bounds what one hostile form can make us say.
const maxInputProblems = 50

func (p *inputParser) fail(f Field, at, format string, args ...any) any {
	if len(p.problems) < maxInputProblems {
		p.problems = append(p.problems, FieldProblem{at, "“" + shown(f.Title()) + "” " + fmt.Sprintf(format, args...)})
	}
	return nil
}

// record reads the fields whose names in the form begin with prefix.
func (p *inputParser) record(prefix string, fields []Field) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		out[f.Name] = p.field(prefix+f.Name, f)
	}
	return out
}

// field reads one field of the form that is sent under at.
func (p *inputParser) field(at string, f Field) any {
	switch f.Type {
	case TypeRecord:
		return p.record(at+".", f.Fields)
	case TypeFile:
		return p.upload(at, f)
	case TypeYesNo:
		if _, sent := p.form.Values[at]; !sent {
			return false // an unticked box sends nothing
		}
	case TypeList:
		return p.list(at, f)
	}
	typed, ok := p.typed(at, f)
	if !ok {
		return nil
	}
	if strings.TrimSpace(typed) == "" {
		return p.left(at, f)
	}
	v, err := p.read(at, f, typed)
	if err != nil {
		return p.fail(f, at, "%s", err.Error())
	}
	return p.fit(f, at, v)
}

// typed is the text sent for a field, checked to be text. Browsers send every
// line break as two characters, which are made one again.
func (p *inputParser) typed(at string, f Field) (string, bool) {
	values := p.form.Values[at]
	if len(values) == 0 {
		return "", true
	}
	if err := expr.CheckText(values[0]); err != nil {
		p.fail(f, at, "cannot be taken: %s. Type it again.", err.Error())
		return "", false
	}
	return strings.ReplaceAll(values[0], "\r\n", "\n"), true
}

// left is the value of a field that was left empty.
func (p *inputParser) left(at string, f Field) any {
	if f.Required {
		return p.fail(f, at, "is empty. Fill it in.")
	}
	return nil
}

// Browsers send a nameless empty file where none was chosen.
func (p *inputParser) upload(at string, f Field) any {
	file, sent := p.form.Files[at]
	if !sent || file.Name == "" && len(file.Data) == 0 {
		return p.left(at, f)
	}
	return p.store(at, f, file)
}

// store reads a file and notes that it has to be kept.
func (p *inputParser) store(at string, f Field, file Upload) any {
	record, err := ReadFile(file.Name, file.Data)
	if err != nil {
		return p.fail(f, at, "cannot be taken: %s.", err.Error())
	}
	p.files = append(p.files, StoredFile{
		Field: at, Name: record["name"].(string), Type: record["type"].(string),
		Digest: record["digest"].(string), Data: file.Data,
	})
	return record
}

// list reads a list: one entry per value that was sent; entries that are not
// simple are sent as one JSON list.
func (p *inputParser) list(at string, f Field) any {
	sent := p.form.Values[at]
	if len(sent) == 1 && (f.entry().nested() || strings.HasPrefix(strings.TrimSpace(sent[0]), "[")) {
		return p.listAsJSON(at, f, sent[0])
	}
	if len(sent) == 1 && !f.entry().Long {
		sent = strings.Split(sent[0], "\n")
	}
	out := []any{}
	for i, value := range sent {
		if strings.TrimSpace(value) == "" {
			continue
		}
		entry := f.entry()
		entry.Label = fmt.Sprintf("%s, entry %d", f.Title(), i+1)
		one := inputParser{form: Form{Values: map[string][]string{at: {strings.TrimSuffix(value, "\r")}}}}
		out = append(out, one.field(at, entry))
		if p.problems = append(p.problems, one.problems...); len(p.problems) >= maxInputProblems {
			return nil
		}
	}
	if len(out) == 0 && f.Required {
		return p.left(at, f)
	}
	return p.bounded(at, f, out)
}

// Lists of records have no plain form that people could type.
func (p *inputParser) listAsJSON(at string, f Field, typed string) any {
	if strings.TrimSpace(typed) == "" {
		return p.left(at, f)
	}
	v, err := expr.DecodeJSONLimit([]byte(typed), MaxDocument)
	if err != nil {
		return p.fail(f, at, "is not a list that can be read: %s.", err.Error())
	}
	return p.fit(f, at, v)
}

func (p *inputParser) bounded(at string, f Field, list []any) any {
	if len(list) > MaxItems {
		return p.fail(f, at, "has %d entries; at most %d are possible.", len(list), MaxItems)
	}
	return list
}

// nested reports entries that one line of text cannot hold.
func (f Field) nested() bool {
	return f.Type == TypeRecord || f.Type == TypeList || f.Type == TypeMoney || f.Type == TypeFile
}

// SampleInput is the sample's input as a run gets it, with the files it is made
// of. The error says what is wrong with the sample.
func (d Document) SampleInput() ([]byte, []StoredFile, error) {
	raw := json.RawMessage(`{}`)
	if d.Sample != nil && len(d.Sample.Input) > 0 {
		raw = d.Sample.Input
	}
	input, files, problems := DecodeInput(d.Input, raw)
	if len(problems) > 0 {
		return nil, nil, fmt.Errorf("the sample cannot be used: %s", problems[0].Message)
	}
	return input, files, nil
}
