package web

import (
	"slices"
	"time"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// passage is what became of one step of a program in a run: its row, where it has begun,
// and how its time went.
type passage struct {
	Node  *pipeline.Node
	Step  *engine.StepRun // nil before it begins
	Wait  *engine.Wait    // the open one
	Waits []engine.Wait
	Tries []engine.Attempt
	Lost  bool // the run ended, or took another way, before it got here
}

// passages are the steps of a run's program in reading order, without those of ways
// that were not taken.
func passages(progress engine.Progress, history engine.History) []passage {
	rows := map[string]*engine.StepRun{}
	for i := range progress.Steps {
		rows[progress.Steps[i].StepID] = &progress.Steps[i]
	}
	var all []passage
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			p := passage{Node: node, Step: rows[node.ID()], Lost: progress.Run.State.Final()}
			if p.Step != nil {
				p.Waits, p.Tries = history.Waits[p.Step.ID], history.Attempts[p.Step.ID]
				if wait, open := progress.Waits[p.Step.ID]; open {
					p.Wait = &wait
				}
			}
			all = append(all, p)
			for _, list := range node.Lists {
				if p.takes(list, rows) {
					walk(list.Nodes)
				}
			}
		}
	}
	walk(progress.Program.Roots())
	return all
}

// takes tells whether a list of steps inside the step has run, or may still run.
func (p passage) takes(list pipeline.ChildList, rows map[string]*engine.StepRun) bool {
	for _, node := range list.Nodes {
		if rows[node.ID()] != nil {
			return true
		}
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

// badge is how the step stands.
func (p passage) badge() ui.Badge {
	if p.Step == nil {
		if p.Lost {
			return ui.Badge{Status: ui.Skipped, Words: "Not reached"}
		}
		return ui.Badge{Status: ui.Queued}
	}
	if p.Wait != nil && p.Wait.Kind == engine.WaitRetry {
		return ui.Badge{Status: ui.Retrying, Words: news{Line: engine.Line{Standing: engine.StandingRetrying, Attempt: p.Step.Attempt}, Tries: engine.MaxTries(p.Node)}.badge().Words}
	}
	return ui.Badge{Status: p.status()}
}

// status is that of the open wait, since "waiting" alone would hide for what.
func (p passage) status() ui.Status {
	switch {
	case p.Wait != nil:
		return statusOfWait(p.Wait.Kind)
	case p.Step.State == engine.StepWaiting:
		return ui.Queued // what it waited for is here
	}
	return statusOfState(p.Step.State)
}

func statusOfState(state engine.StepState) ui.Status {
	return map[engine.StepState]ui.Status{
		engine.StepRunning: ui.Running, engine.StepWaiting: ui.Waiting, engine.StepDone: ui.Done,
		engine.StepFailed: ui.Failed, engine.StepSkipped: ui.Skipped, engine.StepCancelled: ui.Cancelled,
	}[state]
}

func statusOfWait(kind engine.WaitKind) ui.Status {
	switch kind {
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
		stretch := ui.Stretch{From: wait.OpenedAt, As: statusOfWait(wait.Kind)}
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
		return []ui.Stretch{{From: from, As: ui.Running}}
	case p.Step.State == engine.StepWaiting:
		return []ui.Stretch{{From: from, As: ui.Queued}}
	case len(before) == 0, p.Step.State != engine.StepDone && p.Step.EndedAt.After(from):
		return []ui.Stretch{{From: from, To: *p.Step.EndedAt, As: statusOfState(p.Step.State), Over: p.Step.State == engine.StepDone}}
	}
	return nil
}

// isGroup tells whether the step's own bar is a line around those of others.
func (p passage) isGroup() bool { return len(p.Node.Lists) > 0 }

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
	{ui.Waiting, "Waiting"}, {ui.Queued, "Between steps"},
}

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
		if p.isGroup() {
			continue
		}
		for _, stretch := range p.stretches() {
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
		split = append(split, ui.SplitPart{Status: one.status, Words: one.words + " " + ui.Duration(part), Share: 100 * float64(part) / float64(whole)})
	}
	return split
}
