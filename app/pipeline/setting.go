package pipeline

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"tollgate/app/expr"
)

// SettingType says what belongs into a setting.
type SettingType string

// The types of settings.
const (
	SettingEmail SettingType = "email" // one address
	SettingText  SettingType = "text"  // a name of at most maxSetting characters
)

// maxSetting is the most characters of a setting.
const maxSetting = 100

// Setting is something of a template that every workspace has its own of, such as the
// address of its accounts department. Until it is set the documents hold Value.
type Setting struct {
	Name  string
	Label string
	Help  string
	Type  SettingType
	Value string // what stands for it in the template; no other text holds it
}

// Missing are the settings that a document made of the template still lacks.
func (t Template) Missing(d Document) []Setting {
	var out []Setting
	for _, s := range t.Settings {
		if d.holds(s.Value) {
			out = append(out, s)
		}
	}
	return out
}

// Fill puts answers, by the names of settings, in place of what stands for them in d. A
// problem's field is the name of the setting. The sample stays as it was recorded.
func (t Template) Fill(d Document, answers map[string]string) (Document, []FieldProblem) {
	var problems []FieldProblem
	var pairs []string
	for _, s := range t.Missing(d) {
		answer := strings.TrimSpace(answers[s.Name])
		if fault := s.fault(answer); fault != "" {
			problems = append(problems, FieldProblem{s.Name, fault})
			continue
		}
		pairs = append(pairs, s.Value, answer)
	}
	if len(problems) > 0 {
		return d, problems
	}
	out, err := d.rewritten(strings.NewReplacer(pairs...).Replace)
	if err != nil {
		return d, []FieldProblem{{"", "The template cannot be filled in: " + err.Error()}}
	}
	return out, nil
}

// fault says what is wrong with an answer. It is put into texts and formulas, so what
// could mean something there is refused.
func (s Setting) fault(answer string) string {
	at, err := mail.ParseAddress(answer)
	switch {
	case answer == "":
		return fmt.Sprintf("“%s” is empty. Fill it in.", s.Label)
	case utf8.RuneCountInString(answer) > maxSetting:
		return fmt.Sprintf("“%s” is longer than %d characters. Shorten it.", s.Label, maxSetting)
	case expr.CheckText(answer) != nil || strings.ContainsFunc(answer, breaksLine):
		return fmt.Sprintf("“%s” has a hidden character in it. Type it again.", s.Label)
	case strings.ContainsAny(answer, "{}\"\\"):
		return fmt.Sprintf("“%s” cannot have braces, straight quotes or backslashes in it. Leave them out.", s.Label)
	case s.Type == SettingEmail && (err != nil || at.Address != answer || strings.Contains(answer, ",")):
		return fmt.Sprintf("“%s” is not an e-mail address. Write it like ana@company.example.", shown(answer))
	}
	return ""
}

// holds tells whether any text outside the sample has a part.
func (d Document) holds(part string) bool {
	found := false
	_, _ = d.rewritten(func(text string) string { // only looked through
		found = found || strings.Contains(text, part)
		return text
	})
	return found
}

// rewritten is the document with every text outside its sample changed. d itself is left
// as it is.
func (d Document) rewritten(change func(string) string) (Document, error) {
	sample := d.Sample
	d.Sample = nil
	v, err := expr.DecodeJSON(d.JSON())
	if err != nil {
		return d, err
	}
	data, err := expr.EncodeJSON(rewrite(v, change))
	if err != nil {
		return d, err
	}
	out, err := Parse(data)
	out.Sample = sample
	return out, err
}

func rewrite(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = rewrite(v[i], change)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = rewrite(v[name], change)
		}
		return out
	}
	return v
}
