package engine

import (
	"slices"

	"tollgate/app/pipeline"
)

// fallen is a row of a failed run that failed, or was stopped with it, and so stands
// inside nothing that ended well.
type fallen struct {
	row   StepRun
	holds bool      // anything at all is inside
	inner StepRunID // what ended well inside it last; zero where nothing did
}

// revival is what becomes of a row, and of its branch, when its run goes on.
type revival struct {
	row    StepRun
	to     StepState
	at     StepRunID // where a slice goes on; zero: what is inside goes on by itself
	window StepRunID // the list that the slice counts towards
	anew   bool      // the row's own slice does the step again: from its begin where it is queued
}

// reopening is how a failed run goes on.
type reopening struct {
	revivals []revival
	behind   StepRunID   // where it goes on in which nothing fell; zero: at its beginning
	whole    bool        // nothing fell; behind counts
	lists    []StepRunID // whose items that nobody had begun are to be taken on again
}

// reopen says what becomes of the fallen rows, outermost first. A step that failed or was
// stopped begins anew in its own row; a group goes on with what is inside it. The row
// that is spared, where one is, is over, and with it what is inside.
func reopen(rows []fallen, spared StepRunID) (reopening, error) {
	r := reviver{within: map[StepRunID]*fallen{}, has: map[StepRunID]bool{}}
	for i := range rows {
		if parent := rows[i].row.Parent; !parent.IsZero() && (r.within[parent] == nil || parent == spared) {
			continue // inside what is spared
		}
		r.within[rows[i].row.ID] = &rows[i]
		r.has[rows[i].row.Parent] = true
		r.order = append(r.order, &rows[i])
	}
	for _, f := range r.order {
		if err := r.revive(f, spared); err != nil {
			return reopening{}, err
		}
	}
	return r.reopening, nil
}

// reviver goes through the fallen rows.
type reviver struct {
	reopening
	order  []*fallen
	within map[StepRunID]*fallen
	has    map[StepRunID]bool // rows with fallen ones right inside
}

func (r *reviver) revive(f *fallen, spared StepRunID) error {
	one := revival{row: f.row, to: StepRunning, window: r.windowAround(f)}
	switch {
	case f.row.ID == spared:
		one.to, one.at = StepSkipped, f.row.ID
	case f.row.Caught() && (r.has[f.row.ID] || !f.inner.IsZero()):
		if !r.has[f.row.ID] {
			one.at = f.inner
		}
	case f.row.Kind == pipeline.KindEach && f.holds:
		one.at, one.window = f.row.ID, f.row.ID
		r.lists = append(r.lists, f.row.ID)
	case r.has[f.row.ID]:
	case f.row.Kind == pipeline.KindRepeat && f.holds:
		return &NotRetryable{Step: f.row, Why: "It has made all the rounds it may, and would end the same way again."}
	case f.row.Kind == pipeline.KindParallel && f.holds, goesOnItself(*f):
		one.at = f.row.ID
	case !f.inner.IsZero():
		one.at = f.inner
	case f.row.Kind == pipeline.KindHTTP && f.row.State == StepCancelled && !f.row.Input.IsZero():
		one.at, one.anew = f.row.ID, true // it may have arrived: taken over, as after a worker that died
	default:
		one.to, one.at, one.anew = StepQueued, f.row.ID, true
	}
	r.revivals = append(r.revivals, one)
	return nil
}

// goesOnItself tells a part or a case in which nothing has begun.
func goesOnItself(f fallen) bool {
	return !f.holds && (IsPart(f.row.Kind) || f.row.Kind == pipeline.KindBranch && f.row.Chosen != "")
}

// windowAround is the innermost list around a row.
func (r *reviver) windowAround(f *fallen) StepRunID {
	for outer := r.within[f.row.Parent]; outer != nil; outer = r.within[outer.row.Parent] {
		if outer.row.isWindow() {
			return outer.row.ID
		}
	}
	return StepRunID{}
}

// again are the steps that are done again, each with how often, those that failed first.
func (r reopening) again(program *pipeline.Program) []Redone {
	var all []Redone
	for _, one := range r.revivals {
		node := program.Node(one.row.StepID)
		if !one.anew || node == nil {
			continue
		}
		at := slices.IndexFunc(all, func(known Redone) bool { return known.Node == node })
		if at < 0 {
			all, at = append(all, Redone{Node: node}), len(all)
		}
		all[at].Times++
		all[at].SpentMicros += one.row.CostMicros
		if one.row.State == StepFailed {
			all[at].Failed++
		}
	}
	slices.SortStableFunc(all, func(a, b Redone) int { return min(b.Failed, 1) - min(a.Failed, 1) })
	return all
}

// Redone is a step that is done again, as often as it stands in a run: once, or for each
// of several items.
type Redone struct {
	Node        *pipeline.Node
	Times       int
	Failed      int   // of them, that had failed; the others were stopped with them
	SpentMicros int64 // what their tries have cost so far
}

// NotRetryable tells that a step would fail the same way if it were tried again.
type NotRetryable struct {
	Step StepRun
	Why  string // in words for people
}

func (e *NotRetryable) Error() string { return "the step would fail again: " + e.Why }
