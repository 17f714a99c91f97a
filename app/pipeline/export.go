package pipeline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"tollgate/app/expr"
)

// OpenWorkflowVersion is the version of the Open Workflow DSL that Export writes.
const OpenWorkflowVersion = "1.0.3"

// exportHome is what the addresses of errors and events in an export begin with.
const exportHome = "https://tollgate.dev/"

// Loss is something of a pipeline that its export does not say, or that another engine
// must be given.
type Loss struct {
	Step string // id; empty: of the whole pipeline
	Says string
}

// Export writes the document in the Open Workflow DSL, as JSON, and names what is lost.
// Formulas are written in jq. Each step's own settings stand in its metadata, so that
// nothing is gone that a person may want to look up. Steps that are turned off are left out.
func (d Document) Export() (data []byte, losses []Loss) {
	d = d.Active()
	x := &exporter{doc: &d}
	out := map[string]any{
		"document": map[string]any{
			"dsl": OpenWorkflowVersion, "namespace": "tollgate", "name": Slug(d.Name), "version": "1.0.0", "title": d.Name,
			"metadata": map[string]any{"semantics": d.Semantics},
		},
		"do": x.list(d.Steps),
	}
	if d.Note != "" {
		out["document"].(map[string]any)["summary"] = d.Note
	}
	if len(d.Input) > 0 {
		out["input"] = map[string]any{"schema": map[string]any{"format": "json", "document": inputShape(d.Input)}}
	}
	if len(d.Result) > 0 {
		out["output"] = map[string]any{"as": x.values("", d.Result)}
	}
	x.wholeLosses()
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, append(x.losses, Loss{"", "The export cannot be written: " + err.Error()})
	}
	return data, x.losses
}

// exporter writes one document and notes what is lost.
type exporter struct {
	doc    *Document
	losses []Loss
	calls  map[string]bool // functions that another engine must be given
}

func (x *exporter) lose(step, format string, args ...any) {
	x.losses = append(x.losses, Loss{step, fmt.Sprintf(format, args...)})
}

// wholeLosses are those of the pipeline, not of a step.
func (x *exporter) wholeLosses() {
	says := map[string]string{
		"askAI": "asks a model and gives the answer fields", "askPerson": "puts a question to people and gives verdict, comment, by and at",
		"sendMail": "sends a mail",
	}
	for _, name := range []string{"askAI", "askPerson", "sendMail"} {
		if x.calls[name] {
			x.lose("", "The function %s has to be provided: it %s.", name, says[name])
		}
	}
	if x.doc.RunCap != nil {
		x.lose("", "The AI spend cap of a run is not kept: the DSL knows no money.")
	}
	if x.doc.Concurrency != nil {
		x.lose("", "How many runs may be open at once is not kept.")
	}
	x.lose("", "Numbers are those of jq there, and not exact decimals; amounts of money cannot be added or compared as they are.")
}

// inputShape is the start form as a JSON schema, by names and types.
func inputShape(fields []Field) map[string]any {
	types := map[FieldType]string{
		TypeNumber: "number", TypeMoney: "object", TypeYesNo: "boolean", TypeFile: "object", TypeList: "array", TypeRecord: "object",
	}
	properties, required := map[string]any{}, []any{}
	for _, f := range fields {
		one := map[string]any{"title": f.Title(), "type": "string"}
		if kind, ok := types[f.Type]; ok {
			one["type"] = kind
		}
		properties[f.Name] = one
		if f.Required {
			required = append(required, f.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug is a name as the DSL takes it: letters, digits and hyphens, at most 63.
func Slug(name string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if slug = strings.Trim(slug[:min(len(slug), 63)], "-"); slug == "" {
		return "pipeline"
	}
	return slug
}

// roots say where values are found there: what steps gave is kept in the context by id.
func roots(name string) string {
	switch name {
	case "steps":
		return "$context"
	case "input":
		return "$workflow.input"
	case "run":
		return "$workflow"
	}
	return "$" + name
}

// formula is a formula as a runtime expression. What cannot be written in jq fails there,
// rather than give something else, and is told.
func (x *exporter) formula(step, source string) string {
	out, err := expr.JQ(source, roots)
	return x.expression(step, source, out, err)
}

// text is a text with insertions as a runtime expression; without any it stands as it is.
func (x *exporter) text(step, source string) string {
	if !strings.Contains(source, "{{") && !strings.Contains(source, "${") {
		return source
	}
	parsed, err := expr.ParseText(source)
	if err != nil {
		return x.expression(step, source, "", err)
	}
	out, err := parsed.JQ(roots)
	return x.expression(step, source, out, err)
}

func (x *exporter) expression(step, source, out string, err error) string {
	if err != nil {
		x.lose(step, "A formula has to be written anew, since %s: %s", err.Error(), shown(source))
		quoted, _ := json.Marshal("to be written anew: " + oneLine(source)) // a text always encodes
		return "${ error(" + string(quoted) + ") }"
	}
	return "${ " + strings.ReplaceAll(out, "\n", " ") + " }"
}

func (x *exporter) values(step string, values []Value) map[string]any {
	out := map[string]any{}
	for _, v := range values {
		out[v.Name] = x.formula(step, v.Formula)
	}
	return out
}
