package engine

import (
	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// beginParallel begins all branches: a slice of its own for each but the first, which
// this slice takes on itself.
func (d *decider) beginParallel(node *pipeline.Node, group *frame) error {
	all := d.openGroup(d.newRow(node, group, StepRunning), group)
	var first *frame
	for i, lane := range node.Parallel().Lanes {
		branch := d.openPart(node, all, KindLane, lane.List.Key, i)
		if first == nil {
			first = branch
			continue
		}
		d.fork(branch.row.ID, group.window().id())
	}
	return d.begin(d.listIn(first), 0, first)
}

// endLane ends a branch with what it gave. The first good one wins, where that is asked
// for; otherwise the slice goes to see whether it was the last.
func (d *decider) endLane(lane *frame) error {
	node := d.program.Node(lane.row.StepID)
	all := node.Parallel()
	output, failure, err := d.result(lane, all.Lanes[lane.row.Turn].Result)
	if err != nil {
		return err
	}
	good := false
	if failure == nil {
		good, failure, err = d.judgeLane(all, lane, output)
	}
	if err != nil {
		return err
	}
	if failure != nil {
		return d.failGroups(lane, *failure)
	}
	d.scored(lane, lane.row.Score)
	d.close(lane, StepDone, output, nil)
	if all.WaitFor == pipeline.WaitFirst && good {
		return d.winFirst(node, lane, output)
	}
	d.arriveAt(lane.outer)
	return nil
}

// judgeLane works out whether a branch's result is good, and its score.
func (d *decider) judgeLane(all *pipeline.CompiledParallel, lane *frame, output value) (bool, *Failure, error) {
	if all.Good == nil && all.Score == nil {
		return true, nil, nil
	}
	if err := d.see(at(d.program.Node(lane.row.StepID), lane.outer.outer), refsOf(all.Good), refsOf(all.Score)); err != nil {
		return false, nil, err
	}
	var err error
	if d.vars["item"], err = d.read(output); err != nil {
		return false, nil, err
	}
	good, failure := d.holds(all.Good)
	if failure == nil {
		lane.row.Score, failure = d.score(all.Score)
	}
	return good, failure, nil
}

// winFirst ends the group with its first good branch. The others are cancelled.
func (d *decider) winFirst(node *pipeline.Node, lane *frame, result value) error {
	won, err := d.read(result)
	if err != nil {
		return err
	}
	output, failure := encodeOutput(map[string]any{"results": map[string]any{string(lane.row.List): won}, "combined": won})
	if failure != nil {
		return d.failGroups(lane.outer, *failure)
	}
	d.add(cancelBelow{groups: []StepRunID{lane.outer.id()}})
	d.close(lane.outer, StepDone, value{bytes: output}, nil)
	return d.after(node, lane.outer.outer)
}

// joinLanes ends the group once all branches have ended.
func (d *decider) joinLanes(all *frame) error {
	node := d.program.Node(all.row.StepID)
	branches, ok := d.scope.turns[all.row.ID]
	if !ok {
		return d.ask(want{kind: wantTurns, row: all.row.ID})
	}
	if node.Parallel().WaitFor == pipeline.WaitFirst {
		return d.failGroups(all, noneGood(node, branches))
	}
	output, failure := laneResults(node.Parallel().Combine, branches)
	if failure != nil {
		return d.failGroups(all, *failure)
	}
	d.close(all, StepDone, value{bytes: output}, nil)
	return d.after(node, all.outer)
}

// noneGood tells that no branch gave what was asked for, and why the first did not.
func noneGood(node *pipeline.Node, branches []turn) Failure {
	failure := Failure{Class: ClassNoneGood, StepID: node.ID(), Message: "All branches of “" + node.Step.Name + "” ended, and none gave a good result."}
	for _, branch := range branches {
		if branch.failure != nil {
			failure.Message += " One of them failed: " + branch.failure.Message
			failure.Detail = branch.failure.Detail
			break
		}
	}
	return failure
}

// laneResults are the branches' results by id, and what they come to together.
func laneResults(combine pipeline.Combine, branches []turn) ([]byte, *Failure) {
	values := make([]any, len(branches))
	results := map[string]any{}
	for i, branch := range branches {
		value, err := expr.DecodeJSON(orNull(branch.output))
		if err != nil {
			failure := formulaFailure(err)
			return nil, &failure
		}
		values[i], results[string(branch.list)] = value, value
	}
	combined, failure := combineResults(combine, branches, values)
	if failure != nil {
		return nil, failure
	}
	return encodeOutput(map[string]any{"results": results, "combined": combined})
}

func combineResults(combine pipeline.Combine, branches []turn, values []any) (any, *Failure) {
	switch combine {
	case pipeline.CombineBest:
		best := 0
		for i := range branches {
			if i > 0 && better(branches[i].score, branches[best].score) {
				best = i
			}
		}
		return values[best], nil
	case pipeline.CombineMajority:
		return majority(values)
	}
	return values, nil
}

// majority is the value that more than half of all are equal to; none is null. Numbers
// are equal by their value, whatever their zeros.
func majority(values []any) (any, *Failure) {
	for i := range values {
		votes := 0
		for _, other := range values {
			same, err := expr.Equal(values[i], other)
			if err != nil {
				failure := formulaFailure(err)
				return nil, &failure
			}
			if same {
				votes++
			}
		}
		if 2*votes > len(values) {
			return values[i], nil
		}
	}
	return nil, nil
}
