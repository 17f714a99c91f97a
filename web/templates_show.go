package web

import (
	"net/http"
	"strings"
	"unicode"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// templatePage is one template with its whole outline, what it needs and its sample.
func (s *Server) templatePage(v *visit) error {
	template, ok := pipeline.TemplateBySlug(v.Param("slug"))
	if !ok {
		return errNotFound
	}
	view := templatesView{v: v, Key: newFormKey()}
	if err := view.read(); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(template.Title, inTemplates), templateBody(view, template))
}

// areaID is an area's name as an anchor.
func areaID(area string) string {
	return "area-" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, area)
}

// needRows tell what must be there for a template to run.
func needRows(one pipeline.Template) []ui.Row {
	needs := one.Document.Needs()
	var rows []ui.Row
	for _, person := range needs.People {
		rows = append(rows, personNeeded(one, person))
	}
	for _, s := range one.Settings {
		if s.Type == pipeline.SettingEmail && !asksAt(needs, s.Value) {
			rows = append(rows, ui.Row{Name: s.Label, EndNote: "address", Reason: ui.Words("Gets mail from it.")})
		}
	}
	for _, event := range needs.Events {
		rows = append(rows, ui.Row{
			Name: "The event “" + event.Name + "”", EndNote: "event",
			Reason: ui.Words("Somebody sends it, or another run: “" + event.Step + "” waits for it."),
		})
	}
	for _, secret := range needs.Secrets {
		rows = append(rows, ui.Row{Name: "The secret “" + secret + "”", EndNote: "secret", Reason: ui.Words("Entered under Secrets, by an owner or admin.")})
	}
	return append(rows, ui.Row{Name: "A model", EndNote: "no key", Reason: ui.Words("The practice model answers until you choose another.")})
}

// personNeeded is one of those who are asked, by the words of the setting behind it.
func personNeeded(one pipeline.Template, person pipeline.Person) ui.Row {
	row := ui.Row{EndNote: "decides", Reason: ui.Words("Asked in the workspace and by mail; whoever started the run may not decide.")}
	switch {
	case person.Everyone:
		row.Name = "Somebody who may decide"
	case person.Role != "":
		row.Name = "Somebody with the role " + person.Role
	case strings.Contains(person.Email, "{{"):
		row.Name, row.Reason = "Whoever the start form names", ui.Words("Asked by mail; no account is needed.")
	default:
		row.Name, row.Reason = person.Email, ui.Words("Asked by mail; no account is needed.")
		for _, s := range one.Settings {
			if s.Value == person.Email {
				row.Name = s.Label
			}
		}
	}
	return row
}

func asksAt(needs pipeline.Needs, address string) bool {
	for _, person := range needs.People {
		if person.Email == address {
			return true
		}
	}
	return false
}

// costPairs are what a run costs: seen on its sample, and at most.
func costPairs(one pipeline.Template) ui.Pairs {
	pairs := ui.Pairs{Items: []ui.Pair{{Label: "Its sample", Value: aboutCost(one) + ", in pretend dollars"}}}
	if limit := one.Document.RunCap; limit != nil {
		pairs.Items = append(pairs.Items, ui.Pair{Label: "AI spend cap of a run", Value: ledger.Micros(*limit).String()})
	}
	return pairs
}

// sampleFolds are the recorded sample: what it starts with, and what the models answer.
func sampleFolds(one pipeline.Template) []ui.Fold {
	values, _ := expr.DecodeJSON(one.Document.Sample.Input) // a test reads every sample
	input, _ := values.(map[string]any)
	pairs, folds := ui.Pairs{Tight: true}, []ui.Fold{{}}
	for _, field := range one.Document.Input {
		if file, ok := input[field.Name].(map[string]any); ok && field.Type == pipeline.TypeFile {
			name, _ := file["name"].(string)
			content, _ := file["content"].(string)
			folds = append(folds, ui.Fold{ID: "sample-" + field.Name, Title: field.Title(), Answer: name, Body: ui.Code{Text: content, Label: name}})
			continue
		}
		if words, err := expr.Words(input[field.Name]); err == nil && words != "" {
			pairs.Items = append(pairs.Items, ui.Pair{Label: field.Title(), Value: words})
		}
	}
	folds[0] = ui.Fold{ID: "sample-form", Title: "Start form", Answer: ui.Plural(int64(len(pairs.Items)), "value", "values"), Body: pairs}
	return append(folds, answerFolds(one, one.Program.Roots())...)
}

// answerFolds are the recorded answers of the steps in a list and inside them.
func answerFolds(one pipeline.Template, nodes []*pipeline.Node) []ui.Fold {
	var folds []ui.Fold
	for _, node := range nodes {
		if answer := one.Document.Sample.Answers[node.ID()]; len(answer) > 0 {
			folds = append(folds, ui.Fold{
				ID: "sample-" + node.ID(), Title: "The AI answers: " + node.Step.Name, Answer: node.Number, Body: ui.Value{JSON: answer, Label: node.Step.Name},
			})
		}
		for _, list := range node.Lists {
			folds = append(folds, answerFolds(one, list.Nodes)...)
		}
	}
	return folds
}
