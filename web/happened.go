package web

import (
	"slices"
	"time"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/web/ui"
)

// happening is one line of what happened in a run.
type happening struct {
	at   time.Time
	says ui.Sentence
}

// happenedOnPage is how many lines a page has; the timeline shows all steps anyway.
const happenedOnPage = 30

// happened tells a run's story, newest first. Steps that just went well are the
// timeline's matter.
func (r *runView) happened() []ui.Row {
	lines := r.ends()[:1]
	for _, p := range r.Passages {
		if p.Step != nil && !p.isPart() {
			lines = append(lines, r.happenedAt(p)...)
		}
	}
	for _, found := range r.Findings {
		lines = append(lines, happening{found.LastAt, foundWords(found)})
	}
	for _, entry := range r.Pauses {
		lines = append(lines, happening{entry.At, pauseWords(entry)})
	}
	for _, move := range r.Versions.Moves {
		lines = append(lines, happening{move.At, movedWords(move)})
	}
	for _, entry := range r.Hands {
		lines = append(lines, happening{entry.At, r.v.handWords(entry)})
	}
	lines = append(lines, r.ends()[1:]...)
	slices.Reverse(lines) // of what happened at one time the last comes first
	slices.SortStableFunc(lines, func(a, b happening) int { return b.at.Compare(a.at) })
	var rows []ui.Row
	for _, line := range lines[:min(len(lines), happenedOnPage)] {
		rows = append(rows, ui.Row{Reason: line.says, EndNote: ui.WhenBrief(line.at, r.Now, r.v.zone())})
	}
	return rows
}

// ends are the begin and, if it came, the end of what the page shows.
func (r *runView) ends() []happening {
	if r.isPart() {
		return r.partEnds()
	}
	run := r.View.Run
	lines := []happening{{run.CreatedAt, r.startedWords()}}
	if run.EndedAt != nil {
		lines = append(lines, happening{*run.EndedAt, r.endedWords()})
	}
	return lines
}

// partEnds are those of a part.
func (r *runView) partEnds() []happening {
	part := r.View.Part
	if part.State == engine.StepQueued {
		return []happening{{part.CreatedAt, ui.Words("The list was made, and " + partWords[part.Kind] + " with it")}}
	}
	lines := []happening{{part.BegunAt, ui.Words(sentenceCase(partWords[part.Kind]) + " began")}}
	if part.EndedAt != nil {
		ended := map[engine.StepState]string{engine.StepDone: " was done", engine.StepFailed: " failed"}[part.State]
		if ended == "" {
			ended = " was stopped"
		}
		lines = append(lines, happening{*part.EndedAt, ui.Words(sentenceCase(partWords[part.Kind]) + ended)})
	}
	return lines
}

// foundWords tell honestly that the run once stood still.
func foundWords(found engine.Finding) ui.Sentence {
	if found.Repaired {
		return ui.Words("Nothing would have carried the run on; the watchdog saw it and set it going again")
	}
	return ui.Words("Nothing carries the run on; the watchdog saw it and tries to set it going again")
}

func (r *runView) startedWords() ui.Sentence {
	run := r.View.Run
	who := ui.Sentence{ui.Plain("The run was started")}
	if run.StartedName != "" {
		who = ui.Sentence{ui.Name(run.StartedName), ui.Plain(" started the run")}
	}
	if run.Sample {
		who = append(who, ui.Plain(" with the sample"))
	}
	return who
}

func (r *runView) endedWords() ui.Sentence {
	switch run := r.View.Run; run.State {
	case engine.RunCompleted:
		return ui.Words("The run was done")
	case engine.RunFailed:
		return ui.Words("The run failed")
	default:
		if run.EndedBy != "" {
			return ui.Sentence{ui.Name(run.EndedBy), ui.Plain(" cancelled the run")}
		}
		return ui.Words("The run was cancelled")
	}
}

// withModel names the model that a try asked.
func withModel(try engine.Attempt) string {
	if try.Model == "" {
		return ""
	}
	return " with " + modelName(try.Model)
}

// followedWords are why a try failed and what followed.
func followedWords(try engine.Attempt) string {
	if try.Followed == "" {
		return failureWords(try.Failure)
	}
	return sentenceEnd(failureWords(try.Failure)) + " " + try.Followed
}

// happenedAt tells what was unusual about a step, and all about its review.
func (r *runView) happenedAt(p passage) []happening {
	title := ui.Name(sentenceCase(stepTitle(p.Node)))
	var lines []happening
	for _, try := range p.Tries {
		switch try.Outcome {
		case engine.AttemptFailed:
			lines = append(lines, happening{try.EndedAt, ui.Sentence{title, ui.Plain(" did not work"), ui.Plain(withModel(try)), ui.Plain(": "), ui.Name(followedWords(try))}})
		case engine.AttemptInterrupted:
			lines = append(lines, happening{try.EndedAt, ui.Sentence{title, ui.Plain(cutOffWords(try, p))}})
		}
	}
	for _, wait := range p.Waits {
		if wait.Kind == engine.WaitCap {
			lines = append(lines, happening{wait.OpenedAt, ui.Sentence{title, ui.Plain(" was stopped by the cap: "), ui.Name(r.v.reasonOf(wait.Kind, wait.Reason))}})
			if wait.ClosedAt != nil && wait.State == "done" {
				lines = append(lines, happening{*wait.ClosedAt, ui.Sentence{title, ui.Plain(" could go on: the cap allows it again")}})
			}
		}
	}
	if p.caught() && p.Step.State == engine.StepDone {
		lines = append(lines, happening{*p.Step.EndedAt, append(ui.Sentence{title, ui.Plain(": ")}, p.handledWords()...)})
	}
	if p.Step.State == engine.StepFailed && len(p.Tries) == 0 && !p.isGroup() {
		lines = append(lines, happening{*p.Step.EndedAt, ui.Sentence{title, ui.Plain(" failed: "), ui.Name(failureWords(p.Step.Failure))}})
	}
	if detail, ok := r.Reviews[p.Step.ID]; ok {
		if p.Node.HTTP() != nil {
			return append(lines, toldWhetherItArrived(detail, title)...)
		}
		lines = append(lines, happenedIn(detail)...)
	}
	return lines
}

// failureWords are our own words for it.
func failureWords(failure *engine.Failure) string {
	if failure == nil {
		return ""
	}
	return failure.Message
}

// happenedIn tells who was asked and who answered.
func happenedIn(detail review.Detail) []happening {
	var names []string
	for _, seat := range detail.Seats {
		names = append(names, seat.Name)
	}
	const most = 4
	if len(names) > most {
		rest := len(names) - most + 1
		names = append(names[:most-1], ui.Plural(int64(rest), "other", "others"))
	}
	verb := " were asked: “"
	if len(names) == 1 {
		verb = " was asked: “"
	}
	lines := []happening{{detail.OpenedAt, ui.Sentence{ui.Name(ui.List(names)), ui.Plain(verb), ui.Name(detail.Content.Title), ui.Plain("”")}}}
	for _, answer := range detail.Answers {
		said := ui.Sentence{ui.Name(answer.Name), ui.Plain(" " + inSentenceCase(saidVerdict(answer.Verdict)))}
		if answer.Comment != "" {
			said = append(said, ui.Plain(": “"), ui.Name(answer.Comment), ui.Plain("”"))
		}
		lines = append(lines, happening{answer.At, said})
	}
	if detail.Outcome == review.OutcomeTimeout && detail.ClosedAt != nil {
		lines = append(lines, happening{*detail.ClosedAt, ui.Words("The deadline passed without an answer")})
	}
	return lines
}
