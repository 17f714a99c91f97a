package engine

import (
	"fmt"
	"strings"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
)

// chainRules is the number of the rules from which on a step goes through its models.
const chainRules = 5

// Tries of a model that another one comes after, where the step names none; how often a
// model is asked anew; and how much of what was wrong it is told, in bytes.
const (
	triesBeforeNext = 2
	maxReasks       = 2
	maxProblem      = 1000
)

// chains tells whether a step goes through its models.
func (d *decider) chains(node *pipeline.Node) bool {
	return node.AI() != nil && d.program.Document().Semantics >= chainRules
}

// followedTry acts on a try that gave nothing, as follows says.
func (d *decider) followedTry(node *pipeline.Node) error {
	if err := d.priced(node); err != nil {
		return err
	}
	facts, pause := d.chainFacts(node)
	row := d.nextAttempt()
	row.CostMicros += d.outcome.cost
	row.Chain.Spent += d.outcome.cost
	next := follows(d.outcome.failure.Class, facts)
	switch next {
	case backOff:
		return d.backOff(row, pause)
	case nextModel:
		row.Chain = Chain{Place: d.step.Chain.Place + 1, Since: d.step.Attempt, Spent: row.Chain.Spent}
		return d.goOn(row, "The next model is asked: "+row.Chain.model(node)+".")
	case askAnew:
		row.Chain.Reask++
		row.Chain.Problem = expr.Preview([]byte(d.outcome.failure.Message), maxProblem)
		return d.goOn(row, "The same model is asked again and told what was wrong.")
	case askLonger:
		row.Chain.Reask++
		row.Chain.MaxTokens = d.longer(node)
		return d.goOn(row, fmt.Sprintf("The same model is asked again, with room for %d tokens.", row.Chain.MaxTokens))
	case askPeople:
		return d.askAnswer(node)
	}
	d.recordTry(AttemptFailed)
	if place := d.step.Chain.Place; place > 0 {
		failure := *d.outcome.failure
		failure.Message = fmt.Sprintf("None of the %d models that were tried gave an answer. The last, %s: %s", place+1, d.step.Chain.model(node), failure.Message)
		d.outcome.failure = &failure
	}
	return d.fail()
}

// chainFacts are what follows depends on, and the pause before the same model's next try.
func (d *decider) chainFacts(node *pipeline.Node) (chainFacts, time.Duration) {
	ask, at, retry, class := node.AI(), d.step.Chain, node.Step.Retry, d.outcome.failure.Class
	tries := d.step.Attempt - max(d.step.EarlierTries, at.Since)
	f := chainFacts{more: at.Place+1 < len(ask.Models), refusal: ask.OnRefusal, missing: ask.IfMissing}
	pause, again := nextTry(d.program.Document().Semantics, node, tries, d.outcome)
	_, longest := pauses(d.program.Document().Semantics, class)
	f.tryAgain = again
	if f.more && (retry == nil && tries >= triesBeforeNext || d.outcome.retryAfter > longest) {
		f.tryAgain = false // nobody has to wait for this model while another may answer
	}
	f.anew = at.Reask < maxReasks && (retry == nil || tries < retry.Attempts && listed(retry.On, class))
	f.longer = class == "truncated" && at.Reask < maxReasks && d.longer(node) > 0
	return f, pause
}

// longer is twice the room for an answer, as far as the step's money allows that; 0 where
// there is no more.
func (d *decider) longer(node *pipeline.Node) int {
	now := max(node.AI().MaxTokens, d.step.Chain.MaxTokens)
	want := min(2*now, pipeline.MaxAnswerTokens)
	if d.maxOutput != nil {
		if most := d.maxOutput(d.step.Chain.model(node)); most > 0 {
			want = min(want, most)
		}
	}
	row := *d.step
	row.Chain.MaxTokens, row.Chain.Spent = want, row.Chain.Spent+d.outcome.cost
	if want <= now {
		return 0
	}
	if _, failure := d.reserve(node, row, d.scope.callInput); failure != nil {
		return 0
	}
	return want
}

// backOff lets the step wait for the same model's next try.
func (d *decider) backOff(row *StepRun, pause time.Duration) error {
	d.outcome.followed = fmt.Sprintf("The same model is asked again after %v.", pause.Round(time.Second/10))
	d.recordTry(AttemptFailed)
	d.step = row
	d.add(d.moved(StepWaiting, row.Attempt))
	d.addMoney()
	due := d.now.Add(pause)
	d.add(openWait{Wait{StepRun: row.ID, Kind: WaitRetry, Due: &due, Reason: d.outcome.failure.Message}})
	d.park(d.frames(d.groups))
	return nil
}

// goOn records the try and makes the next call at once, in the same commit.
func (d *decider) goOn(row *StepRun, followed string) error {
	d.outcome.followed = followed
	d.recordTry(AttemptFailed)
	d.addMoney()
	d.outcome.settle, d.outcome.note = nil, ""
	d.step = row
	return d.callAgain()
}

// reserveOn is reserve for a row that may go on to its next models: those that have no
// known price, or may cost more than the step has left, are left out. It moves the row,
// and gives a record of each model that was left out.
func (d *decider) reserveOn(node *pipeline.Node, row *StepRun, input []byte) (*ledger.Hold, []Attempt, *Failure) {
	var skipped []Attempt
	for {
		reservation, failure := d.reserve(node, *row, input)
		if failure == nil || !d.chains(node) {
			return reservation, skipped, failure
		}
		facts := chainFacts{more: row.Chain.Place+1 < len(node.AI().Models)}
		if follows(failure.Class, facts) != nextModel {
			return nil, skipped, noneAsked(node, skipped, *row, failure)
		}
		next := Chain{Place: row.Chain.Place + 1, Since: row.Attempt, Spent: row.Chain.Spent}
		skipped = append(skipped, Attempt{
			Number: row.Attempt, Outcome: AttemptFailed, BeganAt: d.now, EndedAt: d.now, Failure: failure,
			Model: row.Chain.model(node), Place: row.Chain.Place,
			Followed: "It was left out, and the next model is asked: " + next.model(node) + ".",
		})
		row.Attempt++
		row.Chain = next
	}
}

// noneAsked says of a step of several models why none that was left could be asked.
func noneAsked(node *pipeline.Node, skipped []Attempt, row StepRun, last *Failure) *Failure {
	if len(skipped) == 0 {
		return last
	}
	var words strings.Builder
	words.WriteString("None of the models that were left can be asked.")
	for _, one := range skipped {
		fmt.Fprintf(&words, " %s: %s", one.Model, one.Failure.Message)
	}
	fmt.Fprintf(&words, " %s: %s", row.Chain.model(node), last.Message)
	return &Failure{Class: last.Class, Message: words.String(), Detail: last.Detail}
}
