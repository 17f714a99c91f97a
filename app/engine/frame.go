package engine

import (
	"tollgate/app/pipeline"
)

// frame is a row around the position that holds others: that of a group, or of one of
// its parts. A frame that this same decision began has its change still in the list, and
// is ended there instead of by a second change.
type frame struct {
	row    StepRun
	insert int // index of its insertStep or catchStep in changes; -1 for a row that exists
	outer  *frame
}

// frames links the open groups, innermost first, into frames.
func (d *decider) frames(groups []StepRun) *frame {
	var outer *frame
	for i := len(groups) - 1; i >= 0; i-- {
		outer = &frame{row: groups[i], insert: -1, outer: outer}
	}
	return outer
}

// rows are the groups, innermost first.
func (f *frame) rows() []StepRun {
	var rows []StepRun
	for ; f != nil; f = f.outer {
		rows = append(rows, f.row)
	}
	return rows
}

// id is the row's; zero at the top.
func (f *frame) id() StepRunID {
	if f == nil {
		return StepRunID{}
	}
	return f.row.ID
}

// forks tells a group whose parts may be open at the same time.
func forks(kind pipeline.Kind) bool {
	return kind == pipeline.KindEach || kind == pipeline.KindParallel
}

// holdsSteps tells whether steps stand right inside, as they do in a branch, in a part,
// and where a failure is handled.
func (f *frame) holdsSteps() bool {
	return f.row.Kind == pipeline.KindBranch || IsPart(f.row.Kind) || f.row.Caught()
}

// key names the list whose steps stand right inside.
func (f *frame) key() pipeline.ListKey {
	if IsPart(f.row.Kind) {
		return f.row.List
	}
	return f.row.Chosen
}

// innermost is the first frame from here outwards that fits; nil where none does.
func (f *frame) innermost(fits func(*frame) bool) *frame {
	for ; f != nil; f = f.outer {
		if fits(f) {
			return f
		}
	}
	return nil
}

// turn counts the item or round around, from 0; outside of both it is 0.
func (f *frame) turn() int {
	if part := f.innermost(func(f *frame) bool { return isItem(f) || isRound(f) }); part != nil {
		return part.row.Turn
	}
	return 0
}

// window is the innermost list around, whose "at once" a slice inside counts towards.
func (f *frame) window() *frame {
	return f.innermost(func(f *frame) bool { return f.row.isWindow() })
}

// isWindow tells a list that counts the slices inside it. One whose failure is handled has
// no items left to count them for.
func (s *StepRun) isWindow() bool { return s.Kind == pipeline.KindEach && !s.Caught() }

// listIn is the list of steps that stand right inside a frame; those of the document at
// the top.
func (d *decider) listIn(f *frame) []*pipeline.Node {
	if f == nil {
		return d.program.Roots()
	}
	return d.program.Node(f.row.StepID).Child(f.key()).Nodes
}

// newRow is the row of a step that begins inside group.
func (d *decider) newRow(node *pipeline.Node, group *frame, state StepState) StepRun {
	row := StepRun{
		ID: d.newID(), Parent: group.id(), StepID: node.ID(), Kind: node.Kind(), List: node.List,
		State: state, Attempt: 1, Fence: d.fence, Slice: d.slice, BegunAt: d.now, CreatedAt: d.now,
	}
	if d.outcome.kind == renewed && row.Parent == d.step.Parent && row.StepID == d.step.StepID {
		row.ID, row.Attempt, row.EarlierTries, row.Note = d.step.ID, d.step.Attempt, d.step.EarlierTries, d.step.Note
	}
	if !state.Open() {
		row.EndedAt, row.Slice = &d.now, SliceID{}
	}
	return row
}

// openGroup begins the row of a group or of a part of it. A group belongs to all slices
// inside it.
func (d *decider) openGroup(row StepRun, outer *frame) *frame {
	row.Slice, row.Fence = SliceID{}, 0
	d.add(insertStep{row: row})
	d.fresh[row.ID] = true
	return &frame{row: row, insert: len(d.changes) - 1, outer: outer}
}

// openPart begins a round of a loop, or a branch side by side with others.
func (d *decider) openPart(node *pipeline.Node, group *frame, kind pipeline.Kind, list pipeline.ListKey, turn int) *frame {
	row := d.newRow(node, group, StepRunning)
	row.Kind, row.List, row.Turn = kind, list, turn
	return d.openGroup(row, group)
}

// close ends a frame with what it gave, or with a failure.
func (d *decider) close(f *frame, state StepState, output value, failure *Failure) {
	f.row.State, f.row.Failure = state, failure
	if f.insert >= 0 {
		d.endBegun(f, output)
	} else {
		d.add(moveStep{id: f.row.ID, from: StepRunning, to: state, attempt: f.row.Attempt,
			output: output.bytes, kept: output.digest, failure: failure, joins: f.row.forks()})
	}
	d.know(place{f.outer.id(), f.row.StepID, f.row.Turn}, foundRow(f.row, output))
}

// endBegun lets a frame that this decision began end at once.
func (d *decider) endBegun(f *frame, output value) {
	switch begun := d.changes[f.insert].(type) {
	case insertStep:
		begun.row = f.row
		begun.row.EndedAt, begun.row.Output, begun.output = &d.now, output.digest, output.bytes
		d.changes[f.insert] = begun
	case catchStep:
		begun.to, begun.failure, begun.output, begun.kept = f.row.State, f.row.Failure, output.bytes, output.digest
		d.changes[f.insert] = begun
	}
}

// note writes down at a group, or a part, what it has come to so far.
func (d *decider) note(f *frame) {
	if f.insert < 0 {
		entry := noteGroup{id: f.row.ID, chosen: f.row.Chosen, score: f.row.Score, cost: f.row.CostMicros}
		for i, before := range d.changes {
			if noted, ok := before.(noteGroup); ok && noted.id == entry.id {
				d.changes[i] = entry // one statement changes a row once
				return
			}
		}
		d.add(entry)
		return
	}
	begun := d.changes[f.insert].(insertStep)
	begun.row = f.row
	d.changes[f.insert] = begun
}
