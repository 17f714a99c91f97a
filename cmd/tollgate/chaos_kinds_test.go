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

// each asks about three items, two at a time, and mails each answer: its own row, three
// of items and six of steps.
func each(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Each", "kind": "each", "with": {"items": "[1, 2, 3]", "at_once": 2, "steps": [%s, %s]}}`, id, ask(id+"_ask"), send(id+"_send"))
}

// sides asks on one side and mails on the other: its own row, two of branches and three of
// steps.
func sides(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Sides", "kind": "parallel", "with": {"branches": [
		{"id": "left", "name": "Left", "steps": [%s, %s]}, {"id": "right", "name": "Right", "steps": [%s]}]}}`, id, ask(id+"_a"), keep(id+"_b", "input.n"), send(id+"_c"))
}

// loop asks twice: its own row, two of rounds and two of steps.
func loop(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Loop", "kind": "repeat", "with": {"until": "round >= 2", "max_rounds": 5, "max_cost": 5000000, "max_time": "1h", "at_limit": "fail", "steps": [%s]}}`, id, ask(id+"_ask"))
}

func aSecond(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Pause", "kind": "wait", "with": {"for": "1s"}}`, id)
}

// told waits for the event of the run's number.
func told(id string) string {
	return fmt.Sprintf(`{"id": %q, "name": "Told", "kind": "event", "with": {"name": %q, "key": "{{ input.n }}"}}`, id, chaosEvent)
}

// chaosEvent is what the runs of the chaos wait for, by their number.
const chaosEvent = "chaos.told"

// mixtures are one pipeline for each way in which steps follow each other.
func mixtures() []mixture {
	return []mixture{
		{name: "Chain", done: 7, steps: steps(ask("a"), keep("b", "steps.a.text"), ask("c"), ask("d"), keep("e", "steps.b.x + steps.c.text"), ask("f"), send("g"))},
		{name: "Route", done: 5, steps: steps(keep("a", "input.n"), route("b", []string{ask("c"), ask("d")}, []string{send("e"), ask("f")}), keep("g", "input.n"))},
		{name: "Check", done: 5, steps: steps(ask("a"), check("b"), ask("c"), check("d"), send("e"))},
		{name: "Each", done: 12, steps: steps(ask("a"), each("b"), send("c"))},
		{name: "Sides", done: 8, steps: steps(sides("a"), ask("b"), keep("c", "input.n"))},
		{name: "Loop", done: 7, steps: steps(loop("a"), send("b"), ask("c"))},
		{name: "Told", done: 4, steps: steps(ask("a"), told("b"), aSecond("c"), send("d"))},
	}
}

func steps(list ...string) string { return strings.Join(list, ",") }

func (m mixture) document() string {
	return fmt.Sprintf(`{"semantics": 2, "name": %q, "input": [{"name": "n", "type": "number", "required": true}], "steps": [%s],
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
