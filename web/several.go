package web

import (
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// sentence is the one at the head of the page.
func (r *runView) sentence() ui.Sentence {
	switch {
	case r.isPart():
		return r.partSentence()
	case r.several():
		return r.severalSentence()
	}
	if paused := r.pausedSentence(); paused != nil {
		return paused
	}
	out := r.News.sentence(r.Now, r.v.zone())
	if said := r.stopped(); said != "" {
		out = append(out, ui.Plain(" It ended early: "), ui.Name(said))
	}
	return out
}

// stopped is what the step said that ended the run early; "" where none did.
func (r *runView) stopped() string {
	if r.View.Run.State != engine.RunCompleted {
		return ""
	}
	for _, p := range r.Passages {
		if p.Node.Kind() == pipeline.KindStop && p.Step != nil && p.Step.State == engine.StepDone {
			return p.Step.Note
		}
	}
	return ""
}

// several tells whether more than one branch of the run is open, so that no single step
// can stand for it.
func (r *runView) several() bool {
	return r.View.Run.State == engine.RunRunning && (r.View.Open.Count() > 1 || r.openList() != nil)
}

// openList is the list whose items are all that is open; nil where there is other work.
func (r *runView) openList() *passage {
	var found *passage
	for i := range r.Passages {
		p := &r.Passages[i]
		if p.Step == nil || !p.Step.State.Open() || p.isLine() {
			continue
		}
		if p.Size == nil || found != nil {
			return nil
		}
		found = p
	}
	return found
}

// severalSentence counts: what waits first, since somebody may do something about it.
func (r *runView) severalSentence() ui.Sentence {
	var out ui.Sentence
	if list := r.openList(); list != nil {
		out = itemsSentence(*list.Size, stepTitle(list.Node))
	} else {
		out = branchesSentence(r.View.Open)
	}
	if r.asksMe() {
		out = append(out, ui.Plain(" "), ui.Strong("You are asked."))
	}
	if r.View.Open.Capped > 0 && r.News.Reason != "" {
		out = append(out, ui.Plain(" "), ui.Name(r.News.Reason))
	}
	if next := follower(r.View.Program, r.openRoot()); next != nil {
		return append(out, ui.Plain(" Then comes "), ui.Name(stepTitle(next)), ui.Plain("."))
	}
	return append(out, ui.Plain(" After it the run is done."))
}

// itemsSentence tells about the items of a list: "3 of 40 items of step 2 “Check” wait
// for a person; 2 are at work, 30 have not begun."
func itemsSentence(size engine.GroupSize, step string) ui.Sentence {
	first, rest := "", []string{}
	for _, one := range []struct {
		standing  engine.StandingState
		one, many string
	}{
		{engine.StandingCapped, "is stopped by the cap", "are stopped by the cap"},
		{engine.StandingPerson, "waits for a person", "wait for a person"},
		{engine.StandingRetrying, "tries again soon", "try again soon"},
		{engine.StandingWaiting, "waits", "wait"},
		{engine.StandingRunning, "runs", "run"},
		{engine.StandingQueued, "has not begun", "have not begun"},
		{engine.StandingFailed, "failed", "failed"},
		{engine.StandingCompleted, "is done", "are done"},
	} {
		n := size.By[one.standing]
		switch {
		case n == 0:
		case first == "":
			first = ui.Count(int64(n)) + " of " + ui.Plural(int64(size.Parts), "item", "items")
			rest = append(rest, plural(n, one.one, one.many))
		default:
			rest = append(rest, ui.Count(int64(n))+" "+plural(n, one.one, one.many))
		}
	}
	if first == "" {
		return ui.Sentence{ui.Strong("Working through " + step), ui.Plain(".")}
	}
	out := ui.Sentence{ui.Strong(first), ui.Plain(" of "), ui.Name(step), ui.Plain(" " + rest[0])}
	if len(rest) > 1 {
		out = append(out, ui.Plain("; "+ui.List(rest[1:])))
	}
	return append(out, ui.Plain("."))
}

// branchParts are what open branches do, in words.
func branchParts(open engine.Branches) []string {
	var parts []string
	for _, one := range []struct {
		n         int
		one, many string
	}{
		{open.Capped, "is stopped by the cap", "are stopped by the cap"}, {open.Person, "waits for a person", "wait for a person"},
		{open.Retrying, "tries again soon", "try again soon"}, {open.Waiting, "waits for its time or an event", "wait for their time or an event"},
		{open.Running, "runs", "run"}, {open.Ready, "waits for a free worker", "wait for a free worker"},
	} {
		if one.n > 0 {
			parts = append(parts, ui.Count(int64(one.n))+" "+plural(one.n, one.one, one.many))
		}
	}
	return parts
}

// branchesSentence tells about branches of all kinds together.
func branchesSentence(open engine.Branches) ui.Sentence {
	return ui.Sentence{ui.Strong(count(open.Count(), "branch is", "branches are") + " open"), ui.Plain(": " + ui.List(branchParts(open)) + ".")}
}

// severalBrief is that as lists have room for it, beside the badge.
func (n news) severalBrief() ui.Sentence {
	words := ui.Words(sentenceCase(strings.Join(branchParts(n.Open), ", ")) + ".")
	for _, asked := range n.Asked {
		if asked.Asks(n.Me) {
			return append(ui.Sentence{ui.Strong("You"), ui.Plain(" are asked. ")}, words...)
		}
	}
	return words
}

// asksMe tells whether the reader is among those who are asked.
func (r *runView) asksMe() bool {
	for _, asked := range r.News.Asked {
		if asked.Asks(r.v.user) {
			return true
		}
	}
	return false
}

// openRoot is the step at the top that the run is at.
func (r *runView) openRoot() *pipeline.Node {
	for _, p := range r.Passages {
		if p.Node.Parent == nil && p.Step != nil && p.Step.State.Open() {
			return p.Node
		}
	}
	return nil
}
