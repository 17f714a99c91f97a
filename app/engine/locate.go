package engine

import (
	"strconv"

	"tollgate/app/pipeline"
)

// locate finds the row of a step as seen from a position: in the frames around it, or
// inside groups that ended before. What comes later in a loop is that of the round
// before. ok is false where there is none.
func (d *decider) locate(target *pipeline.Node, where position) (place, bool, error) {
	path := pathTo(target)
	before := where.before
	for f := where.in; ; f = f.outer {
		if i := d.inside(f, path); i >= 0 {
			if path[i].Index < before {
				return d.descend(f.id(), path[i:])
			}
			return d.roundBefore(f, path)
		}
		if f == nil {
			return place{}, false, nil
		}
		if i := d.failedIn(f, path); i >= 0 {
			return d.intoFailed(f, path[i:])
		}
		before = d.program.Node(f.row.StepID).Index
	}
}

// failedIn is the place in the path of a step inside the group itself whose failure is
// handled in f; -1 where there is none.
func (d *decider) failedIn(f *frame, path []*pipeline.Node) int {
	if !f.row.Caught() {
		return -1
	}
	group := d.program.Node(f.row.StepID)
	for i, node := range path {
		if node.Parent == group && !node.List.HandlesError() {
			return i
		}
	}
	return -1
}

// intoFailed goes down into what a group did before it failed.
func (d *decider) intoFailed(f *frame, path []*pipeline.Node) (place, bool, error) {
	inner := f.id()
	if path[0].Parent.Kind() != pipeline.KindBranch {
		var ok bool
		var err error
		if inner, ok, err = d.turnOf(&found{id: inner, chosen: f.row.Chosen}, path[0].Parent, path[0].List); err != nil || !ok {
			return place{}, false, err
		}
	}
	return d.descend(inner, path)
}

// pathTo lists the steps around a node, the outermost first, and the node itself last.
func pathTo(node *pipeline.Node) []*pipeline.Node {
	if node == nil {
		return nil
	}
	return append(pathTo(node.Parent), node)
}

// inside is the place in the path of the step that stands right inside a frame; -1 where
// none does.
func (d *decider) inside(f *frame, path []*pipeline.Node) int {
	if f == nil {
		return 0
	}
	if !f.holdsSteps() {
		return -1
	}
	group := d.program.Node(f.row.StepID)
	for i, node := range path {
		if node.Parent == group && node.List == f.key() {
			return i
		}
	}
	return -1
}

// roundBefore finds the row in the round before, where a loop is around that is not
// around a list which is: its items are nobody's from one round to the next.
func (d *decider) roundBefore(f *frame, path []*pipeline.Node) (place, bool, error) {
	round := f.innermost(func(f *frame) bool { return isRound(f) || isItem(f) })
	if round == nil || isItem(round) || round.row.Turn == 0 {
		return place{}, false, nil
	}
	before, err := d.row(place{round.row.Parent, round.row.StepID, round.row.Turn - 1})
	if err != nil || before.id.IsZero() {
		return place{}, false, err
	}
	return d.descend(before.id, path[d.inside(round, path):])
}

// descend goes down from a frame, through groups that have ended, to the last of path.
func (d *decider) descend(frame StepRunID, path []*pipeline.Node) (place, bool, error) {
	here := place{frame: frame, step: path[0].ID()}
	if len(path) == 1 {
		return here, true, nil
	}
	group, err := d.row(here)
	if err != nil || group.id.IsZero() {
		return place{}, false, err
	}
	inner, ok, err := d.turnOf(group, path[0], path[1].List)
	if err != nil || !ok {
		return place{}, false, err
	}
	return d.descend(inner, path[1:])
}

// turnOf is the frame inside a group whose steps can be read behind it: a case that was
// taken, the round that a loop went on with, a branch side by side. Items are read by
// the list's results only.
func (d *decider) turnOf(group *found, node *pipeline.Node, list pipeline.ListKey) (StepRunID, bool, error) {
	if list.HandlesError() {
		return group.id, group.chosen == list, nil
	}
	switch node.Kind() {
	case pipeline.KindBranch:
		return group.id, group.chosen == list, nil
	case pipeline.KindRepeat:
		best, err := strconv.Atoi(string(group.chosen))
		if err != nil {
			return StepRunID{}, false, nil
		}
		return d.turnAt(place{group.id, node.ID(), best})
	case pipeline.KindParallel:
		for i, lane := range node.Parallel().Lanes {
			if lane.List.Key == list {
				return d.turnAt(place{group.id, node.ID(), i})
			}
		}
	}
	return StepRunID{}, false, nil
}

func (d *decider) turnAt(p place) (StepRunID, bool, error) {
	row, err := d.row(p)
	if err != nil {
		return StepRunID{}, false, err
	}
	return row.id, !row.id.IsZero(), nil
}
