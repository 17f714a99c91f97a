package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tollgate/app/expr"
)

// maxParseProblems bounds what one hostile document can make us say.
const maxParseProblems = 100

// Parse reads a document. It takes every document that has the right shape,
// whether or not it could run; entries that are unknown or of the wrong type are
// problems. The error is an *Invalid.
func Parse(data []byte) (Document, error) {
	if len(data) > MaxDocument {
		return Document{}, invalid("The pipeline takes %d bytes as text; at most %d are possible.", len(data), MaxDocument)
	}
	v, err := expr.DecodeJSON(data)
	if err != nil {
		return Document{}, invalid("The pipeline is not JSON that can be read: %s.", err.Error())
	}
	var d Document
	b := binder{}
	b.bind(v, reflect.ValueOf(&d).Elem())
	if len(b.problems) > 0 {
		return Document{}, &Invalid{b.problems}
	}
	return d, nil
}

func invalid(format string, args ...any) error {
	return &Invalid{[]Problem{{Severity: Blocks, Message: fmt.Sprintf(format, args...)}}}
}

// binder fills Go values from decoded JSON and collects what does not fit.
type binder struct {
	step     string // id of the step around, if any
	path     string // place within the step or the document
	problems []Problem
}

// Hostile documents can be wrong in a million places; a hundred are told.
func (b *binder) fail(format string, args ...any) {
	if len(b.problems) < maxParseProblems {
		b.problems = append(b.problems, Problem{Blocks, b.step, b.path, b.where() + fmt.Sprintf(format, args...), fmt.Sprintf(format, args...)})
	}
}

func (b *binder) where() string {
	place := "The document"
	if b.step != "" {
		place = "Step “" + b.step + "”"
	}
	if b.path != "" {
		place += ", " + b.path
	}
	return place + ": "
}

// at runs f with one more part on the path.
func (b *binder) at(part string, f func()) {
	before := b.path
	if b.path = before + part; before == "" {
		b.path = strings.TrimPrefix(part, ".")
	}
	f()
	b.path = before
}

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	durationType = reflect.TypeFor[Duration]()
	stepType     = reflect.TypeFor[Step]()
)

// bind puts v into to. Null is the same as no entry.
func (b *binder) bind(v any, to reflect.Value) {
	switch {
	case to.Type() == rawType:
		b.raw(v, to)
	case v == nil:
	case to.Type() == durationType:
		b.duration(v, to)
	case to.Type() == stepType:
		b.stepValue(v, to)
	default:
		b.byKind(v, to)
	}
}

// The model has no other kinds than these, which a test walks through.
func (b *binder) byKind(v any, to reflect.Value) {
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		b.bind(v, to.Elem())
	case reflect.Struct:
		if m, ok := b.record(v); ok {
			b.fields(m, to, "")
		}
	case reflect.Slice:
		b.list(v, to)
	case reflect.Map:
		b.named(v, to)
	case reflect.String:
		b.text(v, to)
	case reflect.Bool:
		if yes, ok := v.(bool); ok {
			to.SetBool(yes)
		} else {
			b.fail("write true or false.")
		}
	default:
		b.whole(v, to)
	}
}

func (b *binder) raw(v any, to reflect.Value) {
	data, err := expr.EncodeJSON(v)
	if err != nil {
		b.fail("%s.", err.Error())
		return
	}
	to.SetBytes(data)
}

func (b *binder) duration(v any, to reflect.Value) {
	s, ok := v.(string)
	if !ok {
		b.fail("write a time span like \"2h\".")
		return
	}
	d, err := ParseDuration(s)
	if err != nil {
		b.fail("%s.", err.Error())
		return
	}
	to.SetInt(int64(d))
}

func (b *binder) record(v any) (map[string]any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		b.fail("a record in {} belongs here.")
	}
	return m, ok
}

// fields fills a struct. The entry named skip is bound by the caller.
func (b *binder) fields(m map[string]any, to reflect.Value, skip string) {
	known := map[string]int{}
	for i := range to.NumField() {
		known[jsonName(to.Type().Field(i))] = i
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		i, ok := known[name]
		b.at("."+shown(name), func() {
			switch {
			case !ok:
				b.fail("this entry is not known. Remove it, or use one of: %s.", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			case name != skip:
				b.bind(m[name], to.Field(i))
			}
		})
	}
}

// jsonName is the name that a struct field has in the document.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Null inside a list is refused: an entry that is nothing has no place to fix.
func (b *binder) list(v any, to reflect.Value) {
	list, ok := v.([]any)
	if !ok {
		b.fail("a list in [] belongs here.")
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	for i, entry := range list {
		b.at("["+strconv.Itoa(i)+"]", func() {
			if entry == nil {
				b.fail("an entry of this list is empty.")
				return
			}
			b.bind(entry, to.Index(i))
		})
	}
}

func (b *binder) named(v any, to reflect.Value) {
	m, ok := b.record(v)
	if !ok {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b.at("."+shown(name), func() {
			if err := expr.CheckText(name); err != nil {
				b.fail("%s.", err.Error())
				return
			}
			entry := reflect.New(to.Type().Elem()).Elem()
			b.bind(m[name], entry)
			to.SetMapIndex(reflect.ValueOf(name), entry)
		})
	}
}

// Every text of a document is shown to people and stored as text.
func (b *binder) text(v any, to reflect.Value) {
	s, ok := v.(string)
	if !ok {
		b.fail("a text in quotes belongs here.")
		return
	}
	if err := expr.CheckText(s); err != nil {
		b.fail("%s.", err.Error())
		return
	}
	to.SetString(s)
}

func (b *binder) whole(v any, to reflect.Value) {
	n, ok := v.(json.Number)
	value, err := strconv.ParseInt(string(n), 10, 64)
	if !ok || err != nil || to.OverflowInt(value) {
		b.fail("a whole number belongs here.")
		return
	}
	to.SetInt(value)
}

// stepValue fills a step. Problems inside it name the step and their place in
// it, and its configuration is read by its kind.
func (b *binder) stepValue(v any, to reflect.Value) {
	m, ok := b.record(v)
	if !ok {
		return
	}
	outer := *b
	if id, ok := m["id"].(string); ok && id != "" {
		b.step, b.path = shown(id), ""
	}
	b.fields(m, to, "with")
	kind := Kind(to.FieldByName("Kind").String())
	b.at(".with", func() { b.config(kind, m["with"], to.FieldByName("With")) })
	b.step, b.path = outer.step, outer.path
}

// A configuration is filled by its kind even where it is missing, so that checks have
// something to look at.
func (b *binder) config(kind Kind, v any, to reflect.Value) {
	facts, ok := kinds[kind]
	if !ok {
		b.path = strings.TrimSuffix(b.path, "with") + "kind"
		b.fail("“%s” is not a kind of step. Use one of: %s.", shown(string(kind)), kindList())
		return
	}
	config := facts.empty()
	b.bind(v, reflect.ValueOf(config).Elem())
	to.Set(reflect.ValueOf(config))
}

func kindList() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// shown is a name from outside as a sentence can hold it.
func shown(name string) string {
	return expr.Preview([]byte(strings.ToValidUTF8(oneLine(name), "\uFFFD")), 60)
}
