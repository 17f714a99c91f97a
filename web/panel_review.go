package web

import (
	"fmt"

	"tollgate/app/review"
	"tollgate/web/ui"
)

// askedWords say for how long people have been asked, and what their silence leads to.
func (p *panelView) askedWords(c clock) ui.Sentence {
	wait := p.Passage.Wait
	out := ui.Sentence{ui.Plain("Asked" + c.lasting(wait.OpenedAt) + ".")}
	if p.Review == nil || p.Review.DueAt == nil {
		return append(out, ui.Plain(" There is no deadline; it waits until somebody answers."))
	}
	silence := p.r.standingOf(p.Passage).silence()
	return append(out, ui.Plain(" Without an answer by "), ui.Strong(c.when(*p.Review.DueAt)), ui.Plain(" "+silence+"."))
}

// decidedBy says who decided what.
func decidedBy(detail review.Detail) ui.Sentence {
	verdict := map[review.Outcome]string{
		review.OutcomeApproved: "approved", review.OutcomeRejected: "refused", review.OutcomeSentBack: "asked for changes",
	}[detail.Outcome]
	switch {
	case detail.Outcome == review.OutcomeTimeout:
		return ui.Sentence{ui.Strong("Nobody answered before the deadline")}
	case verdict == "" || len(detail.Answers) == 0:
		return ui.Sentence{ui.Strong("No answer was needed any more")}
	}
	last := detail.Answers[len(detail.Answers)-1]
	return ui.Sentence{ui.Strong(last.Name + " " + verdict)}
}

// reviewFold tells who was asked what, and who answered how.
func (p *panelView) reviewFold() ui.Fold {
	if p.Review == nil {
		return ui.Fold{}
	}
	detail := *p.Review
	pairs := []ui.Pair{
		{Label: "Question", Value: detail.Content.Title},
		{Label: "Asked", Value: ui.When(detail.OpenedAt, p.r.Now, p.r.v.zone())},
	}
	if detail.DueAt != nil {
		pairs = append(pairs, ui.Pair{Label: "Due", Value: ui.When(*detail.DueAt, p.r.Now, p.r.v.zone())})
	}
	for _, seat := range detail.Seats {
		pairs = append(pairs, p.seatPair(detail, seat))
	}
	answer := fmt.Sprintf("%d of %d agreed", detail.Agreed(), detail.Needed())
	return ui.Fold{ID: "fold-review", Title: "Who was asked", Answer: answer, Open: true, Body: ui.Pairs{Items: pairs, Tight: true}}
}

// seatPair is one person: the answer, or that none came.
func (p *panelView) seatPair(detail review.Detail, seat review.SeatRow) ui.Pair {
	pair := ui.Pair{Label: seat.Name}
	answer, answered := detail.AnswerOf(seat.ID)
	switch {
	case answered:
		pair.Rich = ui.Sentence{ui.Plain(saidVerdict(answer.Verdict) + " " + inSentence(ui.WhenBrief(answer.At, p.r.Now, p.r.v.zone())))}
		if answer.Comment != "" {
			pair.Rich = append(pair.Rich, ui.Plain(": “"), ui.Name(answer.Comment), ui.Plain("”"))
		}
	case seat.State == review.SeatOpen && detail.Open():
		pair.Value = "Has not answered yet"
	default:
		pair.Value = "No answer needed any more"
	}
	return pair
}

// saidVerdict is an answer in a word.
func saidVerdict(verdict review.Verdict) string {
	return map[review.Verdict]string{
		review.Approve: "Approved", review.ApproveWithEdits: "Approved with changes", review.Reject: "Refused", review.SendBack: "Asked for changes",
	}[verdict]
}
