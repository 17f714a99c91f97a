package engine

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// goOn lets a slice that stands somewhere do its next thing: look around at its group,
// or decide. It reports false where it makes a call instead.
func (s *simulation) goOn(slice *simSlice, barred bars) bool {
	s.t.Helper()
	if slice.next != nil {
		return false
	}
	s.current, s.next = slice, nil
	if slice.outcome.kind == arrived && slice.at.Caught() {
		s.end(slice.id)
		return true
	}
	if slice.outcome.kind == arrived && !slice.looked && slice.at.forks() {
		s.lookAround(slice)
		return true
	}
	if !s.decide(slice.at, slice.outcome, barred) {
		slice.looked = false // another was faster, so it looks again
		require.Equal(s.t, arrived, slice.outcome.kind, "a guard refused what nobody else had changed")
	}
	return true
}

// lookAround is what arrive does with the database.
func (s *simulation) lookAround(slice *simSlice) {
	s.t.Helper()
	group := slice.at
	if group.State != StepRunning {
		if outer := s.windowAround(group); outer != nil && outer.ID == slice.window {
			slice.at = outer
			return
		}
		s.end(slice.id)
		return
	}
	slice.looked = true
	if group.Kind == pipeline.KindEach && s.takeOn(slice) || !s.openIn(group) {
		return
	}
	outer := s.windowAround(group)
	if group.Kind == pipeline.KindEach && s.inWindow(group.ID) > 1 || outer == nil {
		s.end(slice.id)
		return
	}
	slice.at, slice.window, slice.looked = outer, outer.ID, false
}

// takeOn takes on items of a list; it reports true where the slice has something to do,
// or is done.
func (s *simulation) takeOn(slice *simSlice) bool {
	list := s.program.Node(slice.at.StepID).Each()
	slice.outcome.lost = s.lost(slice.at.ID)
	switch {
	case slice.outcome.lost.count > list.MaxFailed || len(slice.block) > 0:
		return true
	case s.inWindow(slice.at.ID) > list.AtOnce:
		s.end(slice.id)
		return true
	}
	for n, i := s.block(), 0; i < len(s.steps) && n > 0; i++ {
		if row := s.steps[i]; row.Parent == slice.at.ID && row.State == StepQueued && row.Slice.IsZero() {
			row.Slice = slice.id
			slice.block = append(slice.block, *row)
			n--
		}
	}
	if len(slice.block) > 0 && s.inWindow(slice.at.ID) < list.AtOnce {
		s.slices = append(s.slices, &simSlice{id: SliceID(s.newID()), at: slice.at, window: slice.at.ID, outcome: outcome{kind: arrived}})
	}
	return len(slice.block) > 0
}

func (s *simulation) lost(list StepRunID) lostItems {
	var lost lostItems
	for _, row := range s.steps {
		if row.Parent != list || row.State != StepFailed {
			continue
		}
		if lost.count++; lost.count == 1 {
			lost.first, lost.why = row.Turn, row.Failure
		}
	}
	return lost
}

func (s *simulation) inWindow(list StepRunID) int {
	n := 0
	for _, one := range s.slices {
		if one.window == list {
			n++
		}
	}
	return n
}

func (s *simulation) openIn(group *StepRun) bool {
	return slices.ContainsFunc(s.steps, func(row *StepRun) bool { return row.Parent == group.ID && row.State.Open() })
}

func (s *simulation) windowAround(row *StepRun) *StepRun {
	for row = s.byID[row.Parent]; row != nil; row = s.byID[row.Parent] {
		if row.isWindow() {
			return row
		}
	}
	return nil
}

// settleDown lets every slice go on until each makes a call.
func (s *simulation) settleDown() {
	s.t.Helper()
	for moved := true; moved && s.ended == nil; {
		moved = false
		for _, slice := range slices.Clone(s.slices) {
			for s.ended == nil && s.slice(slice.id) != nil && s.goOn(slice, bars{}) {
				moved = true
			}
		}
	}
}

// wakeAt sends a slice on its way from a waiting step run.
func (s *simulation) wakeAt(row *StepRun, out outcome) *simSlice {
	s.t.Helper()
	require.Equal(s.t, StepWaiting, row.State)
	delete(s.waits, row.ID)
	woken := &simSlice{id: SliceID(s.newID()), at: row, outcome: out}
	if window := s.windowAround(row); window != nil {
		woken.window = window.ID
	}
	if out.output != nil {
		s.values[DigestOf(out.output)] = out.output
	}
	row.Slice, row.Fence = woken.id, 1
	s.slices = append(s.slices, woken)
	s.current, s.next = woken, nil
	return woken
}

func (s *simulation) describe(entry change) string {
	switch c := entry.(type) {
	case insertStep:
		return fmt.Sprintf("  begin %s as %s%s", s.name(&c.row), c.row.State, chosen(c.row))
	case insertItems:
		return fmt.Sprintf("  queue %d items of %s", len(c.ids), c.group.StepID)
	case beginItem:
		return fmt.Sprintf("  take on %s", s.name(s.byID[c.id]))
	case moveStep:
		row := s.byID[c.id]
		line := fmt.Sprintf("  move %s from %s to %s, try %d", s.name(row), c.from, c.to, c.attempt)
		if slices.Contains(groups, string(row.Kind)) && row.Kind != pipeline.KindBranch && c.output != nil {
			line += ", gives " + string(c.output)
		}
		return line
	case catchStep:
		return fmt.Sprintf("  handle the failure of %s by %s, now %s: %s", s.name(s.byID[c.id]), c.chosen, c.to, c.failure.Message)
	case noteGroup:
		return fmt.Sprintf("  note at %s: chosen %q, score %q, cost %d", s.name(s.byID[c.id]), c.chosen, c.score, c.cost)
	case addAttempt:
		return fmt.Sprintf("  record try %d of %s as %s", c.attempt.Number, s.stepOf(c.step), c.attempt.Outcome)
	case openWait:
		line := fmt.Sprintf("  wait with %s for %s", s.stepOf(c.wait.StepRun), c.wait.Kind)
		if c.wait.EventName != "" {
			line += fmt.Sprintf(" %q %q", c.wait.EventName, c.wait.EventKey)
		}
		if c.wait.Due != nil {
			line += " until " + c.wait.Due.Format("15:04:05")
		}
		return line
	case openReview:
		return fmt.Sprintf("  ask %q", c.draft.question)
	case hold:
		return fmt.Sprintf("  hold %v", c.hold.Amount)
	case settle:
		if c.settlement != nil {
			return fmt.Sprintf("  settle, unknown: %v", c.settlement.Unknown)
		}
		return fmt.Sprintf("  end money, abandoned: %v", c.abandoned != nil)
	case endRun:
		if c.failure != nil {
			return fmt.Sprintf("  end the run as %s at %q: %s", c.state, c.failure.StepID, c.failure.Class)
		}
		return fmt.Sprintf("  end the run as %s with %s", c.state, c.result)
	}
	return s.describeSlice(entry)
}

func (s *simulation) describeSlice(entry change) string {
	switch c := entry.(type) {
	case startChild:
		return fmt.Sprintf("  start a run for %s with %s, waits: %v", s.stepOf(c.step), c.input, c.waits)
	case sendEvent:
		return fmt.Sprintf("  send the event %q %q with %s", c.event.Name, c.event.Key, c.event.Data)
	case fork:
		return fmt.Sprintf("  fork at %s", s.stepOf(c.at))
	case moveSlice:
		if c.to.IsZero() {
			return "  count towards " + s.stepOf(c.window)
		}
		return "  stand at " + s.stepOf(c.to)
	case cancelBelow:
		if c.all {
			return "  cancel all else"
		}
		return fmt.Sprintf("  cancel below %s", s.stepOf(c.groups[len(c.groups)-1]))
	case endWindow:
		return "  end the slices of " + s.stepOf(c.list)
	case releaseItems:
		return "  give items back"
	}
	return fmt.Sprintf("  %T", entry)
}

// name is the step, with its turn where it is one of a group.
func (s *simulation) name(row *StepRun) string {
	if row == nil {
		return "the run"
	}
	if parent := s.byID[row.Parent]; parent != nil && parent.StepID == row.StepID {
		return fmt.Sprintf("%s#%d", row.StepID, row.Turn)
	}
	return row.StepID
}

func (s *simulation) stepOf(id StepRunID) string {
	if row := s.byID[id]; row != nil {
		return s.name(row)
	}
	return "nothing"
}

func chosen(row StepRun) string {
	if row.Chosen == "" {
		return ""
	}
	return ", case " + string(row.Chosen)
}
