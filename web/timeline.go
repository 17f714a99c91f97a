package web

import (
	"fmt"
	"slices"
	"time"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// passage is one row of a run's timeline: what became of a step of its program, or of a
// round or a branch of a group, and how its time went.
type passage struct {
	Node   *pipeline.Node
	Lane   *pipeline.ChildList // the row is this branch side by side, and no step
	Round  int                 // the row is this round, from 1, and no step
	Deeper int                 // rounds and branches around it
	Step   *engine.StepRun     // nil before it begins
	Size   *engine.GroupSize   // of a list
	Inner  ui.Status           // of a group: how what is in it stands
	Shut   bool                // what is in it has rows that are not shown here
	Wait   *engine.Wait        // the open one
	Waits  []engine.Wait
	Tries  []engine.Attempt
	Lost   bool // the run ended, or took another way, before it got here
}

// isPart tells whether the row is a round or a branch.
func (p passage) isPart() bool { return p.Lane != nil || p.Round > 0 }

// name is what the row is called.
func (p passage) name() string {
	switch {
	case p.Lane != nil && p.Lane.Name != "":
		return p.Lane.Name
	case p.Lane != nil:
		return string(p.Lane.Key)
	case p.Round > 0:
		return "Round " + ui.Count(int64(p.Round))
	}
	return p.Node.Step.Name
}

// number is that of a step; rounds and branches have none.
func (p passage) number() string {
	if p.isPart() {
		return ""
	}
	return p.Node.Number
}

// id is the row's own on the page. It stays the same while the run goes on.
func (p passage) id() string {
	switch {
	case p.Lane != nil:
		return "lane-" + p.Node.ID() + "-" + string(p.Lane.Key)
	case p.Round > 0:
		return fmt.Sprintf("round-%s-%d", p.Node.ID(), p.Round)
	}
	return "step-" + p.Node.ID()
}

// walker draws the rows of a view in reading order.
type walker struct {
	view    engine.View
	history engine.History
	inside  map[engine.StepRunID][]*engine.StepRun // rows by what they stand in
	all     []passage
}

// passages are the steps of a view in reading order, without those of ways that were
// not taken. Lists are one row; of loops and branches side by side the rounds and
// branches are rows, too.
func passages(view engine.View, history engine.History) []passage {
	w := walker{view: view, history: history, inside: map[engine.StepRunID][]*engine.StepRun{}}
	for i := range view.Steps {
		row := &view.Steps[i]
		w.inside[row.Parent] = append(w.inside[row.Parent], row)
	}
	var top engine.StepRunID
	if view.Part != nil {
		top = view.Part.ID
	}
	w.list(view.Nodes(), w.inside[top], 0)
	return w.all
}

// list draws the steps of one list, of which rows have begun.
func (w *walker) list(nodes []*pipeline.Node, rows []*engine.StepRun, deeper int) {
	for _, node := range nodes {
		p := w.passage(node, rowOf(rows, func(row *engine.StepRun) bool { return row.StepID == node.ID() && !engine.IsPart(row.Kind) }))
		p.Deeper = deeper
		at := len(w.all)
		w.all = append(w.all, p)
		w.into(p, deeper)
		w.all[at].Inner = innerStatus(w.all[at+1:])
	}
}

// rowOf finds a row; nil where it has not begun.
func rowOf(rows []*engine.StepRun, is func(*engine.StepRun) bool) *engine.StepRun {
	if i := slices.IndexFunc(rows, is); i >= 0 {
		return rows[i]
	}
	return nil
}

func (w *walker) passage(node *pipeline.Node, row *engine.StepRun) passage {
	p := passage{Node: node, Step: row, Lost: w.over()}
	if row == nil {
		return p
	}
	p.Waits, p.Tries = w.history.Waits[row.ID], w.history.Attempts[row.ID]
	if wait, open := w.view.Waits[row.ID]; open {
		p.Wait = &wait
	}
	if size, counted := w.view.Groups[row.ID]; counted {
		p.Size = &size
	}
	p.Shut = node.Kind() == pipeline.KindEach
	return p
}

// over tells whether nothing more will begin here.
func (w *walker) over() bool {
	return w.view.Run.State.Final() || w.view.Part != nil && !w.view.Part.State.Open()
}

// into draws what is inside a step.
func (w *walker) into(p passage, deeper int) {
	var rows []*engine.StepRun
	if p.Step != nil {
		rows = w.inside[p.Step.ID]
	}
	switch p.Node.Kind() {
	case pipeline.KindEach: // its items have a page of their own
	case pipeline.KindParallel:
		w.lanes(p, rows, deeper+1)
	case pipeline.KindRepeat:
		w.rounds(p, rows, deeper+1)
	}
	for _, list := range p.Node.Lists {
		if p.takes(list, rows) {
			w.list(list.Nodes, rows, deeper)
		}
	}
}

// lanes draws branches side by side, each with its steps.
func (w *walker) lanes(group passage, rows []*engine.StepRun, deeper int) {
	for i := range group.Node.Lists {
		lane := &group.Node.Lists[i]
		p := w.passage(group.Node, rowOf(rows, func(row *engine.StepRun) bool { return row.Kind == engine.KindLane && row.List == lane.Key }))
		p.Lane, p.Deeper, p.Shut = lane, deeper, false
		if group.Step != nil && !group.Step.State.Open() {
			p.Lost = true
		}
		w.part(p, lane.Nodes, deeper)
	}
}

// rounds draws those rounds of a loop that the view has. One that has not begun shows
// its steps, so that a reader sees what will come.
func (w *walker) rounds(group passage, rows []*engine.StepRun, deeper int) {
	steps := group.Node.Child(pipeline.ListSteps)
	if group.Step == nil || steps == nil {
		if steps != nil {
			w.list(steps.Nodes, nil, deeper-1)
		}
		return
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row *engine.StepRun) bool { return row.Kind != engine.KindRound })
	slices.SortFunc(rows, func(a, b *engine.StepRun) int { return a.Turn - b.Turn })
	for i, row := range rows {
		p := w.passage(group.Node, row)
		p.Round, p.Deeper, p.Shut = row.Turn+1, deeper, i < len(rows)-1
		if p.Shut {
			w.all = append(w.all, p)
			continue
		}
		w.part(p, steps.Nodes, deeper)
	}
}

// part draws a round or branch and the steps in it.
func (w *walker) part(p passage, nodes []*pipeline.Node, deeper int) {
	at := len(w.all)
	w.all = append(w.all, p)
	var rows []*engine.StepRun
	if p.Step != nil {
		rows = w.inside[p.Step.ID]
	}
	if p.Step != nil || !p.Lost {
		w.list(nodes, rows, deeper)
	}
	w.all[at].Inner = innerStatus(w.all[at+1:])
}

// innerStatus is how open rows stand together: at work if one works, else by the most
// urgent thing that one waits for.
func innerStatus(inner []passage) ui.Status {
	var found ui.Status
	for _, p := range inner {
		if p.Step == nil || !p.Step.State.Open() || p.isGroup() && p.Size == nil {
			continue
		}
		status := p.status()
		if status == ui.Running {
			return ui.Running
		}
		if found == "" || slices.Index(waitOrder, status) < slices.Index(waitOrder, found) {
			found = status
		}
	}
	return found
}

// waitOrder is what a group waits for, most urgent first.
var waitOrder = []ui.Status{ui.Cap, ui.Person, ui.Retrying, ui.Waiting, ui.Paused, ui.Queued}

// takes tells whether a list of steps inside the step has run, or may still run.
func (p passage) takes(list pipeline.ChildList, rows []*engine.StepRun) bool {
	for _, row := range rows {
		if row.List == list.Key && !engine.IsPart(row.Kind) {
			return true
		}
	}
	if list.Key == pipeline.ListSteps || p.Node.Kind() == pipeline.KindParallel {
		return false // drawn as rounds, branches or counts
	}
	isCase := p.Node.Branch() != nil && slices.ContainsFunc(p.Node.Branch().Cases, func(c pipeline.ChildList) bool { return c.Key == list.Key })
	switch {
	case !isCase:
		return false // what happens on an error is drawn once it happens
	case p.Step == nil:
		return !p.Lost
	}
	return p.Step.Chosen == list.Key && p.Step.State.Open()
}

// badge is how the row stands.
func (p passage) badge() ui.Badge {
	if p.Step == nil {
		if p.Lost {
			return ui.Badge{Status: ui.Skipped, Words: "Not reached"}
		}
		return ui.Badge{Status: ui.Queued}
	}
	if p.Wait != nil && p.Wait.Kind == engine.WaitRetry && !p.Wait.Uncalled {
		return ui.Badge{Status: ui.Retrying, Words: news{Line: engine.Line{Standing: engine.StandingRetrying, Attempt: p.Step.Attempt}, Tries: engine.MaxTries(p.Node)}.badge().Words}
	}
	if !p.Step.ReusedFrom.IsZero() && p.Step.State == engine.StepDone {
		return ui.Badge{Status: ui.Done, Words: "Reused"}
	}
	if p.caught() && p.Step.State == engine.StepDone {
		return ui.Badge{Status: ui.Done, Words: "Failed, handled"}
	}
	return ui.Badge{Status: p.status()}
}

// status is that of the open wait, since "waiting" alone would hide for what.
func (p passage) status() ui.Status {
	switch {
	case p.Wait != nil:
		return statusOfWait(*p.Wait)
	case p.Size != nil && p.Step.State.Open():
		return sizeStatus(*p.Size)
	case p.Inner != "" && p.Step.State.Open():
		return p.Inner
	case p.Step.State == engine.StepWaiting:
		return ui.Queued // what it waited for is here
	}
	return statusOfState(p.Step.State)
}

func statusOfState(state engine.StepState) ui.Status {
	return map[engine.StepState]ui.Status{
		engine.StepQueued: ui.Queued, engine.StepRunning: ui.Running, engine.StepWaiting: ui.Waiting, engine.StepDone: ui.Done,
		engine.StepFailed: ui.Failed, engine.StepSkipped: ui.Skipped, engine.StepCancelled: ui.Cancelled,
	}[state]
}

func statusOfWait(wait engine.Wait) ui.Status {
	if wait.Uncalled {
		return ui.Waiting
	}
	switch wait.Kind {
	case engine.WaitReview:
		return ui.Person
	case engine.WaitCap:
		return ui.Cap
	case engine.WaitRetry:
		return ui.Retrying
	case engine.WaitPause:
		return ui.Paused
	}
	return ui.Waiting
}

// stretches are how the step's time went, one after the other.
func (p passage) stretches() []ui.Stretch {
	if p.Step == nil {
		return nil
	}
	var out []ui.Stretch
	for _, wait := range p.Waits {
		stretch := ui.Stretch{From: wait.OpenedAt, As: statusOfWait(wait)}
		if wait.ClosedAt != nil {
			stretch.To, stretch.Over = *wait.ClosedAt, true
		}
		out = append(out, stretch)
	}
	for _, try := range p.Tries {
		out = append(out, ui.Stretch{From: try.BeganAt, To: try.EndedAt, As: p.statusOfTry(try), Over: true})
	}
	slices.SortStableFunc(out, func(a, b ui.Stretch) int { return a.From.Compare(b.From) })
	return append(out, p.rest(out)...)
}

// statusOfTry draws a try that was followed by another as a part of retrying.
func (p passage) statusOfTry(try engine.Attempt) ui.Status {
	switch {
	case try.Outcome == engine.AttemptDone:
		return ui.Done
	case try.Number < p.Step.Attempt || p.Step.State.Open():
		return ui.Retrying
	case try.Outcome == engine.AttemptCancelled:
		return ui.Cancelled
	}
	return ui.Failed
}

// rest is the time that neither waits nor ended tries account for: the try at work, or
// the whole of a step that needs no tries.
func (p passage) rest(before []ui.Stretch) []ui.Stretch {
	from := p.Step.CreatedAt
	for _, stretch := range before {
		if stretch.To.IsZero() {
			return nil
		}
		if stretch.To.After(from) {
			from = stretch.To
		}
	}
	switch {
	case p.Step.State == engine.StepRunning:
		if p.Step.BegunAt.After(from) {
			from = p.Step.BegunAt
		}
		return []ui.Stretch{{From: from, As: p.status()}}
	case p.Step.State == engine.StepWaiting, p.Step.State == engine.StepQueued:
		return []ui.Stretch{{From: from, As: ui.Queued}}
	case len(before) == 0, p.Step.State != engine.StepDone && p.Step.EndedAt.After(from):
		return []ui.Stretch{{From: from, To: *p.Step.EndedAt, As: statusOfState(p.Step.State), Over: p.Step.State == engine.StepDone}}
	}
	return nil
}

// isGroup tells whether the row's own bar is a line around those of others.
func (p passage) isGroup() bool {
	return p.isPart() || slices.ContainsFunc(p.Node.Lists, func(list pipeline.ChildList) bool { return !list.Key.HandlesError() })
}

// isLine tells whether what is in the row stands below it, so that its bar is a line.
func (p passage) isLine() bool { return p.isGroup() && !p.Shut }

// took is how long the step has taken so far, or took.
func (p passage) took(now time.Time) string {
	if p.Step == nil {
		return ""
	}
	if p.Step.EndedAt != nil {
		now = *p.Step.EndedAt
	}
	return ui.Duration(max(0, now.Sub(p.Step.CreatedAt)))
}

// ticks are the begins of the second and each further try.
func (p passage) ticks() []time.Time {
	var ticks []time.Time
	for _, try := range p.Tries {
		if try.Number > 1 {
			ticks = append(ticks, try.BeganAt)
		}
	}
	if p.Step != nil && p.Step.State == engine.StepRunning && p.Step.Attempt > 1 {
		ticks = append(ticks, p.Step.BegunAt)
	}
	return ticks
}

// spentTime is how the time of a run divides. What happens at the same time counts
// once, as work before waiting.
type spentTime map[ui.Status]time.Duration

// spentIn are the kinds of time in the order in which they count and are told.
var spentIn = []struct {
	status ui.Status
	words  string
}{
	{ui.Running, "Working"}, {ui.Retrying, "Retrying"}, {ui.Person, "Waiting for a person"}, {ui.Cap, "Stopped by the cap"},
	{ui.Waiting, "Waiting"}, {insideGroups, "In lists and loops"}, {ui.Queued, "Between steps"},
}

// insideGroups is time spent in items and rounds whose own rows are not at hand: work
// and waiting together.
const insideGroups ui.Status = "inside"

// kindOfTime counts an ended try as the work that it was.
func kindOfTime(status ui.Status) ui.Status {
	switch status {
	case ui.Done, ui.Failed, ui.Cancelled, ui.Skipped:
		return ui.Running
	case ui.Paused:
		return ui.Waiting
	}
	return status
}

// divide goes through all begins and ends in order and gives each piece of time to the
// kind that counts first.
func divide(all []passage, from, to time.Time) spentTime {
	type edge struct {
		at     time.Time
		status ui.Status
		by     int
	}
	var edges []edge
	for _, p := range all {
		if p.isLine() {
			continue
		}
		for _, stretch := range p.stretches() {
			if p.Shut {
				stretch.As = insideGroups
			}
			end := stretch.To
			if end.IsZero() || end.After(to) {
				end = to
			}
			if end.After(stretch.From) {
				edges = append(edges, edge{stretch.From, kindOfTime(stretch.As), 1}, edge{end, kindOfTime(stretch.As), -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	spent, active, at := spentTime{}, map[ui.Status]int{}, from
	count := func(until time.Time) {
		if !until.After(at) {
			return
		}
		kind := ui.Queued
		for _, one := range spentIn {
			if active[one.status] > 0 {
				kind = one.status
				break
			}
		}
		spent[kind] += until.Sub(at)
		at = until
	}
	for _, e := range edges {
		count(e.at)
		active[e.status] += e.by
	}
	count(to)
	return spent
}

// split is the division as a bar with its words. Pauses between steps of less than a
// second are not worth a word.
func (s spentTime) split() ui.Split {
	var whole time.Duration
	for kind, part := range s {
		if kind != ui.Queued || part >= time.Second {
			whole += part
		}
	}
	var split ui.Split
	for _, one := range spentIn {
		part := s[one.status]
		if part == 0 || one.status == ui.Queued && part < time.Second {
			continue
		}
		piece := ui.SplitPart{Status: one.status, Words: one.words + " " + ui.Duration(part), Share: 100 * float64(part) / float64(whole)}
		if one.status == insideGroups {
			piece.Status, piece.Thin = ui.Running, true
		}
		split = append(split, piece)
	}
	return split
}
