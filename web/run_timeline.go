package web

import (
	"fmt"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// end is when the run ended, or now.
func (r *runView) end() time.Time {
	if ended := r.View.Run.EndedAt; ended != nil && !r.isPart() {
		return *ended
	}
	if r.isPart() && r.View.Part.EndedAt != nil {
		return *r.View.Part.EndedAt
	}
	return r.Now
}

// begin is when what the page shows began.
func (r *runView) begin() time.Time {
	if r.isPart() {
		return r.View.Part.BegunAt
	}
	return r.View.Run.CreatedAt
}

// split is where the time of the run went, waiting apart from work.
func (r *runView) split() ui.Split {
	if r.isPart() && r.View.Part.State == engine.StepQueued {
		return nil
	}
	return divide(r.Passages, r.begin(), r.end()).split()
}

// timeline draws the rows of the page that is shown.
func (r *runView) timeline() ui.Timeline {
	line := ui.Timeline{
		ID: "timeline", Caption: "Steps of this run in order, with status, time span, duration and cost",
		Start: r.begin(), Now: r.end(), Ended: r.ended(), TrueScale: r.TrueTime || !r.folds(), Loc: r.v.zone(),
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
	if r.isPart() && r.View.Part.State == engine.StepQueued {
		return false
	}
	spent := divide(r.Passages, r.begin(), r.end())
	return r.end().Sub(r.begin())-spent[ui.Running] >= worthFolding
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
		ID: p.id(), Number: p.number(), Name: p.name(), Href: r.address(p),
		Depth: r.depth(p), Chosen: r.Panel != nil && !p.isPart() && r.Panel.Passage.Node == p.Node, Badge: p.badge(), Group: p.isLine(),
		Bars: p.stretches(), Attempts: p.ticks(), Time: p.took(r.Now), Reason: r.because(p),
	}
	if p.Size != nil {
		row.Strip = strip(*p.Size)
	}
	if cost := r.costOf(p); cost > 0 && r.v.maySeeMoney() {
		row.Cost = ui.Dollars(cost)
	}
	return row
}

// costOf is what a row cost; branches side by side cost together what each does.
func (r *runView) costOf(p passage) int64 {
	if p.Step == nil {
		return 0
	}
	cost := p.Step.CostMicros
	if p.Node.Kind() == pipeline.KindParallel && !p.isPart() && cost == 0 {
		for _, lane := range r.lanesOf(p) {
			if lane.Step != nil {
				cost += lane.Step.CostMicros
			}
		}
	}
	return cost
}

// address is the panel of a step, or the page of a round or branch.
func (r *runView) address(p passage) string {
	if !p.isPart() {
		return r.base("steps", p.Node.ID()) + r.query()
	}
	if p.Step == nil {
		return r.base("steps", p.Node.ID()) + r.query()
	}
	return r.path("parts", p.Step.ID.String())
}

// depth is how far a row is moved in, from what the page shows.
func (r *runView) depth(p passage) int {
	depth := p.Node.Depth - 1 + p.Deeper
	if r.isPart() {
		for node := r.View.Program.Node(r.View.Part.StepID); node != nil; node = node.Parent {
			depth--
		}
	}
	return max(0, depth)
}

// because stands under a row where somebody could act or wonder.
func (r *runView) because(p passage) ui.Sentence {
	switch {
	case p.isPart():
		return r.partReason(p)
	case p.Step == nil:
		return nil
	case p.Node.Kind() == pipeline.KindChild && !p.caught() && p.Step.State != engine.StepFailed:
		return r.childSentence(p)
	case p.Node.Kind() == pipeline.KindChild && !p.caught():
		return behind(ui.Sentence{ui.Name(failureWords(p.Step.Failure))}, r.childSentence(p))
	case p.caught() && p.Wait != nil:
		return append(append(p.handledWords(), ui.Plain(" ")), r.askedAt(p)...)
	case p.caught():
		return p.handledWords()
	case p.Size != nil:
		return listReason(*p.Size, func(standing string) string { return r.path("groups", p.Step.ID.String()) + queryOf("state", standing) })
	case p.Node.Kind() == pipeline.KindRepeat && p.Wait == nil:
		return r.loopReason(p)
	case p.Node.Kind() == pipeline.KindParallel:
		return r.besideReason(p)
	case p.Node.Kind() == pipeline.KindStop && p.Step.Note != "":
		return ui.Sentence{ui.Plain("Ended the run: "), ui.Name(p.Step.Note)}
	case p.Step.Failure != nil && p.Step.State == engine.StepFailed && !p.isGroup():
		return ui.Sentence{ui.Name(p.Step.Failure.Message)}
	case p.Step.Chosen != "":
		if list := p.Node.Child(p.Step.Chosen); list != nil {
			return ui.Sentence{ui.Plain("Took “"), ui.Name(list.Name), ui.Plain("”")}
		}
	case p.Node.Kind() == pipeline.KindAI && p.Wait == nil:
		return p.chainWords()
	case p.Wait == nil:
		return nil
	case p.Wait.Kind == engine.WaitReview:
		return r.askedAt(p)
	case p.Wait.Uncalled:
		return ui.Words(r.standingOf(p).waited(clock{r.Now, r.v.zone()}) + ".")
	case p.Wait.Kind == engine.WaitRetry, p.Wait.Kind == engine.WaitCap:
		return ui.Sentence{ui.Name(r.v.reasonOf(p.Wait.Kind, p.Wait.Reason))}
	case p.Wait.Kind == engine.WaitTime, p.Wait.Kind == engine.WaitEvent:
		c := clock{r.Now, r.v.zone()}
		n := r.standingOf(p)
		return ui.Words(n.waited(c) + c.since(n.Since) + n.atMost(c) + ".")
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
		Run: r.View.Run, StepID: p.Node.ID(), StepName: p.Node.Step.Name, Since: p.Wait.OpenedAt, Due: p.Wait.Due,
		Wait: p.Wait.Kind, Reason: r.v.reasonOf(p.Wait.Kind, p.Wait.Reason), Attempt: p.Step.Attempt, Uncalled: p.Wait.Uncalled,
		EventName: p.Wait.EventName, EventKey: p.Wait.EventKey,
	}, r.View.Program, nil, r.v.user)
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
		pager.Prev = ui.Link{Text: "Earlier steps", Href: r.base() + queryOf("from", strconv.Itoa(other.From))}
	}
	if to < len(r.Passages) {
		other.From = to
		pager.Next = ui.Link{Text: "Later steps", Href: r.base() + other.query()}
	}
	return pager
}
