package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// reviewPage is a review for members: whoever is asked answers it there, the others see
// whom it asks.
func (s *Server) reviewPage(v *visit) error {
	a, err := v.openReview()
	if err != nil {
		return err
	}
	return v.showReview(http.StatusOK, a)
}

// decideSignedIn takes the answer of a member who is asked.
func (s *Server) decideSignedIn(v *visit) error {
	a, err := v.openReview()
	if err != nil {
		return err
	}
	if a.readOnly {
		return a.Refusal
	}
	if a.given, err = v.readAnswer(a.Review); err != nil {
		return err
	}
	if a.given.show && a.Refusal == nil {
		return v.showReview(a.shown())
	}
	if err := v.decide(a, a.given); err != nil {
		return v.refuseSignedIn(a, err)
	}
	return v.redirect(a.action)
}

// openReview reads the review in the address with the member's own seat, if she has
// one.
func (v *visit) openReview() (asking, error) {
	id, err := idParam[review.Review](v, "review")
	if err != nil {
		return asking{}, err
	}
	viewer := review.Viewer{User: v.user, Client: v.clientAddr()}
	var view review.View
	err = v.s.DB.InTx(v.ctx(), v.me.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		view, err = v.s.Reviews.ForMember(ctx, tx, id, viewer)
		if !errors.Is(err, review.ErrNotYours) {
			return err
		}
		view.Tenant, view.Refusal = tx.Tenant, err
		view.Review, err = v.s.Reviews.ByID(ctx, tx, id)
		return err
	})
	if err != nil {
		return asking{}, err
	}
	if view.Review.Requester == v.user && !view.Review.AllowRequester {
		view.Refusal = review.ErrRequester
	}
	a, err := v.askingOf(view, viewer)
	a.inside, a.zone, a.action = true, v.zone(), v.path("reviews", id.String())
	a.readOnly = errors.Is(view.Refusal, review.ErrNotYours) || errors.Is(view.Refusal, review.ErrRequester)
	return a, err
}

func (v *visit) refuseSignedIn(a asking, refusal error) error {
	again, err := v.openReview()
	if err != nil {
		return err
	}
	again.notice, _ = refusalNotice(refusal)
	again.given, again.faults = a.given, faultsOf(refusal)
	if again.Refusal == nil && again.faults == nil && !errors.Is(refusal, review.ErrChanged) {
		return refusal
	}
	return v.showReview(problemOf(refusal).status, again)
}

// showReview draws the page that fits to what the member may do.
func (v *visit) showReview(status int, a asking) error {
	end, over := a.ended()
	if !over && a.readOnly {
		end, over = a.closed()
	}
	around := v.frame(a.title(), inReviews)
	around.Narrow = true
	around.Foot = append(around.Foot, ui.Link{Text: a.reference()})
	if over {
		around.Title = end.title()
		return v.page(status, around, endBody(end))
	}
	if a.readOnly {
		a.notice = a.whyNot()
	}
	return v.page(status, around, questionBody(a))
}

// whyNot tells a member why she only looks, and who decides.
func (a asking) whyNot() ui.Notice {
	still := a.names(func(seat review.SeatRow) bool { return seat.State == review.SeatOpen })
	decides := ui.Sentence{ui.Plain(" It asks "), ui.Name(ui.List(still)), ui.Plain(".")}
	if errors.Is(a.Refusal, review.ErrRequester) {
		return ui.Notice{Icon: ui.IconPeople, Text: append(ui.Sentence{
			ui.Strong("Somebody else must decide this."), ui.Plain(" You started the run, and who starts a run may not decide its review."),
		}, decides...)}
	}
	return ui.Notice{Icon: ui.IconEye, Text: append(ui.Sentence{ui.Strong("You can look, and others decide.")}, decides...)}
}

// inboxView is what waits for one member, and what she decided last.
type inboxView struct {
	v     *visit
	Asked []review.Waiting
	Given []review.Given
}

// recentAnswers is how many of her last decisions the inbox shows.
const recentAnswers = 6

func (s *Server) inboxPage(v *visit) error {
	view := inboxView{v: v}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if view.Asked, err = s.Reviews.Inbox(ctx, tx, v.user); err != nil {
			return err
		}
		view.Given, err = s.Reviews.Given(ctx, tx, v.user, recentAnswers)
		return err
	})
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Reviews", inReviews), inboxBody(view))
}

func (i inboxView) title() string {
	if len(i.Asked) == 0 {
		return "No decision waits for you"
	}
	return count(len(i.Asked), "decision waits", "decisions wait") + " for you"
}

// lead says what is next.
func (i inboxView) lead() ui.Sentence {
	if len(i.Asked) == 0 {
		return nil
	}
	if due := i.Asked[0].DueAt; due != nil {
		return ui.Sentence{
			ui.Plain("The nearest deadline is "), ui.Strong(inSentence(ui.When(*due, i.v.now, i.v.zone()))),
			ui.Plain(", " + inLow(ui.Until(*due, i.v.now)) + "."),
		}
	}
	return ui.Words("None of them has a deadline.")
}

// inLow puts "In 3 h" into the middle of a sentence.
func inLow(words string) string {
	if rest, ok := strings.CutPrefix(words, "In "); ok {
		return "in " + rest
	}
	return words
}

// due is a part of the inbox: what is due until a moment.
type due struct {
	ID, Title string
	Rows      []ui.Row
}

// parts sorts the inbox by how near the deadlines are; empty parts are left out.
func (i inboxView) parts() []due {
	all := []due{{ID: "today", Title: "Today"}, {ID: "week", Title: "Within a week"}, {ID: "later", Title: "Later"}, {ID: "open", Title: "No deadline"}}
	for _, one := range i.Asked {
		at := partOf(one.DueAt, i.v.now, i.v.zone())
		all[at].Rows = append(all[at].Rows, i.row(one))
	}
	var parts []due
	for _, part := range all {
		if len(part.Rows) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

func partOf(at *time.Time, now time.Time, zone *time.Location) int {
	switch {
	case at == nil:
		return 3
	case ui.Day(*at, now, zone) == "Today":
		return 0
	case at.Before(now.AddDate(0, 0, 7)):
		return 1
	}
	return 2
}

func (i inboxView) row(one review.Waiting) ui.Row {
	row := ui.Row{
		Name: one.Title, Href: i.v.path("reviews", one.Review.String()), End: "no deadline", EndNote: "asked " + inSentence(ui.WhenBrief(one.OpenedAt, i.v.now, i.v.zone())),
		Reason: ui.Sentence{ui.Name(one.PipelineName)}, TestID: "review",
	}
	if one.RunName != "" {
		row.Reason = append(row.Reason, ui.Plain(" · "), ui.Name(one.RunName))
	}
	if one.DueAt != nil {
		row.End = "due " + inSentence(ui.WhenBrief(*one.DueAt, i.v.now, i.v.zone()))
	}
	return row
}

func (i inboxView) given() []ui.Row {
	badges := map[review.Verdict]ui.Badge{
		review.Approve:          {Status: ui.Done, Words: "Approved"},
		review.ApproveWithEdits: {Status: ui.Done, Words: "Approved with changes"},
		review.SendBack:         {Status: ui.Retrying, Words: "Sent back"},
		review.Reject:           {Status: ui.Failed, Words: "Rejected"},
	}
	var rows []ui.Row
	for _, one := range i.Given {
		badge := badges[one.Verdict]
		rows = append(rows, ui.Row{
			Name: one.Title, Href: i.v.path("reviews", one.Review.String()), Badge: &badge,
			Reason: ui.Words(ui.WhenBrief(one.At, i.v.now, i.v.zone())),
		})
	}
	return rows
}
