package pipeline

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of documents, for editors and other
// tools. Check looks at far more than a schema can say.
func Schema() []byte { return slices.Clone(schema) }
