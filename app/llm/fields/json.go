package fields

import "bytes"

// JSON renders the schema as a JSON Schema object, fields in order. Optional
// fields are not in "required" and allow null.
func (s *Schema) JSON() []byte { return s.render(schemaWriter{nulls: true}) }

// StrictJSON renders the schema for structured output: providers that enforce a
// schema want every field in "required" and let an optional one be null.
func (s *Schema) StrictJSON() []byte { return s.render(schemaWriter{strict: true, nulls: true}) }

// PlainJSON renders the schema without lists of types and without null, which not every
// provider takes: an optional field is one that may be left out.
func (s *Schema) PlainJSON() []byte { return s.render(schemaWriter{}) }

// Optionals counts the optional fields over all records.
func (s *Schema) Optionals() int {
	n := 0
	if s.Item != nil {
		n = s.Item.Optionals()
	}
	for i := range s.Fields {
		if s.Fields[i].Optional {
			n++
		}
		n += s.Fields[i].Schema.Optionals()
	}
	return n
}

func (s *Schema) render(w schemaWriter) []byte {
	w.schema(s, false)
	return w.buf.Bytes()
}

// schemaWriter writes keys in a fixed order, which maps would not keep: a prompt
// that changes from call to call is never served from a provider's cache.
type schemaWriter struct {
	buf    bytes.Buffer
	strict bool // every field is required
	nulls  bool // an optional field may be null
}

func (w *schemaWriter) schema(s *Schema, nullable bool) {
	w.buf.WriteString(`{"type":`)
	w.kind(jsonKinds[s.Shape], nullable)
	if s.Description != "" {
		w.pair("description", s.Description)
	}
	switch s.Shape {
	case ShapeDate:
		w.pair("format", "date")
	case ShapeTime:
		w.pair("format", "date-time")
	case ShapeChoice:
		w.choices(s.Choices, nullable)
	case ShapeList:
		w.buf.WriteString(`,"items":`)
		w.schema(s.Item, false)
	case ShapeRecord:
		w.fields(s.Fields)
	case ShapeText, ShapeNumber, ShapeInteger, ShapeYesNo:
	}
	w.buf.WriteByte('}')
}

// jsonKinds maps a shape to the type of JSON Schema.
var jsonKinds = map[Shape]string{
	ShapeText: "string", ShapeNumber: "number", ShapeInteger: "integer", ShapeYesNo: "boolean",
	ShapeDate: "string", ShapeTime: "string", ShapeChoice: "string", ShapeList: "array", ShapeRecord: "object",
}

func (w *schemaWriter) kind(kind string, nullable bool) {
	if nullable {
		w.buf.WriteString(`["` + kind + `","null"]`)
		return
	}
	w.buf.WriteString(`"` + kind + `"`)
}

func (w *schemaWriter) pair(key, value string) {
	w.buf.WriteString(`,"` + key + `":`)
	w.buf.Write(quote(value))
}

func (w *schemaWriter) choices(choices []string, nullable bool) {
	w.buf.WriteString(`,"enum":[`)
	for i, choice := range choices {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.buf.Write(quote(choice))
	}
	if nullable {
		w.buf.WriteString(",null")
	}
	w.buf.WriteByte(']')
}

func (w *schemaWriter) fields(fields []Field) {
	w.buf.WriteString(`,"properties":{`)
	var required []string
	for i := range fields {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		field := &fields[i]
		w.buf.Write(quote(field.Name))
		w.buf.WriteByte(':')
		w.schema(&field.Schema, field.Optional && w.nulls)
		if w.strict || !field.Optional {
			required = append(required, field.Name)
		}
	}
	w.buf.WriteString(`},"required":[`)
	for i, name := range required {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.buf.Write(quote(name))
	}
	w.buf.WriteString(`],"additionalProperties":false`)
}
