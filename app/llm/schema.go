package llm

import "tollgate/app/llm/fields"

// The words of package fields, so that who asks a model needs one import.
type (
	// Schema says what an answer must look like.
	Schema = fields.Schema
	// SchemaField is a named part of a record.
	SchemaField = fields.Field
	// Shape is the kind of value a Schema asks for.
	Shape = fields.Shape
)

// The shapes; see package fields.
const (
	ShapeText    = fields.ShapeText
	ShapeNumber  = fields.ShapeNumber
	ShapeInteger = fields.ShapeInteger
	ShapeYesNo   = fields.ShapeYesNo
	ShapeDate    = fields.ShapeDate
	ShapeTime    = fields.ShapeTime
	ShapeChoice  = fields.ShapeChoice
	ShapeList    = fields.ShapeList
	ShapeRecord  = fields.ShapeRecord
)

// askJSON precedes the schema in the instructions where there is no schema mode.
const askJSON = "\n\nAnswer with one JSON object that fits the following JSON Schema, and with nothing else:\n"
