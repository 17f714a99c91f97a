package main

import (
	"fmt"
	"strings"
	"time"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/pipeline"
)

// mixture is a pipeline of the chaos: what it does, and what shows that a run of it has
// done all of it, once. Its input is {"n": <number>}, and so is its result.
type mixture struct {
	name  string
	steps string // the document's steps; the result is input.n
	done  int    // step runs that a good run has
	id    pipeline.ID
}

// patient is how often a step of the chaos is tried: what fails there passes.
const patient = `"retry": {"attempts": 9, "first": "1s"}`

func ask(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Ask %s", "kind": "ai", %s, "with": {"models": ["openai/gpt-5.6-terra"], "instructions": "Answer.", "prompt": "%s of {{ input.n }}", "max_tokens": 200}}`, id, id, patient, id)
}

func send(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Send %s", "kind": "email", %s, "with": {"to": ["kim@example.com"], "subject": "Run {{ input.n }}", "body": "Hello."}}`, id, id, patient)
}

func keep(id, formula string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Keep %s", "kind": "set", "with": {"values": [{"name": "x", "formula": %q}]}}`, id, id, formula)
}

func check(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Check %s", "kind": "review", "with": {"question": "Is run {{ input.n }} fine?", "people": [{"email": "rita@example.com"}]}}`, id, id)
}

func route(id string, even, odd []string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Route", "kind": "branch", "with": {"cases": [
		{"id": "even", "name": "Even", "when": "input.n %% 2 == 0", "steps": [%s]}, {"id": "odd", "name": "Odd", "when": "input.n %% 2 == 1", "steps": [%s]}]}}`,
		id, strings.Join(even, ","), strings.Join(odd, ","))
}

// mixtures are one pipeline for each way in which steps follow each other.
func mixtures() []mixture {
	return []mixture{
		{name: "Chain", done: 7, steps: strings.Join([]string{ask("a"), keep("b", "steps.a.text"), ask("c"), ask("d"), keep("e", "steps.b.x + steps.c.text"), ask("f"), send("g")}, ",")},
		{name: "Route", done: 5, steps: strings.Join([]string{keep("a", "input.n"),
			route("b", []string{ask("c"), ask("d")}, []string{send("e"), ask("f")}), keep("g", "input.n")}, ",")},
		{name: "Check", done: 5, steps: strings.Join([]string{ask("a"), check("b"), ask("c"), check("d"), send("e")}, ",")},
	}
}

func (m mixture) document() string {
	return fmt.Sprintf(`{"semantics": 1, "name": %q, "input": [{"name": "n", "type": "number", "required": true}], "steps": [%s],
		"result": [{"name": "n", "formula": "input.n"}]}`, m.name, m.steps)
}

// moods are what the model server does to the calls of the chaos: most take up to half
// a second, some fail.
func moods() []fakellm.Share {
	return []fakellm.Share{
		{PerMille: 20, Turn: fakellm.Turn{Status: 429}},
		{PerMille: 20, Turn: fakellm.Turn{Status: 500}},
		{PerMille: 20, Turn: fakellm.Turn{Drop: true}},
		{PerMille: 240, Turn: fakellm.Turn{Delay: 100 * time.Millisecond}},
		{PerMille: 300, Turn: fakellm.Turn{Delay: 250 * time.Millisecond}},
		{PerMille: 350, Turn: fakellm.Turn{Delay: 450 * time.Millisecond}},
	}
}
