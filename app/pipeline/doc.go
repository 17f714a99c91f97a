// Package pipeline is the definition of what runs: the document, its checks, the
// program made of it, what people hand in at the start, and the templates.
//
// # Ideas
//
// A Document is plain data for every kind of step and every type of field, also
// for kinds that this build cannot run yet, which Check tells. Parse is strict:
// an entry it does not know is a problem with its path, never dropped. JSON
// writes a document back in one stable form, and schema.json describes the same
// form to other tools.
//
// Step ids are stable and readable, since formulas name them; a rename changes
// only the name. Check reads a whole document and gives every problem with its
// place and what to do about it. Compile turns a document without blocking
// problems into a Program: a tree of Nodes with every formula and text compiled,
// immutable, shared by all goroutines.
//
// # What formulas see
//
// steps.<id> holds what Outputs lists for the step. A step inside a case that was
// not taken has no output; formulas that read it say what to take instead with
// default(…). What the steps of a loop gave is, behind it, that of the round which it
// goes on with; what the items of a list gave is found in the list's results only.
// input has one entry per input field, null where an optional one was left empty.
// RunFields lists what run holds.
//
// # Drafts
//
// A draft is edited by functions that make a new document of an old one (edit_steps.go),
// each an Edit that is kept so that fifty can be undone (draft.go). Steps that are turned
// off are in the draft only: Active leaves them out, and checks and versions see Active.
// People read and type names of data, which DataNames turn into places and back, and
// conditions as tests; both give back exactly what was stored, or show it as it is.
// Changes tells in sentences in what two documents differ. ReadText reads a document that
// people wrote, as JSON or YAML.
//
// # What comes from outside
//
// ParseInput turns a form into exact JSON, and ReadFile turns a file into a
// record. Both bound everything they take and name the field or file in every
// refusal.
//
// Reading order: document.go, kind.go, field.go and the configurations (ai.go,
// review.go, flow.go, outside.go); parse.go and encode.go; program.go, tree.go
// and compile.go with their parts for flow; check.go and its parts; outputs.go and
// outputs_flow.go; input.go and file.go; templates.go, setting.go and needs.go;
// export.go with export_task.go and export_flow.go; model.go; store.go.
package pipeline
