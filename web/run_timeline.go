package web

import (
	"fmt"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/web/ui"
)

// end is when the run ended, or now.
func (r *runView) end() time.Time {
	if ended := r.Progress.Run.EndedAt; ended != nil {
		return *ended
	}
	return r.Now
}

// split is where the time of the run went, waiting apart from work.
func (r *runView) split() ui.Split {
	return divide(r.Passages, r.Progress.Run.CreatedAt, r.end()).split()
}

// timeline draws the rows of the page that is shown.
func (r *runView) timeline() ui.Timeline {
	run := r.Progress.Run
	line := ui.Timeline{
		ID: "timeline", Caption: "Steps of this run in order, with status, time span, duration and cost",
		Start: run.CreatedAt, Now: r.end(), Ended: run.State.Final(), TrueScale: r.TrueTime || !r.folds(), Loc: r.v.zone(),
	}
	from, to := r.window()
	for _, p := range r.Passages[from:to] {
		line.Steps = append(line.Steps, r.row(p))
	}
	return line
}

// worthFolding is how long a wait must be for the axis to leave it out.
const worthFolding = 10 * time.Second

// folds tells whether the run has waited long enough for its waits to be folded.
func (r *runView) folds() bool {
	spent := divide(r.Passages, r.Progress.Run.CreatedAt, r.end())
	return r.end().Sub(r.Progress.Run.CreatedAt)-spent[ui.Running] >= worthFolding
}

// window is which rows of a long timeline stand on the page: those asked for, or those
// around the step that the run is at.
func (r *runView) window() (from, to int) {
	if len(r.Passages) <= rowsPerPage {
		return 0, len(r.Passages)
	}
	from = max(0, r.From)
	if r.v.QueryParam("from") == "" {
		for i, p := range r.Passages {
			if p.Node.ID() == r.focus() {
				from = i - rowsPerPage/2
			}
		}
	}
	from = max(0, min(from, len(r.Passages)-rowsPerPage))
	return from, from + rowsPerPage
}

// focus is the step that the page is about.
func (r *runView) focus() string {
	if r.Chosen != "" {
		return r.Chosen
	}
	return r.News.StepID
}

// row is one step with its bar. Its id is the step's, so a live page changes it in place.
func (r *runView) row(p passage) ui.TimelineStep {
	row := ui.TimelineStep{
		ID: "step-" + p.Node.ID(), Number: p.Node.Number, Name: p.Node.Step.Name, Href: r.path("steps", p.Node.ID()) + r.query(),
		Depth: p.Node.Depth - 1, Chosen: r.Panel != nil && r.Panel.Passage.Node == p.Node, Badge: p.badge(), Group: p.isGroup(),
		Bars: p.stretches(), Attempts: p.ticks(), Time: p.took(r.Now), Reason: r.because(p),
	}
	if p.Step != nil && r.v.maySeeMoney() && p.Step.CostMicros > 0 {
		row.Cost = ui.Dollars(p.Step.CostMicros)
	}
	return row
}

// because stands under a row where somebody could act or wonder.
func (r *runView) because(p passage) ui.Sentence {
	switch {
	case p.Step == nil:
		return nil
	case p.Step.Failure != nil && p.Step.State == engine.StepFailed && !p.isGroup():
		return ui.Sentence{ui.Name(p.Step.Failure.Message)}
	case p.Step.Chosen != "":
		if list := p.Node.Child(p.Step.Chosen); list != nil {
			return ui.Sentence{ui.Plain("Took “"), ui.Name(list.Name), ui.Plain("”")}
		}
	case p.Wait == nil:
		return nil
	case p.Wait.Kind == engine.WaitReview:
		return r.askedAt(p)
	case p.Wait.Kind == engine.WaitRetry, p.Wait.Kind == engine.WaitCap:
		return ui.Sentence{ui.Name(r.v.reasonOf(p.Wait.Kind, p.Wait.Reason))}
	}
	return nil
}

// askedAt says who can answer, how far it is, and until when.
func (r *runView) askedAt(p passage) ui.Sentence {
	n := r.standingOf(p)
	out := ui.Sentence{ui.Strong(sentenceCase(n.people("You", " or "))), ui.Plain(" can answer.")}
	detail, ok := r.Reviews[p.Step.ID]
	if ok && detail.Needed() > 1 {
		out = append(out, ui.Plain(fmt.Sprintf(" %d of %d agreed.", detail.Agreed(), detail.Needed())))
	}
	if ok && detail.DueAt != nil {
		out = append(out, ui.Plain(" Due "+inSentence(ui.WhenBrief(*detail.DueAt, r.Now, r.v.zone()))+"."))
	}
	return out
}

// standingOf is the news of one waiting step.
func (r *runView) standingOf(p passage) news {
	n := newsOf(engine.Line{
		Run: r.Progress.Run, StepID: p.Node.ID(), StepName: p.Node.Step.Name, Since: p.Wait.OpenedAt, Due: p.Wait.Due,
		Wait: p.Wait.Kind, Reason: r.v.reasonOf(p.Wait.Kind, p.Wait.Reason), Attempt: p.Step.Attempt,
		EventName: p.Wait.EventName, EventKey: p.Wait.EventKey,
	}, r.Progress.Program, nil, r.v.user)
	for _, asked := range r.News.Asked {
		if asked.StepRun == p.Step.ID {
			n.Asked = append(n.Asked, asked)
		}
	}
	return n
}

// views are the ways of showing the timeline.
func (r *runView) views() ui.Filters {
	folded, exact := *r, *r
	folded.TrueTime, exact.TrueTime = false, true
	return ui.Filters{Label: "Timeline view", Items: []ui.Filter{
		{Text: "Waits folded", Href: folded.here(), Here: !r.TrueTime},
		{Text: "True scale", Href: exact.here(), Here: r.TrueTime},
	}}
}

// pager leads through a timeline that is too long for one page.
func (r *runView) pager() ui.Pager {
	from, to := r.window()
	pager := ui.Pager{Shown: "Steps " + ui.Count(int64(from+1)) + "–" + ui.Count(int64(to)) + " of " + ui.Count(int64(len(r.Passages)))}
	other := *r
	if from > 0 {
		other.From = max(0, from-rowsPerPage)
		pager.Prev = ui.Link{Text: "Earlier steps", Href: r.path() + queryOf("from", strconv.Itoa(other.From))}
	}
	if to < len(r.Passages) {
		other.From = to
		pager.Next = ui.Link{Text: "Later steps", Href: r.path() + other.query()}
	}
	return pager
}
