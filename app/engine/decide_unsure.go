package engine

import (
	"encoding/json"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// unsureTry acts on a try of which nobody can tell whether it arrived, as the step says.
// It reports false where that is to be acted on as on any other failure.
func (d *decider) unsureTry(node *pipeline.Node) (bool, error) {
	call := node.HTTP()
	if call == nil || !d.outcome.unsure {
		return false, nil
	}
	switch call.Unsure {
	case pipeline.UnsureAsk:
		return true, d.askArrived(node)
	case pipeline.UnsureFail:
		d.outcome.failure = unsureFailure(d.outcome.failure, "The step says to stop then.")
		return true, d.fail()
	}
	return false, nil
}

// unsureFailure is why a step ends that may have changed something on the other side.
func unsureFailure(cause *Failure, then string) *Failure {
	return &Failure{
		Class: ClassUnsure, Detail: cause.Detail,
		Message: cause.Message + " Nobody can tell whether the other side got it. " + then + " Look there before anything is sent again.",
	}
}

// tellUnsure says so where the last try of a call that sends may have arrived.
func (d *decider) tellUnsure(node *pipeline.Node) {
	if call := node.HTTP(); call != nil && call.Sends && d.outcome.unsure {
		d.outcome.failure = unsureFailure(d.outcome.failure, "We stopped after the last try.")
	}
}

// interruptedUnsure is interruptedTry for a step that may not simply call again.
func (d *decider) interruptedUnsure() (bool, error) {
	node := d.program.Node(d.step.StepID)
	call := node.HTTP()
	if call == nil || call.Unsure != pipeline.UnsureAsk && call.Unsure != pipeline.UnsureFail {
		return false, nil
	}
	d.outcome.failure = &Failure{Class: ClassInterrupted, Message: "The program stopped in the middle of this call."}
	d.outcome.unsure = true
	d.recordTry(AttemptInterrupted)
	d.addMoney()
	d.outcome.settle = nil
	return d.unsureTry(node)
}

// Fields of the question whether a call arrived, and its answers.
const (
	fieldArrived = "arrived"
	fieldAnswer  = "answer"
	arrivedYes   = "arrived"
	arrivedNo    = "not_arrived"
)

// arrivedAsk is how that is asked. Whoever started the run may answer it, too.
var arrivedAsk = pipeline.CompiledReview{
	Rule: pipeline.PolicyAny, AllowRequester: true, Proof: pipeline.ProofLink,
	Labels: pipeline.Labels{Approve: "Go on as chosen", Reject: "Let it fail", SendBack: "Ask for changes"},
}

var arrivedFields = []draftField{
	{pipeline.Field{Name: fieldArrived, Label: "Did it arrive?", Type: pipeline.TypeChoice, Required: true, Choices: []pipeline.Choice{
		{Value: arrivedYes, Label: "It arrived: go on with the answer below"}, {Value: arrivedNo, Label: "It did not arrive: send it"},
	}}, json.RawMessage(`null`)},
	{pipeline.Field{Name: fieldAnswer, Label: "What the other side says about it", Type: pipeline.TypeText, Long: true,
		Help: "Only if it arrived, and only if later steps need it: the data itself, as JSON or as text."}, json.RawMessage(`null`)},
}

// askArrived asks people whether a call arrived. Until one of them has answered nothing is
// sent again.
func (d *decider) askArrived(node *pipeline.Node) error {
	group := d.frames(d.groups)
	if err := d.see(at(node, group), personRefs(node.HTTP().Ask)); err != nil {
		return err
	}
	draft, failure := d.arrivedDraft(node)
	if barred, ok := d.bars.failed[node.ID()]; ok {
		failure = unsureFailure(d.outcome.failure, barred.Message)
	}
	if failure != nil {
		d.outcome.failure = failure
		return d.fail()
	}
	d.add(d.moved(StepWaiting, d.step.Attempt))
	d.addMoney()
	d.add(openReview{step: d.step.ID, draft: draft})
	d.add(openWait{Wait{StepRun: d.step.ID, Kind: WaitReview, Reason: draft.question}})
	d.park(group)
	return nil
}

func personRefs(people []pipeline.CompiledPerson) []expr.Ref {
	var refs []expr.Ref
	for _, person := range people {
		if person.Email != nil {
			refs = append(refs, person.Email.Refs()...)
		}
	}
	return refs
}

func (d *decider) arrivedDraft(node *pipeline.Node) (reviewDraft, *Failure) {
	cause := d.outcome.failure
	draft := reviewDraft{
		node: node, ask: &arrivedAsk, round: d.step.Attempt, editable: arrivedFields,
		question: node.Step.Name + ": did it arrive?",
		body: cause.Message + " Nobody can tell from here whether the other side got what was sent. " +
			"It is not sent again unless you say so: look in the other system first.",
		approve: "“It arrived” goes on without sending anything. “It did not arrive” sends it once more, under the same key.",
		reject:  "The step fails, and nothing is sent.",
	}
	var sent HTTPInput
	if err := json.Unmarshal(d.scope.callInput, &sent); err == nil {
		draft.facts = []draftFact{{"Sent to", sent.Method + " " + expr.Preview([]byte(sent.URL), 300)}}
		if sent.Body != nil {
			draft.facts = append(draft.facts, draftFact{"Data", expr.Preview([]byte(*sent.Body), maxShown)})
		}
		if sent.KeyHeader != "" {
			draft.facts = append(draft.facts, draftFact{sent.KeyHeader, d.step.ID.String()})
		}
	}
	people, err := d.draftPeople(node.HTTP().Ask)
	if err != nil {
		failure := formulaFailure(err)
		return draft, &failure
	}
	draft.people = people
	return draft, nil
}

// answeredArrival goes on at a step whose question was answered: with what is known of the
// other side's answer, with the call, or not at all.
func (d *decider) answeredArrival() error {
	var answer struct {
		Verdict string `json:"verdict"`
		By      string `json:"by"`
		Arrived string `json:"arrived"`
		Answer  string `json:"answer"`
	}
	if err := json.Unmarshal(d.outcome.output, &answer); err != nil {
		answer.Verdict = "" // an answer that cannot be read is none that lets it go on
	}
	d.outcome.output, d.outcome.decoded = nil, nil
	switch {
	case answer.Verdict != pipeline.VerdictApproved:
		d.outcome.failure = &Failure{Class: ClassUnsure, Message: answer.By + " let this step fail, because nobody could tell whether the call had arrived. Nothing was sent again."}
		return d.fail()
	case answer.Arrived == arrivedNo:
		d.step = d.nextAttempt()
		d.outcome.note = answer.By + " said that it had not arrived, so it was sent again, under the same key."
		return d.callAgain()
	}
	d.outcome.note = answer.By + " said that it had arrived, so it was not sent again."
	d.outcome.output = arrivedOutput(answer.Answer)
	return d.endWell()
}

// arrivedOutput is what later steps read of a call whose answer a person gave.
func arrivedOutput(typed string) []byte {
	var body any
	if typed != "" {
		decoded, err := expr.DecodeJSON([]byte(typed))
		if body = decoded; err != nil {
			body = typed
		}
	}
	output, err := expr.EncodeJSON(map[string]any{"status": nil, "headers": map[string]any{}, "body": body})
	if err != nil {
		return []byte(`{"status":null,"headers":{},"body":null}`) // a typed text is always readable
	}
	return output
}
