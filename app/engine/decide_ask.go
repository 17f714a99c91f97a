package engine

import (
	"encoding/json"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// askAtLimit asks people whether to go on with the best round of a loop that has reached
// a limit. It is the loop's own row that waits.
func (d *decider) askAtLimit(node *pipeline.Node, loop *frame, rounds int, reason string) error {
	best, err := d.bestRound(loop.row)
	if err != nil {
		return err
	}
	if err := d.see(at(node, loop.outer), askRefs(node.Repeat())); err != nil {
		return err
	}
	draft, failure := d.limitDraft(node, loop.row, limitWords(node.Repeat(), rounds, reason), best)
	if barred, ok := d.bars.failed[node.ID()]; ok {
		failure = &barred
	}
	d.note(loop)
	if failure != nil {
		failure.StepID = node.ID()
		return d.failGroups(loop, *failure)
	}
	d.wait(loop)
	d.add(openReview{step: loop.row.ID, draft: draft})
	d.add(openWait{Wait{StepRun: loop.row.ID, Kind: WaitReview, Reason: draft.question}})
	d.park(loop.outer)
	return nil
}

// wait lets a group's own row wait.
func (d *decider) wait(group *frame) {
	group.row.State = StepWaiting
	if group.insert < 0 {
		d.add(moveStep{id: group.row.ID, from: StepRunning, to: StepWaiting, attempt: group.row.Attempt})
		return
	}
	d.note(group)
}

func askRefs(loop *pipeline.CompiledRepeat) []expr.Ref {
	var refs []expr.Ref
	for _, person := range loop.Ask {
		if person.Email != nil {
			refs = append(refs, person.Email.Refs()...)
		}
	}
	return refs
}

// atLimit is how a loop's question is asked. Whoever started the run may answer it, too:
// it is not her work that is judged.
var atLimit = pipeline.CompiledReview{
	Rule: pipeline.PolicyAny, AllowRequester: true, Proof: pipeline.ProofLink,
	Labels: pipeline.Labels{Approve: "Take the best so far", Reject: "Let it fail", SendBack: "Ask for changes"},
}

// maxShown is how much of a loop's best result its question shows, in bytes.
const maxShown = 20_000

// limitDraft is the question of a loop at its limit.
func (d *decider) limitDraft(node *pipeline.Node, loop StepRun, limit string, best any) (reviewDraft, *Failure) {
	draft := reviewDraft{
		node: node, ask: &atLimit,
		question: fmt.Sprintf("“%s” reached %s. Take the best so far?", node.Step.Name, limit),
		approve:  "The run goes on with the best result so far.", reject: "The step fails.",
	}
	words, err := expr.Words(best)
	if err != nil {
		failure := formulaFailure(err)
		return draft, &failure
	}
	draft.body = expr.Preview([]byte(words), maxShown)
	if loop.Score != "" {
		draft.facts = append(draft.facts, draftFact{"Score of the best", loop.Score})
	}
	draft.people, err = d.draftPeople(node.Repeat().Ask)
	if err != nil {
		failure := formulaFailure(err)
		return draft, &failure
	}
	return draft, nil
}

// answeredLoop goes on behind a loop whose question was answered.
func (d *decider) answeredLoop() error {
	node := d.program.Node(d.step.StepID)
	last, ok := d.scope.last[d.step.ID]
	if !ok {
		return d.ask(want{kind: wantLast, row: d.step.ID})
	}
	best, err := d.bestRound(*d.step)
	if err != nil {
		return err
	}
	reason := d.limit(node.Repeat(), *d.step, last+1)
	if reason == "" {
		reason = pipeline.EndCost // the money left did not reach for the next call
	}
	if verdict, by := answerOf(d.outcome.output); verdict != pipeline.VerdictApproved {
		failure := limitFailure(node, last+1, reason, by+" did not take the best so far.")
		d.outcome.failure = &failure
	} else if d.outcome.output, d.outcome.failure = loopOutput(last+1, reason, best); d.outcome.failure == nil {
		return d.leaveLoop(node)
	}
	d.outcome.output = nil
	return d.fail()
}

// leaveLoop ends the loop that is the position, and goes on behind it.
func (d *decider) leaveLoop(node *pipeline.Node) error {
	group := d.frames(d.groups)
	d.add(d.ended(StepDone))
	row := *d.step
	row.State = StepDone
	d.know(place{frame: group.id(), step: row.StepID}, foundRow(row, value{bytes: d.outcome.output}))
	return d.after(node, group)
}

// answerOf reads what an answer says and who gave it.
func answerOf(output []byte) (verdict, by string) {
	var answer struct {
		Verdict string `json:"verdict"`
		By      string `json:"by"`
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return "", "" // an answer that cannot be read is none that approves
	}
	return answer.Verdict, answer.By
}
