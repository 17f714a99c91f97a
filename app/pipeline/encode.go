package pipeline

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tollgate/app/expr"
)

// JSON writes the document in its one form: entries in the order of the model,
// nothing that is empty, no spaces. The same document always gives the same
// bytes, and Parse gives the document back.
func (d Document) JSON() []byte { return appendValue(nil, reflect.ValueOf(d)) }

// appendValue writes a value of the document's own types, which alone it gets.
func appendValue(out []byte, v reflect.Value) []byte {
	switch {
	case v.Type() == rawType:
		return appendRaw(out, v.Bytes())
	case v.Type() == durationType:
		return appendText(out, Duration(v.Int()).String())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(out, "{}"...)
		}
		return appendValue(out, v.Elem())
	case reflect.Struct:
		return appendStruct(out, v)
	case reflect.Slice:
		out = append(out, '[')
		for i := range v.Len() {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, v.Index(i))
		}
		return append(out, ']')
	case reflect.Map:
		return appendMap(out, v)
	case reflect.String:
		return appendText(out, v.String())
	case reflect.Bool:
		return strconv.AppendBool(out, v.Bool())
	default:
		return strconv.AppendInt(out, v.Int(), 10)
	}
}

// The tags are those of encoding/json, so one look at the model tells the form.
func appendStruct(out []byte, v reflect.Value) []byte {
	out = append(out, '{')
	first := true
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("json")
		if strings.Contains(tag, ",omit") && empty(v.Field(i)) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendText(out, jsonName(v.Type().Field(i))), ':')
		out = appendValue(out, v.Field(i))
	}
	return append(out, '}')
}

// A list without entries is the same as none.
func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func appendMap(out []byte, v reflect.Value) []byte {
	names := slices.Sorted(maps.Keys(v.Interface().(map[string]json.RawMessage)))
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, name), ':')
		out = appendValue(out, v.MapIndex(reflect.ValueOf(name)))
	}
	return append(out, '}')
}

// appendRaw writes JSON that Go code put into a document in the form of the rest.
// What is no JSON becomes null, which Parse would not have taken either.
func appendRaw(out, raw []byte) []byte {
	v, err := expr.DecodeJSON(raw)
	if err != nil {
		return append(out, "null"...)
	}
	data, err := expr.EncodeJSON(v)
	if err != nil {
		return append(out, "null"...)
	}
	return append(out, data...)
}

// A text that is none can only come from Go code; it is made one rather than lost.
func appendText(out []byte, s string) []byte {
	data, err := expr.EncodeJSON(expr.Plain(s))
	if err != nil {
		return append(out, `""`...)
	}
	return append(out, data...)
}
