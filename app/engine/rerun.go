package engine

import (
	"strconv"

	"tollgate/app/pipeline"
)

// RerunRequest asks for a run to be done again from a step on, as a new run that is linked
// to it. The original is not touched.
type RerunRequest struct {
	Run      RunID
	From     string            // id of the step from which everything is done again
	Newest   bool              // by the pipeline's live version instead of the original's
	Input    []byte            // JSON to start with instead; nil: the original's
	Outputs  map[string][]byte // JSON by the ids of steps that are taken over, to use instead of what they gave
	Suppress []string          // ids of steps that send nothing this time, since the original has sent it
	Fresh    bool              // no step takes an earlier answer that was asked the same
	Item     *ItemEdit         // of the list From: only this item is done again, and the list joined anew
}

// ItemEdit is an item of a list with another value.
type ItemEdit struct {
	Item   StepRunID
	Value  []byte // JSON
	Others bool   // items that had not ended well are done again as well
}

// RerunPlan is what happens when a run is done again from a step on.
type RerunPlan struct {
	Run         Run // the original
	Mark        Mark
	Version     pipeline.Version // that the new run follows
	From        *pipeline.Node
	Reused      []Reused         // steps right before From that are taken over
	Kept        []Reused         // cases of branches that From is inside, and that the new run stays in
	Again       []*pipeline.Node // From and what follows at its level and around it
	Twice       []Twice          // what would go out again
	Items       ItemsPlan        // of a list of which one item is done again
	SavedMicros int64            // what the steps that are taken over cost in the original
	AboutMicros int64            // what the others cost there
	Unknown     []*pipeline.Node // of Again, that the original never came to: their cost is not known
}

// Reused is a step that is taken over.
type Reused struct {
	Node    *pipeline.Node
	Step    StepRun // of the original
	Changed bool    // its settings are others in the version that the new run follows
}

// Twice is a step that has sent something in the original, and would again.
type Twice struct {
	Node  *pipeline.Node
	Times int
	Gave  Digest // where it did so once: its output
}

// ItemsPlan are the items of a list of which one is done again.
type ItemsPlan struct {
	Item   StepRun
	Reused int // that are done and taken over
	Lost   int // that had not ended well
}

// NotRerunnable tells why a run cannot be done again from a step.
type NotRerunnable struct{ Why string }

func (e *NotRerunnable) Error() string { return "no rerun from there: " + e.Why }

// rerunMoment is what a plan for a rerun is made from.
type rerunMoment struct {
	run     Run
	old     *pipeline.Program // that the original followed
	version pipeline.Version  // that the new run follows
	rows    map[place]StepRun // of the original: at the top, and inside the cases around From
	costs   map[StepRunID]int64
	sent    map[string]Twice // by step
	items   ItemsPlan
}

// planRerun says what doing a run again from a step means. It is pure.
func planRerun(m rerunMoment, from string) (RerunPlan, error) {
	plan := RerunPlan{Run: m.run, Mark: rerunMark(m.run, m.version), Version: m.version, From: m.version.Program.Node(from), Items: m.items}
	if plan.From == nil {
		return plan, &NotRerunnable{"Version " + strconv.Itoa(m.version.Number) + " has no such step."}
	}
	for group := plan.From.Parent; group != nil; group = group.Parent {
		if group.Kind() != pipeline.KindBranch {
			return plan, insideOf(group)
		}
	}
	frame := StepRunID{}
	for _, node := range pathTo(plan.From) {
		if err := m.takeOver(&plan, frame, node); err != nil {
			return plan, err
		}
		if node == plan.From {
			break
		}
		around, err := m.stayIn(frame, node, plan.From)
		if err != nil {
			return plan, err
		}
		plan.Kept = append(plan.Kept, around)
		frame = around.Step.ID
	}
	m.cost(&plan)
	m.warn(&plan)
	return plan, nil
}

// rerunMark is another one when the original has gone on, or another version is live.
func rerunMark(run Run, version pipeline.Version) Mark {
	return markOf(run, StepRun{Attempt: version.Number})
}

// takeOver takes over the steps before node in its list, and counts those from it on.
func (m rerunMoment) takeOver(plan *RerunPlan, frame StepRunID, node *pipeline.Node) error {
	if node == plan.From {
		plan.Again = append(plan.Again, node)
	}
	for next := node.Next(); next != nil; next = next.Next() {
		plan.Again = append(plan.Again, next)
	}
	for _, sibling := range before(node) {
		row, found := m.rows[place{frame: frame, step: sibling.ID()}]
		switch {
		case !found || row.State != StepDone && row.State != StepSkipped:
			return &NotRerunnable{"“" + sibling.Step.Name + "” comes before it and has not ended in this run. Choose that step, or an earlier one."}
		case row.Kind != sibling.Kind():
			return &NotRerunnable{"“" + sibling.Step.Name + "” is of another kind in version " + strconv.Itoa(m.version.Number) + ". Choose that step, or an earlier one."}
		}
		plan.Reused = append(plan.Reused, Reused{sibling, row, m.changed(sibling)})
	}
	return nil
}

// before are the steps before a node in its list, in their order.
func before(node *pipeline.Node) []*pipeline.Node {
	var earlier []*pipeline.Node
	for at := node.Previous(); at != nil; at = at.Previous() {
		earlier = append([]*pipeline.Node{at}, earlier...)
	}
	return earlier
}

// changed tells whether a step has other settings than in the version of the original.
func (m rerunMoment) changed(node *pipeline.Node) bool {
	old := m.old.Node(node.ID())
	return old == nil || !pipeline.SameWork(old.Step, node.Step)
}

// insideOf refuses a step inside a group that is no case: a part depends on what its list
// or loop has come to besides.
func insideOf(group *pipeline.Node) error {
	return &NotRerunnable{"It is inside “" + group.Step.Name + "”, whose rounds, items or branches belong together. Choose “" + group.Step.Name + "” itself; of a list, one item can be corrected."}
}

// stayIn is the case around From in which the new run stays, as the original took it.
func (m rerunMoment) stayIn(frame StepRunID, group, from *pipeline.Node) (Reused, error) {
	row, found := m.rows[place{frame: frame, step: group.ID()}]
	inside := from
	for inside.Parent != group {
		inside = inside.Parent
	}
	if !found || row.Chosen != inside.List {
		return Reused{}, &NotRerunnable{"This run did not take the case that it is in. Choose “" + group.Step.Name + "” instead."}
	}
	return Reused{group, row, m.changed(group)}, nil
}

// cost adds up what the original paid for what is taken over, and for what is not.
func (m rerunMoment) cost(plan *RerunPlan) {
	taken := map[StepRunID]bool{}
	for _, reused := range plan.Reused {
		taken[reused.Step.ID] = true
		plan.SavedMicros += m.costs[reused.Step.ID]
	}
	kept := map[StepRunID]bool{}
	for _, around := range plan.Kept {
		kept[around.Step.ID] = true
	}
	begun := map[string]bool{}
	for _, row := range m.rows {
		begun[row.StepID] = true
		if !taken[row.ID] && !kept[row.ID] {
			plan.AboutMicros += m.costs[row.ID]
		}
	}
	for _, node := range plan.Again {
		if !begun[node.ID()] {
			plan.Unknown = append(plan.Unknown, node)
		}
	}
}

// warn lists what would go out again, in the order of the steps.
func (m rerunMoment) warn(plan *RerunPlan) {
	eachNode(plan.Again, func(node *pipeline.Node) {
		if twice, ok := m.sent[node.ID()]; ok && sends(node) {
			twice.Node = node
			plan.Twice = append(plan.Twice, twice)
		}
	})
}

// sends tells a step that reaches people or other systems for good.
func sends(node *pipeline.Node) bool {
	switch node.Kind() {
	case pipeline.KindEmail, pipeline.KindEmit, pipeline.KindChild:
		return true
	case pipeline.KindHTTP:
		return node.HTTP().Sends
	}
	return false
}
