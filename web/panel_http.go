package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/web/ui"
)

// tellHTTP says what a call to another system does, and always what happens when nobody
// can tell whether it arrived.
func tellHTTP(program *pipeline.Program, with *pipeline.HTTP) string {
	verb := "Gets data from"
	if with.Sends() {
		verb = "Sends data to"
	}
	said := fmt.Sprintf("%s %s (%s)", verb, readable(program, with.URL), with.Method)
	if names := with.Secrets(); len(names) > 0 {
		said += ", signed in with " + secretWords(names)
	}
	if !with.Sends() && with.Unsure() == pipeline.UnsureRepeat {
		return said + "."
	}
	return said + ". If nobody can tell whether it arrived, " + map[pipeline.UnsureAction]string{
		pipeline.UnsureAsk: "it asks a person before anything is sent again.", pipeline.UnsureRepeat: "it is sent again under the same key.",
		pipeline.UnsureLookUp: "it looks there first, and sends it again only if it did not.", pipeline.UnsureFail: "the step fails.",
	}[with.Unsure()]
}

func secretWords(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "“" + name + "”"
	}
	if len(quoted) == 1 {
		return "the secret " + quoted[0]
	}
	return "the secrets " + ui.List(quoted)
}

// sentCall are the parts of a call to another system. Secrets are in it by their names.
func sentCall(content []byte) []ui.Pair {
	var call engine.HTTPInput
	if json.Unmarshal(content, &call) != nil {
		return nil
	}
	pairs := []ui.Pair{{Label: "Address", Value: call.Method + " " + call.URL}}
	for _, param := range call.Query {
		pairs = append(pairs, ui.Pair{Label: "Query “" + param.Name + "”", Value: param.Value})
	}
	for _, header := range call.Headers {
		pairs = append(pairs, ui.Pair{Label: header.Name, Value: header.Value})
	}
	if names := (&pipeline.HTTP{Headers: call.Secret, Auth: call.Auth}).Secrets(); len(names) > 0 {
		pairs = append(pairs, ui.Pair{Label: "Signed in with", Value: secretWords(names)})
	}
	if call.File != nil {
		pairs = append(pairs, ui.Pair{Label: "File", Value: call.File.Name})
	}
	if call.Body != nil {
		pairs = append(pairs, ui.Pair{Label: "Data", Part: ui.Code{ID: "sent-data", Label: "Data that was sent", Text: ui.Pretty([]byte(*call.Body))}})
	}
	return pairs
}

// attachedWords name the files that go with a mail, or to a model.
func attachedWords(files []engine.FileRef) string {
	var names []string
	for _, file := range files {
		names = append(names, file.Name)
	}
	return strings.Join(names, ", ")
}

// triedOften tells how often a step was tried that failed in the end.
func (p *panelView) triedOften() ui.Sentence {
	if n := len(p.Passage.Tries); n > 1 {
		return ui.Words(fmt.Sprintf(" It was tried %d times.", n))
	}
	return nil
}

// maybeArrived warns that a call which sends data was cut by a cancel.
func (p *panelView) maybeArrived() ui.Sentence {
	call := p.node().HTTP()
	cut := slices.ContainsFunc(p.Passage.Tries, func(try engine.Attempt) bool { return try.Outcome == engine.AttemptCancelled })
	if call == nil || !call.Sends || !cut {
		return nil
	}
	return ui.Words(" A call was under way: what it sent may have arrived. Look in the other system.")
}

// askedWhetherItArrived tells a call that people may have been asked about.
func (p passage) askedWhetherItArrived() bool {
	call := p.Node.HTTP()
	return call != nil && call.Unsure == pipeline.UnsureAsk && p.Step.State != engine.StepRunning &&
		(p.Step.Attempt > 1 || p.Step.Note != "" || p.Step.State != engine.StepDone)
}

// toldWhetherItArrived is the line about who said so.
func toldWhetherItArrived(detail review.Detail, title ui.Span) []happening {
	if detail.Open() || len(detail.Answers) == 0 {
		return nil
	}
	last := detail.Answers[len(detail.Answers)-1]
	return []happening{{last.At, ui.Sentence{title, ui.Plain(": "), ui.Name(last.Name), ui.Plain(" said whether it had arrived")}}}
}

// unsureWords say why people are asked about a call.
func (p *panelView) unsureWords(c clock) ui.Sentence {
	out := ui.Sentence{ui.Strong("Nobody can tell whether it arrived."), ui.Plain(" ")}
	if n := len(p.Passage.Tries); n > 0 && p.Passage.Tries[n-1].Failure != nil {
		out = append(out, ui.Name(p.Passage.Tries[n-1].Failure.Message), ui.Plain(" "))
	}
	return append(append(out, p.askedWords(c)...), ui.Plain(" Nothing is sent again before that."))
}

// cutOffWords tell of a try that died with its worker, and what came of it.
func cutOffWords(try engine.Attempt, p passage) string {
	if try.Number < p.Step.Attempt {
		return " was cut off and made again with the same key"
	}
	return " was cut off"
}
