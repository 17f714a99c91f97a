package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

func (d *decider) beginRepeat(node *pipeline.Node, group *frame) error {
	loop := d.openGroup(d.newRow(node, group, StepRunning), group)
	return d.beginRound(node, loop, 0)
}

func (d *decider) beginRound(node *pipeline.Node, loop *frame, turn int) error {
	return d.begin(node.Repeat().Steps, 0, d.openPart(node, loop, KindRound, pipeline.ListSteps, turn))
}

// endRound ends a round with what it gave, and then the loop, or begins the next round.
func (d *decider) endRound(round *frame) error {
	node := d.program.Node(round.row.StepID)
	ended, failure, err := d.judge(node.Repeat(), round)
	if err != nil {
		return err
	}
	if failure != nil {
		return d.failGroups(round, *failure)
	}
	loop := round.outer
	d.scored(round, ended.score)
	d.close(round, StepDone, ended.result, nil)
	loop.row.CostMicros += ended.spent
	if ended.best {
		loop.row.Chosen, loop.row.Score = pipeline.ListKey(strconv.Itoa(round.row.Turn)), ended.score
	}
	return d.goRound(node, loop, round.row.Turn, ended.holds)
}

// endedRound is what a round came to.
type endedRound struct {
	result value
	holds  bool   // the loop's end condition
	score  string // exact decimal; empty where the loop has no score
	best   bool   // no round before was as good
	spent  int64  // micro-USD
}

// judge works out everything that is read behind a round.
func (d *decider) judge(loop *pipeline.CompiledRepeat, round *frame) (endedRound, *Failure, error) {
	var ended endedRound
	spent, err := d.spentIn(round)
	if err != nil {
		return ended, nil, err
	}
	ended.spent = spent
	var failure *Failure
	if ended.result, failure, err = d.result(round, loop.Result); failure != nil || err != nil {
		return ended, failure, err
	}
	if err := d.see(d.behind(round), loop.Until.Refs(), refsOf(loop.Score)); err != nil {
		return ended, nil, err
	}
	if ended.holds, failure = d.holds(loop.Until); failure != nil {
		return ended, failure, nil
	}
	if ended.score, failure = d.score(loop.Score); failure != nil {
		return ended, failure, nil
	}
	ended.best = ended.holds || round.outer.row.Chosen == "" || better(ended.score, round.outer.row.Score)
	return ended, nil, nil
}

func refsOf(formula *expr.Formula) []expr.Ref {
	if formula == nil {
		return nil
	}
	return formula.Refs()
}

// scored writes down how good a round or branch is, where that is known.
func (d *decider) scored(part *frame, score string) {
	if part.row.Score = score; score != "" {
		d.note(part)
	}
}

// score works out how good something is; without a formula it is not known.
func (d *decider) score(formula *expr.Formula) (string, *Failure) {
	if formula == nil {
		return "", nil
	}
	result, err := formula.Eval(context.Background(), d.vars)
	if err != nil {
		failure := formulaFailure(err)
		failure.Message = "The score could not be worked out: " + failure.Message
		return "", &failure
	}
	number, ok := result.(json.Number)
	if ok {
		_, err = expr.Compare(number, number)
	}
	if !ok || err != nil {
		return "", &Failure{Class: ClassFormula, Message: "The score is not a number that can be compared. Choose one that is, such as a mark from 1 to 10."}
	}
	return string(number), nil
}

// better tells whether a score is above another. Where there are none, the later one is
// taken to be better.
func better(score, than string) bool {
	if score == "" || than == "" {
		return true
	}
	order, err := expr.Compare(json.Number(score), json.Number(than))
	return err == nil && order > 0
}

// spentIn is what the calls inside a round have cost, the one that has just ended
// included.
func (d *decider) spentIn(round *frame) (int64, error) {
	if d.fresh[round.row.ID] {
		return 0, nil // nothing was called in it
	}
	spent, ok := d.scope.spent[round.row.ID]
	if !ok {
		return 0, d.ask(want{kind: wantSpent, row: round.row.ID})
	}
	return spent + d.outcome.cost, nil
}

// goRound ends the loop, or begins its next round.
func (d *decider) goRound(node *pipeline.Node, loop *frame, turn int, holds bool) error {
	limits, reason := node.Repeat(), pipeline.EndUntil
	if !holds {
		reason = d.limit(limits, loop.row, turn+1)
	}
	if reason == "" {
		d.note(loop)
		return d.beginRound(node, loop, turn+1)
	}
	if reason == pipeline.EndUntil || limits.AtLimit == pipeline.LimitBest {
		return d.endLoop(node, loop, turn+1, reason)
	}
	if limits.AtLimit == pipeline.LimitAsk {
		return d.askAtLimit(node, loop, turn+1, reason)
	}
	d.note(loop)
	return d.failGroups(loop, limitFailure(node, turn+1, reason, "Its end condition never held."))
}

// limit is the limit that a loop has reached after so many rounds; empty where none is.
func (d *decider) limit(loop *pipeline.CompiledRepeat, row StepRun, rounds int) string {
	switch {
	case rounds >= loop.MaxRounds:
		return pipeline.EndRounds
	case row.CostMicros >= loop.MaxCost:
		return pipeline.EndCost
	case d.now.Sub(row.CreatedAt) >= loop.MaxTime:
		return pipeline.EndTime
	}
	return ""
}

// endLoop goes on behind the loop with its best round.
func (d *decider) endLoop(node *pipeline.Node, loop *frame, rounds int, reason string) error {
	best, err := d.bestRound(loop.row)
	if err != nil {
		return err
	}
	d.note(loop)
	output, failure := loopOutput(rounds, reason, best)
	if failure != nil {
		return d.failGroups(loop, *failure)
	}
	d.close(loop, StepDone, value{bytes: output}, nil)
	return d.after(node, loop.outer)
}

// bestRound is the result of the round that a loop goes on with.
func (d *decider) bestRound(loop StepRun) (any, error) {
	turn, err := strconv.Atoi(string(loop.Chosen))
	if err != nil {
		return nil, nil // a loop ends behind a round, which is then its best
	}
	round, err := d.row(place{loop.ID, loop.StepID, turn})
	if err != nil {
		return nil, err
	}
	return d.read(round.given())
}

func loopOutput(rounds int, reason string, best any) ([]byte, *Failure) {
	return encodeOutput(map[string]any{
		"rounds": json.Number(strconv.Itoa(rounds)), "reason": reason, "best": best,
	})
}

// limitWords name the limit that a loop has reached.
func limitWords(loop *pipeline.CompiledRepeat, rounds int, reason string) string {
	switch reason {
	case pipeline.EndCost:
		return fmt.Sprintf("its limit on money after %s", roundWords(rounds))
	case pipeline.EndTime:
		return fmt.Sprintf("its limit of %s after %s", pipeline.Duration(loop.MaxTime), roundWords(rounds))
	}
	return "its limit of " + roundWords(rounds)
}

func roundWords(rounds int) string {
	if rounds == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", rounds)
}

func limitFailure(node *pipeline.Node, rounds int, reason, why string) Failure {
	return Failure{Class: ClassLimit, StepID: node.ID(), Message: fmt.Sprintf("“%s” reached %s. %s",
		node.Step.Name, limitWords(node.Repeat(), rounds, reason), why)}
}
