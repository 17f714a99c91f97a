package web

import (
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// caught tells a step whose failure was handled, or is being.
func (p passage) caught() bool { return p.Step != nil && !p.isPart() && p.Step.Caught() }

// how finds the entry of on_error that handles the step's failure.
func (p passage) how() *pipeline.CompiledCatch {
	for i := range p.Node.Catches {
		if p.Step.Chosen == pipeline.ErrorList(i) {
			return &p.Node.Catches[i]
		}
	}
	return nil
}

// handledWords say what failed and what was done about it. The steps that it took stand
// below.
func (p passage) handledWords() ui.Sentence {
	said, then := "Failed, handled: ", ""
	how := p.how()
	switch {
	case p.Step.State == engine.StepFailed:
		said = "Failed all the same: "
	case p.Step.State.Open():
		said = "Failed, being handled: "
	case how != nil && how.Do == pipeline.CatchDefault:
		then = " It went on with the value set for that."
	case how != nil && how.Do == pipeline.CatchAsk:
		then = " A person let it go on."
	}
	if p.Step.State.Open() && how != nil && how.Do == pipeline.CatchAsk {
		said, then = "Failed: ", " People are asked whether to go on."
	}
	out := ui.Sentence{ui.Plain(said)}
	if p.Step.Failure != nil {
		out = append(out, ui.Name(sentenceEnd(p.Step.Failure.Message)))
	}
	return append(out, ui.Plain(then))
}

// tellCatches says what is done if a step fails. Steps that are run then have lines of
// their own.
func tellCatches(node *pipeline.Node) string {
	var said []string
	for _, k := range node.Catches {
		what := map[pipeline.CatchAction]string{
			pipeline.CatchSteps: "does the steps below", pipeline.CatchDefault: "goes on with a set value",
			pipeline.CatchAsk: "asks a person whether to go on", pipeline.CatchFail: "fails",
		}[k.Do]
		if k.Do == pipeline.CatchFail && k.Exception != "" {
			what = "fails as “" + spaced(k.Exception) + "”"
		}
		if len(k.Classes) == 0 {
			said = append(said, "If it fails, it "+what+".")
			continue
		}
		said = append(said, "If it fails "+byClasses(k.Classes)+", it "+what+".")
	}
	return strings.Join(said, " ")
}

// reasons are the technical failures that people choose something for, in words.
var reasons = map[string]string{
	"refused": "the model declines", "malformed": "its answer cannot be read", "empty": "its answer is empty",
	"truncated": "its answer is cut off", "context_too_long": "there is too much to read",
	"overloaded": "the other side is overloaded", "server": "the other side fails", "timeout": "it takes too long",
	engine.ClassFormula: "something cannot be computed", engine.ClassExpired: "nobody answers in time", engine.ClassLimit: "a limit is reached",
	engine.ClassNobody: "there is nobody to ask", pipeline.ClassException: "an exception is raised",
}

// byClasses says for which failures something is done: “by “regulatory hold” or because
// the model declines”.
func byClasses(classes []string) string {
	var names, why []string
	for _, class := range classes {
		if words, ok := reasons[class]; ok {
			why = append(why, words)
			continue
		}
		names = append(names, "“"+spaced(class)+"”")
	}
	var out []string
	if len(names) > 0 {
		out = append(out, "by "+strings.Join(names, " or "))
	}
	if len(why) > 0 {
		out = append(out, "because "+ui.Either(why))
	}
	return strings.Join(out, " or ")
}
