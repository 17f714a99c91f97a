package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// startField is a field of the start form, as it is drawn and under the name it is sent.
type startField struct {
	ui.Field
	Hidden []ui.Hidden // what goes with it: the zone of a date with time
}

// fields are those of the form, the ones of records among them by "record.field".
func (f startView) fields() []startField {
	faults := map[string]string{}
	for _, problem := range f.Problems {
		if _, told := faults[problem.Field]; !told {
			faults[problem.Field] = problem.Message
		}
	}
	fields := f.fieldsOf("", "", f.Version.Document.Input, faults)
	if f.Version.Program.Reuses() {
		fields = append(fields, startField{Field: askAgainField(f.asksAgain())})
	}
	return fields
}

// askAgainField lets a run take no earlier answers.
func askAgainField(yes bool) ui.Field {
	return ui.Field{
		Kind: ui.YesNoField, Name: askAgainName, Label: "Ask everything again?", Value: strconv.FormatBool(yes),
		Help: "Steps of this pipeline take an identical earlier answer where there is one. With Yes they are all done anew, for what that costs.",
	}
}

func (f startView) asksAgain() bool {
	return slices.Contains(f.Form.Values[askAgainName], "true")
}

// fieldsOf puts the fields of a record among the others, named after both.
func (f startView) fieldsOf(prefix, under string, fields []pipeline.Field, faults map[string]string) []startField {
	var out []startField
	for _, field := range fields {
		name := prefix + field.Name
		label := under + field.Title()
		if field.Type == pipeline.TypeRecord {
			out = append(out, f.fieldsOf(name+".", label+": ", field.Fields, faults)...)
			continue
		}
		shown := f.field(name, field)
		shown.Label, shown.Error = label, faultOf(faults, name)
		out = append(out, shown)
	}
	return out
}

// faultOf finds what is wrong with a field, or with a part of it that has no field of
// its own.
func faultOf(faults map[string]string, name string) string {
	if fault, ok := faults[name]; ok {
		return fault
	}
	for at, fault := range faults {
		if strings.HasPrefix(at, name+".") {
			return fault
		}
	}
	return ""
}

// field is one field of the form with what was typed, or with the sample's value.
func (f startView) field(name string, of pipeline.Field) startField {
	shown := startField{Field: ui.Field{
		Kind: fieldKind(of), Name: name, Help: of.Help, Optional: !of.Required, Value: f.value(name), Currency: of.Currency,
	}}
	switch of.Type {
	case pipeline.TypeChoice:
		for _, choice := range of.Choices {
			shown.Options = append(shown.Options, ui.Option{Value: choice.Value, Label: choice.Title()})
		}
	case pipeline.TypeMoney:
		if of.Currency == "" {
			shown.Currencies, shown.CurrencyName = currencies, name+".currency"
			shown.Currency = f.value(name + ".currency")
		}
	case pipeline.TypeDateTime:
		zone := f.v.zone()
		shown.Zone = ui.ZoneName(f.v.now, zone)
		shown.Hidden = []ui.Hidden{{Name: name + ".zone", Value: zone.String()}}
	case pipeline.TypeList:
		shown.Help = listHelp(of, shown.Help)
	case pipeline.TypeFile:
		shown.Accept, shown.MaxBytes, shown.Value = ".txt,.eml,.csv,.json,.pdf,.png,.jpg,.jpeg,.gif,.webp", pipeline.MaxInputFile, ""
		shown.Help = f.fileHelp(name, shown.Help)
	}
	return shown
}

// currencies are those offered where any may be typed.
var currencies = []string{"EUR", "USD", "GBP", "CHF", "SEK", "DKK", "NOK", "PLN", "CZK", "JPY"}

// fieldKind draws numbers as text, so that no browser rounds them.
func fieldKind(of pipeline.Field) ui.FieldKind {
	if of.Type == pipeline.TypeText && of.Long || of.Type == pipeline.TypeList {
		return ui.LongField
	}
	return map[pipeline.FieldType]ui.FieldKind{
		pipeline.TypeText: ui.TextField, pipeline.TypeNumber: ui.NumberField, pipeline.TypeMoney: ui.MoneyField,
		pipeline.TypeDate: ui.DateField, pipeline.TypeDateTime: ui.DateTimeField, pipeline.TypeYesNo: ui.YesNoField,
		pipeline.TypeChoice: ui.ChoiceField, pipeline.TypeFile: ui.FileField,
	}[of.Type]
}

// listHelp says how to type a list, which has no control of its own.
func listHelp(of pipeline.Field, help string) string {
	how := "One entry a line."
	if of.Of != nil && (of.Of.Type == pipeline.TypeRecord || of.Of.Type == pipeline.TypeList || of.Of.Type == pipeline.TypeMoney || of.Of.Type == pipeline.TypeFile) {
		how = "As a JSON list."
	}
	return strings.TrimSpace(help + " " + how)
}

// fileHelp tells the limit, and what becomes of a file that a browser cannot keep.
func (f startView) fileHelp(name, help string) string {
	help = strings.TrimSpace(help + fmt.Sprintf(" Up to %d MB, as .txt, .eml, .csv, .json, PDF or an image.", pipeline.MaxInputFile>>20))
	if sent, ok := f.Form.Files[name]; ok && len(f.Problems) > 0 {
		if f.Sample && f.isSampleFile(name, sent) {
			return help + " The sample’s file “" + sent.Name + "” is taken unless you choose another."
		}
		return help + " Choose “" + sent.Name + "” again: browsers do not keep files."
	}
	if f.Sample {
		if file := f.sampleFile(name); file != "" {
			return help + " The sample’s file “" + file + "” is taken unless you choose another."
		}
	}
	return help
}

func (f startView) isSampleFile(name string, sent pipeline.Upload) bool {
	return f.sampleFile(name) == sent.Name
}

func (f startView) sampleFile(name string) string {
	_, files, err := f.Version.Document.SampleInput()
	if err != nil {
		return ""
	}
	for _, file := range files {
		if file.Field == name {
			return file.Name
		}
	}
	return ""
}

// value is what was typed, also where it could not be taken.
func (f startView) value(name string) string {
	if sent := f.Form.Values[name]; len(sent) > 0 {
		return strings.Join(sent, "\n")
	}
	return ""
}

// sampleValues are the values of a document's sample as its form would send them.
func sampleValues(document pipeline.Document) map[string][]string {
	values := map[string][]string{}
	if document.Sample == nil {
		return values
	}
	decoded, err := expr.DecodeJSON(document.Sample.Input)
	if err != nil {
		return values // a sample that cannot be read fills in nothing
	}
	record, _ := decoded.(map[string]any)
	fillValues(values, "", document.Input, record)
	return values
}

func fillValues(values map[string][]string, prefix string, fields []pipeline.Field, record map[string]any) {
	for _, field := range fields {
		name := prefix + field.Name
		switch value := record[field.Name].(type) {
		case nil:
		case string:
			values[name] = []string{value}
		case bool:
			values[name] = []string{fmt.Sprint(value)}
		case json.Number:
			values[name] = []string{value.String()}
		case map[string]any:
			fillRecord(values, name, field, value)
		case []any:
			if encoded, err := expr.EncodeJSON(value); err == nil {
				values[name] = []string{string(encoded)}
			}
		}
	}
}

func fillRecord(values map[string][]string, name string, field pipeline.Field, value map[string]any) {
	switch field.Type {
	case pipeline.TypeRecord:
		fillValues(values, name+".", field.Fields, value)
	case pipeline.TypeMoney:
		values[name] = []string{fmt.Sprint(value["amount"])}
		values[name+".currency"] = []string{fmt.Sprint(value["currency"])}
	}
}
