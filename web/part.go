package web

import (
	"context"
	"fmt"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// inOtherPart tells that a step run that was asked for is drawn on the page of a part.
type inOtherPart struct{ part engine.StepRunID }

func (e *inOtherPart) Error() string { return "the step is in part " + e.part.String() + " of its run" }

// elsewhere finds where a step is that is not on this page.
func (r *runView) elsewhere(ctx context.Context, tx tenants.Tx) error {
	id, err := tenants.ParseID[engine.StepRun](r.Chosen)
	if err != nil || r.isPart() {
		return errNotFound
	}
	part, err := engine.PlaceOf(ctx, tx, r.View.Run.ID, id)
	if err != nil || part.IsZero() {
		return errNotFound
	}
	return &inOtherPart{part}
}

// partID is the part that the address asks for, zero for the whole run.
func (v *visit) partID() (engine.StepRunID, error) {
	text := v.Param("part")
	if text == "" {
		text = v.QueryParam("part") // of a stream
	}
	if text == "" {
		return engine.StepRunID{}, nil
	}
	id, err := tenants.ParseID[engine.StepRun](text)
	if err != nil {
		return id, errNotFound
	}
	return id, nil
}

// isPart tells whether the page is about an item, a round or a branch.
func (r *runView) isPart() bool { return r.View.Part != nil }

// partName is what a part is called by its place: "Item 17", "Round 2", or the branch's
// own name.
func (r *runView) partName() string { return partName(r.View.Program, *r.View.Part) }

func partName(program *pipeline.Program, part engine.StepRun) string {
	switch part.Kind {
	case engine.KindItem:
		return "Item " + ui.Count(int64(part.Turn)+1)
	case engine.KindRound:
		return "Round " + ui.Count(int64(part.Turn)+1)
	}
	if node := program.Node(part.StepID); node != nil {
		if list := node.Child(part.List); list != nil && list.Name != "" {
			return list.Name
		}
	}
	return string(part.List)
}

// partTitle is what an item is about, where that can be said in a line.
func (r *runView) partTitle() string {
	if r.View.Part.Kind == engine.KindItem {
		if words := shortValue(r.Input.Bytes); words != "" {
			return words
		}
	}
	return r.partName()
}

// partOver says beside the title which part of which step it is.
func (r *runView) partOver() string {
	node := r.View.Program.Node(r.View.Part.StepID)
	if node == nil {
		return r.partName()
	}
	return r.partName() + " of " + called(node.Number, node.Step.Name)
}

// partCrumbs lead through the groups and parts that something stands in.
func partCrumbs(v *visit, run engine.Run, program *pipeline.Program, around []engine.StepRun) []ui.Link {
	var crumbs []ui.Link
	for _, row := range around {
		switch {
		case engine.IsPart(row.Kind):
			crumbs = append(crumbs, ui.Link{Text: partName(program, row), Href: v.path("runs", run.ID.String(), "parts", row.ID.String())})
		case engine.IsGroup(row.Kind):
			crumbs = append(crumbs, ui.Link{Text: stepName(program, row.StepID), Href: v.path("runs", run.ID.String(), "groups", row.ID.String())})
		}
	}
	return crumbs
}

// stepName is a step's name, or its id where the program has no such step.
func stepName(program *pipeline.Program, id string) string {
	if node := program.Node(id); node != nil {
		return node.Step.Name
	}
	return id
}

// partWords are what a part is called in sentences about it.
var partWords = map[pipeline.Kind]string{engine.KindItem: "this item", engine.KindRound: "this round", engine.KindLane: "this branch"}

// readPartNews tells how the part stands, as a line of a list would.
func (r *runView) readPartNews(ctx context.Context, tx tenants.Tx) error {
	line := engine.Line{Run: r.View.Run, Standing: engine.StandingRunning, Since: r.View.Part.BegunAt}
	at := r.worst()
	switch state := r.View.Part.State; {
	case state == engine.StepDone:
		line.Standing, line.Since = engine.StandingCompleted, *r.View.Part.EndedAt
	case state == engine.StepFailed:
		line.Standing, line.Since = engine.StandingFailed, *r.View.Part.EndedAt
	case !state.Open():
		line.Standing, line.Since = engine.StandingCancelled, *r.View.Part.EndedAt
	case state == engine.StepQueued:
		line.Standing, line.Since = engine.StandingQueued, r.View.Part.CreatedAt
	case at != nil:
		line = r.lineAt(line, *at)
	}
	var asked []review.Asked
	if at != nil && line.Standing == engine.StandingPerson {
		found, err := r.v.s.Reviews.OpenOfSteps(ctx, tx, [][16]byte{at.Step.ID})
		if err != nil {
			return err
		}
		asked = found[at.Step.ID]
	}
	r.News = newsOf(r.v.discreet(line), r.View.Program, asked, r.v.user)
	r.News.Part, r.News.Within, r.News.Fresh = true, partWords[r.View.Part.Kind], false
	if next := r.News.NextNode; next == nil || r.lies(next) {
		return nil
	}
	r.News.Next = ""
	return nil
}

// lineAt says how a line stands whose worst step is this one.
func (r *runView) lineAt(line engine.Line, at passage) engine.Line {
	line.StepID, line.StepName, line.Attempt, line.Since = at.Node.ID(), at.Node.Step.Name, at.Step.Attempt, at.Step.BegunAt
	if at.Wait == nil {
		return line
	}
	line.Wait, line.Due, line.Reason, line.Since = at.Wait.Kind, at.Wait.Due, at.Wait.Reason, at.Wait.OpenedAt
	line.EventName, line.EventKey, line.Uncalled = at.Wait.EventName, at.Wait.EventKey, at.Wait.Uncalled
	line.Standing = map[engine.WaitKind]engine.StandingState{
		engine.WaitCap: engine.StandingCapped, engine.WaitReview: engine.StandingPerson, engine.WaitRetry: engine.StandingRetrying,
	}[at.Wait.Kind]
	if line.Standing == "" || line.Uncalled {
		line.Standing = engine.StandingWaiting
	}
	return line
}

// worst is the open step that the page is about: what waits before what works.
func (r *runView) worst() *passage {
	var found *passage
	rank := func(p *passage) int {
		if p.Wait == nil {
			return len(waitOrder)
		}
		for i, status := range waitOrder {
			if status == statusOfWait(*p.Wait) {
				return i
			}
		}
		return len(waitOrder)
	}
	for i := range r.Passages {
		p := &r.Passages[i]
		if p.Step == nil || !p.Step.State.Open() || p.isLine() {
			continue
		}
		if found == nil || rank(p) < rank(found) {
			found = p
		}
	}
	return found
}

// lies tells whether a step lies in the part that the page shows.
func (r *runView) lies(node *pipeline.Node) bool {
	group := r.View.Program.Node(r.View.Part.StepID)
	for ; node != nil; node = node.Parent {
		if node.Parent == group && group != nil {
			return node.List == r.View.Part.List
		}
	}
	return false
}

// partSentence is the one at the head of a part's page.
func (r *runView) partSentence() ui.Sentence {
	c := clock{r.Now, r.v.zone()}
	part := r.View.Part
	switch r.News.Standing {
	case engine.StandingQueued:
		return ui.Sentence{ui.Strong("Not begun"), ui.Plain(". It begins as soon as one of those before it has ended or waits.")}
	case engine.StandingCompleted:
		return ui.Sentence{ui.Strong("Done"), ui.Plain(" " + c.when(r.News.Since) + ", after " + tookWords(*part, r.Now) + ".")}
	case engine.StandingFailed:
		out := ui.Sentence{ui.Strong("Failed"), ui.Plain(" " + c.when(r.News.Since) + ". ")}
		if part.Failure != nil {
			out = append(out, ui.Name(part.Failure.Message), ui.Plain(" "))
		}
		return append(out, ui.Plain(r.failedNext()))
	case engine.StandingCancelled:
		return ui.Sentence{ui.Strong("Stopped"), ui.Plain(" " + c.when(r.News.Since) + ". What was done is kept.")}
	}
	if r.News.Standing == engine.StandingRunning && r.News.StepID == "" {
		return ui.Sentence{ui.Strong("Under way"), ui.Plain(c.since(r.News.Since) + ". Its next step begins at once.")}
	}
	return r.News.sentence(r.Now, r.v.zone())
}

// failedNext says what a failed part means for the others.
func (r *runView) failedNext() string {
	node := r.View.Program.Node(r.View.Part.StepID)
	if node != nil && node.Each() != nil {
		if most := node.Each().MaxFailed; most > 0 {
			return fmt.Sprintf("The other items go on; up to %s may fail.", ui.Count(int64(most)))
		}
	}
	return "Look at the run’s page for what follows."
}

// partFacts are a few figures about a part.
func (r *runView) partFacts() ui.Facts {
	part := r.View.Part
	facts := ui.Facts{{Label: "Steps", Value: r.doneWords()}}
	if part.State != engine.StepQueued {
		facts = append(facts, ui.Pair{Label: "Began", Value: ui.WhenBrief(part.BegunAt, r.Now, r.v.zone())})
	}
	if part.Score != "" {
		facts = append(facts, ui.Pair{Label: "Score", Value: part.Score})
	}
	if part.CostMicros > 0 && r.v.maySeeMoney() {
		facts = append(facts, ui.Pair{Label: "Cost", Value: ui.Dollars(part.CostMicros)})
	}
	return facts
}
