package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cases here are numbered after the set of failures seen in other products that the
// project is tested against.

// Ten megabytes of brackets are read or refused in good time, wherever they come in.
func TestCaseS36TenMegabytesOfBrackets(t *testing.T) {
	t.Parallel()
	const half = 5 << 20
	lists := strings.Repeat("[", half-100) + strings.Repeat("]", half-100)
	objects := strings.Repeat(`{"a":`, 2<<20-100)
	tags := strings.Repeat("<div>", 2<<20-100)
	fields := []Field{{Name: "text", Type: TypeText, Long: true}, {Name: "n", Type: TypeNumber}, {Name: "list", Type: TypeList, Of: &Field{Type: TypeText}},
		{Name: "record", Type: TypeRecord, Fields: []Field{{Name: "text", Type: TypeText}}}, {Name: "file", Type: TypeFile}}
	readers := map[string]func(string){
		"form": func(text string) {
			values := map[string][]string{}
			for _, name := range []string{"text", "n", "list", "record", "record.text"} {
				values[name] = []string{text}
			}
			ParseInput(fields, Form{Values: values})
		},
		"API":      func(text string) { DecodeInput(fields, []byte(text)) },
		"document": func(text string) { _, err := Parse([]byte(text)); require.Error(t, err) },
		"formula": func(text string) {
			document, err := Parse(fmt.Appendf(nil, `{"semantics": 1, "name": "x", "steps": [{"id": "a", "name": "A", "kind": "set", "with": {"values": [{"name": "x", "formula": %q}]}}]}`, text[:min(len(text), MaxText)]))
			require.NoError(t, err)
			require.NotEmpty(t, Check(document))
		},
		"inserted text": func(text string) {
			document, err := Parse(fmt.Appendf(nil, `{"semantics": 1, "name": "x", "run_name": %q, "steps": []}`, text[:min(len(text), MaxText)]))
			require.NoError(t, err)
			_ = Check(document)
		},
	}
	for _, ending := range []string{"json", "csv", "eml", "html", "txt", "xml", "md"} {
		readers["a."+ending] = func(text string) { _, _ = ReadFile("a."+ending, []byte(text)) }
	}
	readers["a mail in HTML"] = func(text string) {
		_, _ = ReadFile("a.eml", []byte("Content-Type: text/html\r\n\r\n"+text))
	}
	for name, read := range readers {
		for _, text := range []string{lists, lists[:half-100], objects, tags, strings.Repeat("(", half), strings.Repeat("{{", half/2), strings.Repeat(`"`, half)} {
			began := time.Now()
			read(text)
			require.Less(t, time.Since(began), 20*time.Second, "%s with %s", name, text[:5])
		}
	}
}
