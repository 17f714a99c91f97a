package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/review"
	"tollgate/web/ui"
)

// ending is a review that needs no answer from this person any more: what became of
// it, and what that leads to.
type ending struct {
	asking
	settled review.Settled
}

// ended tells whether nothing is left to answer, and how it ended.
func (a asking) ended() (ending, bool) {
	settled, ok := errors.AsType[*review.Settled](a.Refusal)
	if !ok {
		return ending{}, false
	}
	return ending{a, *settled}, true
}

// closed is the end of a review for somebody who was not asked.
func (a asking) closed() (ending, bool) {
	d := a.Review
	if d.Open() {
		return ending{}, false
	}
	settled := review.Settled{Outcome: d.Outcome, At: *d.ClosedAt}
	if last := len(d.Answers) - 1; last >= 0 && d.Outcome.ByPeople() {
		settled.By = d.Answers[last].Name
	}
	return ending{a, settled}, true
}

// verdictWords say what somebody did, to go after "You" or a name.
var verdictWords = map[review.Verdict]string{
	review.Approve: "approved this", review.ApproveWithEdits: "approved this with changes",
	review.SendBack: "asked for changes", review.Reject: "rejected this",
}

var outcomeWords = map[review.Outcome]string{
	review.OutcomeApproved: "approved it", review.OutcomeRejected: "rejected it", review.OutcomeSentBack: "asked for changes",
}

func (e ending) title() string {
	switch {
	case e.settled.Own && e.settled.Verdict == review.ApproveWithEdits:
		return "You approved this with " + ui.Plural(int64(len(e.own().Edits)), "change", "changes")
	case e.settled.Own:
		return "You " + verdictWords[e.settled.Verdict]
	case e.settled.Outcome.ByPeople():
		return "Already decided"
	case e.settled.Outcome == review.OutcomeTimeout:
		return "The deadline passed " + e.onDay()
	}
	return "No decision needed"
}

// onDay is the moment of the end after a verb: "on Thu 3 Dec 14:00 CET".
func (e ending) onDay() string {
	at := e.settled.At
	if e.Review.DueAt != nil {
		at = *e.Review.DueAt
	}
	when := e.when(at)
	if when == ui.When(at, e.Review.Now, e.zone) {
		return "on " + when
	}
	return when
}

// own is what she answered herself.
func (e ending) own() review.Recorded {
	answer, _ := e.Review.AnswerOf(e.Seat.ID)
	return answer
}

// lead says when, by whom, and whether anything was decided.
func (e ending) lead() ui.Sentence {
	at := ui.Plain(e.when(e.settled.At) + ".")
	switch {
	case e.settled.Own:
		return nil // the notice says it
	case e.settled.Outcome.ByPeople() && e.settled.By != "":
		return ui.Sentence{ui.Strong(e.settled.By), ui.Plain(" " + outcomeWords[e.settled.Outcome] + " "), at}
	case e.settled.Outcome.ByPeople():
		return ui.Sentence{ui.Plain("Somebody else who was asked " + outcomeWords[e.settled.Outcome] + " "), at}
	case e.settled.Outcome == review.OutcomeTimeout:
		return ui.Words("Nobody decided in time, so an answer is not taken any more.")
	case e.settled.Outcome == review.OutcomeCancelled && e.run.EndedBy != "" && e.knowsNames():
		return ui.Sentence{ui.Strong(e.run.EndedBy), ui.Plain(" stopped the run "), at, ui.Plain(" Nothing was decided here.")}
	case e.settled.Outcome == review.OutcomeCancelled:
		return ui.Sentence{ui.Plain("The run was stopped "), at, ui.Plain(" Nothing was decided here.")}
	}
	return ui.Sentence{ui.Plain("The run went on without an answer "), at}
}

// recorded confirms her answer.
func (e ending) recorded() ui.Notice {
	return ui.Notice{Status: ui.Done, Text: ui.Sentence{
		ui.Strong("Recorded " + e.when(e.settled.At) + "."), ui.Plain(" You can close this page; it shows your answer whenever you come back."),
	}}
}

// next is what happens now, or happened instead.
func (e ending) next() string {
	leads := e.content().Consequences
	if e.Review.Open() && e.settled.Own {
		left := int64(e.Review.Needed() - e.Review.Agreed())
		return ui.Plural(left, "more person", "more people") + " must agree. Then: " +
			cmp.Or(leads.Approve, "the run is told yes and goes on.")
	}
	switch e.outcome() {
	case review.OutcomeApproved:
		return cmp.Or(leads.Approve, "The run was told yes and goes on by itself.")
	case review.OutcomeRejected:
		return cmp.Or(leads.Reject, "The run was told no, with the comment, and goes on by itself.")
	case review.OutcomeSentBack:
		return "The pipeline gets the comment, works it in and asks again."
	case review.OutcomeTimeout:
		return cmp.Or(leads.Silence, "The run does what its builder set for this case.") +
			" If it still matters to you, tell " + cmp.Or(e.content().Requester, "whoever sent you this") + "."
	}
	return "You have nothing to do."
}

func (e ending) outcome() review.Outcome { return cmp.Or(e.Review.Outcome, e.settled.Outcome) }

func (e ending) nextTitle() string {
	if e.outcome() == review.OutcomeTimeout {
		return "What happened instead"
	}
	return "What happens next"
}

// answered lists what she answered.
func (e ending) answered() ui.Pairs {
	own, labels := e.own(), e.labels()
	label := map[review.Verdict]string{review.SendBack: labels.SendBack, review.Reject: labels.Reject}[own.Verdict]
	pairs := ui.Pairs{Roomy: true, Items: []ui.Pair{
		{Label: "Answer", Value: cmp.Or(label, labels.Approve), Strong: true},
		{Label: "Given", Value: e.proofWords(own)},
	}}
	if own.Comment != "" {
		pairs.Items = append(pairs.Items, ui.Pair{Label: "Comment", Part: ui.Said(own.Comment)})
	}
	pairs.Items = append(pairs.Items, e.changes(own.Edits)...)
	return pairs
}

// proofWords say how she answered, and claim no more than is known.
func (e ending) proofWords(own review.Recorded) string {
	if own.Proof == review.ProofSignIn {
		return "Signed in as " + own.Name
	}
	return "By the link that was sent to " + maskedAddress(own.Address)
}

// maskedAddress shows whom a mail went to without telling it to whoever else holds the
// link.
func maskedAddress(address string) string {
	name, domain, _ := strings.Cut(address, "@")
	letters := []rune(name)
	return string(letters[:min(len(letters), 1)]) + "…@" + domain
}

// statusOfRefusal is the status of a page that tells why an answer was not taken.
func statusOfRefusal(refusal error) int {
	if refusal == nil {
		return http.StatusOK
	}
	return problemOf(refusal).status
}

// actions lead on for members.
func (e ending) actions() ui.Actions {
	if !e.inside {
		return nil
	}
	run := ui.Button{Text: "Open the run", Kind: ui.Primary, Href: pathIn(e.Tenant, "runs", e.run.ID.String())}
	all := ui.Button{Text: "All reviews", Kind: ui.Quiet, Href: pathIn(e.Tenant, "reviews")}
	return slices.Concat(ui.Actions{all}, ui.Actions{run})
}

// reference is what she can quote.
func (a asking) reference() string { return fmt.Sprintf("Review %s", a.Review.ID.Short()) }
