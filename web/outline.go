package web

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// outlineLine is one step of a pipeline, told as a sentence.
type outlineLine struct {
	Number, Name string
	Depth        int // 0 at the top
	Under        string
	Kind         ui.Kind
	Says         string
	Calls        string // id of the pipeline that it runs; empty for other kinds
}

// outlineLines tells every step of a program, in reading order, with what it may cost
// only for who may see money.
func outlineLines(program *pipeline.Program, money bool) []outlineLine {
	var lines []outlineLine
	var walk func(nodes []*pipeline.Node, under string)
	walk = func(nodes []*pipeline.Node, under string) {
		for _, node := range nodes {
			line := outlineLine{
				Number: node.Number, Name: node.Step.Name, Depth: node.Depth - 1, Under: under,
				Kind: ui.KindOf(string(node.Kind())), Says: tell(program, node, money),
			}
			if with, ok := node.Step.With.(*pipeline.Child); ok {
				line.Calls = with.Pipeline
			}
			lines = append(lines, line)
			under = ""
			for _, list := range node.Lists {
				walk(list.Nodes, caseName(node, list))
			}
		}
	}
	walk(program.Roots(), "")
	return lines
}

// naming says in the lines which pipelines are run, by their names of today.
func naming(lines []outlineLine, names []pipeline.Named) []outlineLine {
	for i, line := range lines {
		if line.Calls == "" {
			continue
		}
		at := slices.IndexFunc(names, func(one pipeline.Named) bool { return one.ID.String() == line.Calls })
		if at < 0 {
			lines[i].Says += " That pipeline is not here any more."
			continue
		}
		lines[i].Says = strings.Replace(line.Says, "another pipeline", "the pipeline “"+names[at].Name+"”", 1)
	}
	return lines
}

// caseName says under which condition a list of steps runs.
func caseName(node *pipeline.Node, list pipeline.ChildList) string {
	switch {
	case node.Kind() == pipeline.KindParallel:
		return "Branch: " + list.Name
	case list.Key == pipeline.ListSteps && node.Kind() == pipeline.KindRepeat:
		return "In each round"
	case list.Key == pipeline.ListSteps && node.Kind() == pipeline.KindEach:
		return "For each item"
	case list.Key == pipeline.ListOtherwise:
		return "Otherwise"
	case list.When == nil:
		return list.Name
	}
	return "If: " + list.Name
}

// tell says in a sentence what a step does, and what is done if it fails.
func tell(program *pipeline.Program, node *pipeline.Node, money bool) string {
	return strings.TrimSpace(tellKind(program, node, money) + tellReuse(node) + " " + tellCatches(node))
}

// tellReuse says of a step that takes earlier answers how old they may be.
func tellReuse(node *pipeline.Node) string {
	if node.Reuse == 0 {
		return ""
	}
	return " An identical answer that is not older than " + ui.Duration(node.Reuse) + " is taken instead."
}

func tellKind(program *pipeline.Program, node *pipeline.Node, money bool) string {
	switch with := node.Step.With.(type) {
	case *pipeline.AI:
		return tellAI(program, with, money)
	case *pipeline.Review:
		return tellReview(program, with)
	case *pipeline.Email:
		return fmt.Sprintf("Sends “%s” to %s%s.", readable(program, with.Subject), readable(program, strings.Join(with.To, ", ")), withFiles(with))
	case *pipeline.HTTP:
		return tellHTTP(program, with)
	case *pipeline.Set:
		var names []string
		for _, value := range with.Values {
			names = append(names, "“"+spaced(value.Name)+"”")
		}
		return "Works out " + ui.List(names) + "."
	case *pipeline.Branch:
		var names []string
		for _, one := range with.Cases {
			names = append(names, "“"+one.Name+"”")
		}
		return "Takes the first way whose condition holds: " + strings.Join(append(names, "otherwise"), ", ") + "."
	}
	if said := tellFlow(program, node, money); said != "" {
		return said
	}
	return node.Step.Note
}

func withFiles(with *pipeline.Email) string {
	if len(with.Attachments) == 0 {
		return ""
	}
	return ", with files attached"
}

// tellAI names the answer fields, which say more than a prompt, and the files that go along.
func tellAI(program *pipeline.Program, with *pipeline.AI, money bool) string {
	var models []string
	for _, model := range with.Models {
		models = append(models, modelName(model))
	}
	said := "Asks " + strings.Join(models, ", then ")
	var fields []string
	for _, field := range with.Answer {
		fields = append(fields, "“"+field.Title()+"”")
	}
	if len(fields) > 0 {
		said += " for " + ui.List(fields)
	}
	var files []string
	for _, file := range with.Files {
		files = append(files, readable(program, "{{ "+file+" }}"))
	}
	if len(files) > 0 {
		said += ", with " + ui.List(files) + " to read"
	}
	if with.MaxCost > 0 && money {
		said += ", for at most " + ledger.Micros(with.MaxCost).String()
	}
	return said + "."
}

// modelName is a model as people read it: what costs pretend dollars by what it is, others by
// the name under which they are billed.
func modelName(model string) string {
	switch provider, name, _ := strings.Cut(model, "/"); {
	case fundsOfModel(model) != ledger.Pretend:
		return model
	case provider == breakProvider:
		return "the " + name + " model"
	}
	return "the practice model"
}

// tellReview always says what silence leads to.
func tellReview(program *pipeline.Program, with *pipeline.Review) string {
	var who []string
	for _, person := range with.People {
		switch {
		case person.Everyone:
			who = append(who, "everybody who may decide")
		case person.Role != "":
			who = append(who, "everybody with the role "+person.Role)
		case person.User != "":
			who = append(who, person.User)
		default:
			who = append(who, readable(program, person.Email))
		}
	}
	question := readable(program, with.Question)
	said := fmt.Sprintf("Asks %s: “%s”", ui.List(who), question)
	if sentenceEnd(question) != question {
		said += "."
	}
	switch with.Policy.Rule {
	case pipeline.PolicyAll:
		said += " All must agree."
	case pipeline.PolicyN:
		said += fmt.Sprintf(" %d must agree.", with.Policy.N)
	}
	if with.AllowRequester {
		said += " Who started the run may answer too."
	}
	if with.Due != nil {
		said += fmt.Sprintf(" Without an answer within %s %s.", ui.Duration(time.Duration(*with.Due)), news{Silence: with.OnDeadline}.silence())
	}
	return said
}

var (
	insertion = regexp.MustCompile(`\{\{(.*?)\}\}`)
	plainPath = regexp.MustCompile(`^(?:default\()?\s*(input|steps|error|item)\.([A-Za-z0-9_]+)(?:\.([A-Za-z0-9_]+))?`)
)

// readable shows a text with what is inserted into it by the names that people gave.
func readable(program *pipeline.Program, text string) string {
	return insertion.ReplaceAllStringFunc(text, func(found string) string {
		formula := strings.TrimSpace(insertion.FindStringSubmatch(found)[1])
		path := plainPath.FindStringSubmatch(formula)
		switch {
		case path == nil:
			return "[a value]"
		case path[1] == "input":
			return bracket(fieldTitle(program.Document().Input, path[2]), spaced(path[3]))
		case path[1] == "error":
			return bracket(fieldTitle(pipeline.ErrorFields(), path[2]), "")
		case path[1] == "item":
			return bracket("item", spaced(path[2]))
		}
		node := program.Node(path[2])
		if node == nil {
			return "[a value]"
		}
		return bracket(node.Step.Name, fieldTitle(pipeline.Outputs(*node.Step), path[3]))
	})
}

// bracket marks what is filled in when the step runs.
func bracket(whole, part string) string {
	if part == "" {
		return "[" + whole + "]"
	}
	return "[" + whole + " › " + part + "]"
}

// fieldTitle is a field by its label; one that has none by its name.
func fieldTitle(fields []pipeline.Field, name string) string {
	for _, field := range fields {
		if field.Name == name {
			return spaced(field.Title())
		}
	}
	return spaced(name)
}

// spaced makes a name that formulas use readable.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// kindsOf are the kinds of steps of a document, each once, without those that only change
// data or stop: what a tile has room for.
func kindsOf(program *pipeline.Program) ui.Chain {
	var kinds ui.Chain
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			kind := ui.KindOf(string(node.Kind()))
			if node.Kind() != pipeline.KindSet && node.Kind() != pipeline.KindStop && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(program.Roots())
	return kinds
}

// chainOf is what a document is made of, as icons. Steps that only change data are left
// out: nobody chooses a pipeline by them.
func chainOf(program *pipeline.Program) ui.Chain {
	var chain ui.Chain
	for _, line := range outlineLines(program, false) {
		if line.Kind != ui.KindOf(string(pipeline.KindSet)) {
			chain = append(chain, line.Kind)
		}
	}
	return chain
}
