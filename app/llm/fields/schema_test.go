package fields

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// TestS36TenMegabytesOfBrackets: read and refused, in the reader itself.
func TestS36TenMegabytesOfBrackets(t *testing.T) {
	t.Parallel()
	const half = 5 << 20
	for _, text := range []string{
		strings.Repeat("[", half) + strings.Repeat("]", half),
		`{"note":` + strings.Repeat("[", half) + strings.Repeat("]", half) + "}",
		strings.Repeat("{", 2*half),
		`"` + strings.Repeat(`\"`, half) + `"`,
	} {
		_, _, err := Read(text, record(field("note", ShapeText)))
		require.Error(t, err)
	}
}

// TestS31CutAtAWholeCharacter: no limit ever splits one.
func TestS31CutAtAWholeCharacter(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é😀a", 50)
	for limit := range len(text) + 2 {
		short := Cut(text, limit)
		require.True(t, utf8.ValidString(short))
		require.LessOrEqual(t, len(short), limit+len("…"))
		require.True(t, strings.HasPrefix(text, strings.TrimSuffix(short, "…")))
	}
	require.Equal(t, text, Cut(text, len(text)))
}

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"plain ü": "plain ü", "a\x00b": "a\uFFFDb", "a\xff\xfeb": "a\uFFFDb", "\xed\xa0\xbd": "\uFFFD"} {
		got, mended := Clean(text)
		require.Equal(t, want, got)
		require.Equal(t, text != want, mended)
	}
}

// FuzzSchema builds a schema from bytes and holds it to what a validator that we
// did not write says: the made-up value is valid under both renderings, and reading
// it gives it back.
func FuzzSchema(f *testing.F) {
	f.Add([]byte{8, 3, 0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 2, 1, 6}, uint64(7))
	f.Add([]byte{6, 6, 6, 6, 6, 7, 7, 7, 8, 8, 8, 5}, uint64(1))
	f.Add([]byte("any bytes will do"), uint64(1<<63))
	f.Fuzz(func(t *testing.T, plan []byte, seed uint64) {
		builder := &builder{plan: plan}
		schema := builder.record(0)
		if schema.Check() != nil {
			return
		}
		value := schema.MadeUp(seed, "made up <&> ü")
		require.Equal(t, string(value), string(schema.MadeUp(seed, "made up <&> ü")))
		back, repairs, err := Read(string(value), schema)
		require.NoError(t, err)
		require.Empty(t, repairs)
		require.Equal(t, string(value), string(back))
		for _, rendering := range [][]byte{schema.JSON(), schema.StrictJSON()} {
			requireValid(t, rendering, value)
		}
	})
}

// requireValid asks an independent validator, formats included.
func requireValid(t *testing.T, schema, value []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err, "%s", schema)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("schema.json", document))
	compiled, err := compiler.Compile("schema.json")
	require.NoError(t, err, "%s", schema)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(instance), "%s\n%s", schema, value)
}

// builder makes a schema out of bytes.
type builder struct{ plan []byte }

func (b *builder) next() int {
	if len(b.plan) == 0 {
		return 0
	}
	n := int(b.plan[0])
	b.plan = b.plan[1:]
	return n
}

func (b *builder) record(depth int) *Schema {
	schema := &Schema{Shape: ShapeRecord}
	for i := range 1 + b.next()%4 {
		schema.Fields = append(schema.Fields, Field{
			Name: fmt.Sprintf("f\"%d ü", i), Optional: b.next()%2 == 0, Schema: *b.shape(depth + 1)})
	}
	return schema
}

func (b *builder) shape(depth int) *Schema {
	all := []Shape{ShapeText, ShapeNumber, ShapeInteger, ShapeYesNo, ShapeDate, ShapeTime, ShapeChoice, ShapeList, ShapeRecord}
	schema := &Schema{Shape: all[b.next()%len(all)], Description: []string{"", "what \"it\" is"}[b.next()%2]}
	switch schema.Shape {
	case ShapeChoice:
		schema.Choices = []string{"one", "<two>", "drei \\ ü"}
	case ShapeList, ShapeRecord:
		if depth > MaxDepth {
			return &Schema{Shape: ShapeText}
		}
		if schema.Shape == ShapeRecord {
			return b.record(depth)
		}
		schema.Item = b.shape(depth + 1)
	case ShapeText, ShapeNumber, ShapeInteger, ShapeYesNo, ShapeDate, ShapeTime:
	}
	return schema
}
