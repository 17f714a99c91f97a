package engine

import (
	"encoding/json"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// answerAsk is how people are asked for what the models did not give. Whoever started the
// run may answer, too: it is not her work that is judged.
var answerAsk = pipeline.CompiledReview{
	Rule: pipeline.PolicyAny, AllowRequester: true, Proof: pipeline.ProofLink,
	Labels: pipeline.Labels{Approve: "Go on with this answer", Reject: "Let it fail", SendBack: "Ask for changes"},
}

// answerPrefix keeps the names of answer fields apart from those that every review gives.
const answerPrefix = "answer_"

// askAnswer asks people for the answer that the models did not give.
func (d *decider) askAnswer(node *pipeline.Node) error {
	group := d.frames(d.groups)
	if err := d.see(at(node, group), personRefs(node.AI().Ask)); err != nil {
		return err
	}
	draft, failure := d.answerDraft(node)
	if barred, ok := d.bars.failed[node.ID()]; ok {
		failure = &barred
	}
	if failure != nil {
		d.recordTry(AttemptFailed)
		failure.Detail = d.outcome.failure.Message
		d.outcome.failure = failure
		return d.fail()
	}
	d.outcome.followed = "People are asked for the answer."
	d.recordTry(AttemptFailed)
	row := *d.step
	row.Chain.Lacks = d.outcome.failure.Class
	d.step = &row
	d.add(d.moved(StepWaiting, row.Attempt))
	d.addMoney()
	d.add(openReview{step: row.ID, draft: draft})
	d.add(openWait{Wait{StepRun: row.ID, Kind: WaitReview, Reason: draft.question}})
	d.park(group)
	return nil
}

func (d *decider) answerDraft(node *pipeline.Node) (reviewDraft, *Failure) {
	draft := reviewDraft{
		node: node, ask: &answerAsk, round: d.step.Attempt,
		question: node.Step.Name + ": what is the answer?",
		body:     d.outcome.failure.Message + " Give the answer in the model’s place, or let the step fail.",
		approve:  "The run goes on with the answer that you fill in.",
		reject:   "The step fails.",
		facts:    []draftFact{{"Model", d.step.Chain.model(node)}},
	}
	var ask AIInput
	if err := json.Unmarshal(d.scope.callInput, &ask); err == nil {
		draft.facts = append(draft.facts, draftFact{"Asked", expr.Preview([]byte(ask.Prompt), maxShown)})
	}
	for _, field := range answerFields(node.AI()) {
		field.Label = field.Title()
		field.Name = answerPrefix + field.Name
		draft.editable = append(draft.editable, draftField{field, json.RawMessage(`null`)})
	}
	people, err := d.draftPeople(node.AI().Ask)
	if err != nil {
		failure := formulaFailure(err)
		return draft, &failure
	}
	draft.people = people
	return draft, nil
}

// answerFields are what an answer holds.
func answerFields(ask *pipeline.CompiledAI) []pipeline.Field {
	if len(ask.Answer) == 0 {
		return []pipeline.Field{{Name: "text", Label: "Answer", Type: pipeline.TypeText, Long: true, Required: true}}
	}
	return ask.Answer
}

// answeredCall goes on with what people gave in place of the models, or fails.
func (d *decider) answeredCall() error {
	node := d.program.Node(d.step.StepID)
	verdict, by := answerOf(d.outcome.output)
	fields, err := expr.DecodeJSON(d.outcome.output)
	given, ok := fields.(map[string]any)
	d.outcome.output, d.outcome.decoded = nil, nil
	d.scope.callInput = nil // what a person says is taken by no other step
	if verdict != pipeline.VerdictApproved || err != nil || !ok {
		d.outcome.failure = &Failure{Class: d.step.Chain.Lacks, Message: by + " let this step fail, because no model gave an answer that can be used."}
		return d.fail()
	}
	answer := map[string]any{}
	for _, field := range answerFields(node.AI()) {
		answer[field.Name] = given[answerPrefix+field.Name]
	}
	output, failure := encodeOutput(answer)
	if failure != nil {
		d.outcome.failure = failure
		return d.fail()
	}
	d.outcome.output, d.outcome.note = output, by+" gave the answer, since no model did."
	return d.endWell()
}
