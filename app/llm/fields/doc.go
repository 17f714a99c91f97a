// Package fields holds what a model is asked for, as a Schema of typed fields, and
// reads the fields out of whatever text the model wrote.
//
// It is apart from package llm so that it stands on the standard library alone: the
// reader meets hostile text, is fuzzed for that, and builds in a second.
//
// Invariants:
//   - What Read returns fits the schema, with every field present, in the order
//     asked; reading it again gives the same bytes.
//   - Half an object, and an object inside a broken one, are never taken for the
//     whole. Where two readings are possible there is no reading.
//   - Numbers keep every digit. Text is valid UTF-8 without NUL.
//   - Reading takes time in proportion to the text, and bounded depth.
//
// Reading order: schema.go, json.go (the schema as JSON Schema), read.go (finding
// the object), fit.go (fitting it to the schema), madeup.go (values for practice),
// text.go.
package fields
