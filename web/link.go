package web

import (
	"context"
	"errors"
	"net/http"

	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// linkPage is what stands behind the link of a mail: the question, or what became of
// it. Looking changes nothing, however often and by whatever program.
func (s *Server) linkPage(v *visit) error {
	a, err := v.openLink()
	if err != nil {
		return err
	}
	if choice := review.Verdict(v.QueryParam(choiceField)); choice == review.Approve || choice == review.Reject || choice == review.SendBack {
		a.given.Verdict = choice
	}
	return v.showLink(http.StatusOK, a)
}

// decideByLink takes the answer of whoever holds the link.
func (s *Server) decideByLink(v *visit) error {
	a, err := v.openLink()
	if err != nil {
		return err
	}
	if a.given, err = v.readAnswer(a.Review); err != nil {
		return err
	}
	if a.given.show && a.Refusal == nil {
		return v.showLink(a.shown())
	}
	if !v.holdsKey(a.viewer.Token, a.given.key) {
		return v.askAgain(a)
	}
	if err := v.decide(a, a.given); err != nil {
		return v.refuseLink(a, err)
	}
	return v.redirect(a.action)
}

// openLink finds what the link in the address opens for this browser.
func (v *visit) openLink() (asking, error) {
	viewer := review.Viewer{Token: v.Param("token"), User: v.user, Client: v.clientAddr()}
	view, err := v.s.Reviews.BySeatToken(v.ctx(), v.s.DB, viewer)
	if err != nil {
		return asking{}, err
	}
	a, err := v.askingOf(view, viewer)
	a.action = pathOfLink(viewer.Token)
	return a, err
}

// askAgain answers a form without the key of this browser. Nothing was decided; the
// form comes again as it was, with the key that it lacked.
func (v *visit) askAgain(a asking) error {
	a.notice = ui.Notice{Status: ui.Stuck, Alert: true, Text: ui.Sentence{
		ui.Strong("Nothing is decided yet."),
		ui.Plain(" Your browser did not send back the cookie of this page, so we cannot tell a person from a mail scanner. " +
			"Press the button once more. If you then read this again, your browser blocks cookies here: " +
			"allow them for this site, or open the link in another browser. The cookie holds a random number and nothing about you."),
	}}
	return v.showLink(http.StatusForbidden, a)
}

// refuseLink shows why an answer was not taken. Whatever she typed is kept.
func (v *visit) refuseLink(a asking, refusal error) error {
	again, err := v.openLink()
	if err != nil {
		return err
	}
	if notice, told := refusalNotice(refusal); told {
		again.notice = notice
	}
	again.given, again.faults = a.given, faultsOf(refusal)
	if again.Refusal == nil && again.faults == nil && !errors.Is(refusal, review.ErrChanged) {
		return refusal
	}
	return v.showLink(problemOf(refusal).status, again)
}

// refusalNotice says that an answer was not taken where the page does not say it yet.
func refusalNotice(refusal error) (ui.Notice, bool) {
	switch {
	case errors.Is(refusal, review.ErrChanged):
		return ui.Notice{Status: ui.Stuck, Alert: true, Text: ui.Sentence{
			ui.Strong("This changed since you opened it."), ui.Plain(" Nothing is decided. Below is what is asked now; what you typed is kept. Look at it and decide again."),
		}}, true
	case errors.Is(refusal, review.ErrAlreadyDecided):
		return ui.Notice{Status: ui.Stuck, Alert: true, Text: ui.Sentence{
			ui.Strong("Your answer was not taken."), ui.Plain(" There is one already, and it stands as you see it here."),
		}}, true
	case errors.Is(refusal, review.ErrNotOpen):
		return ui.Notice{Status: ui.Stuck, Alert: true, Text: ui.Sentence{
			ui.Strong("Your answer came too late and was not taken."), ui.Plain(" What happened instead stands below."),
		}}, true
	}
	return ui.Notice{}, false
}

// showLink draws the page that fits to what she may do.
func (v *visit) showLink(status int, a asking) error {
	around := v.alone(a.content().Title)
	around.For = "for " + a.workspace.Name
	around.Zone = ui.Zone(a.Review.Now, a.zone)
	around.End = a.reference()
	around.Foot = []ui.Link{{Text: "Sent to " + maskedAddress(a.Seat.Address) + "; not you? Do nothing, and nothing happens."}}
	if end, ok := a.ended(); ok {
		around.Title = end.title()
		return v.page(status, around, endBody(end))
	}
	if a.Refusal != nil {
		barred, err := v.barred(a)
		if err != nil {
			return err
		}
		around.Title = barred.Title
		return v.page(statusOfRefusal(a.Refusal), around, barredBody(barred))
	}
	a.key = v.linkKey(a.viewer.Token)
	around.Title = a.title()
	return v.page(status, around, questionBody(a))
}

// barredPage is a right link that this browser may not answer by: what is missing, and
// the way to it.
type barredPage struct {
	Over    string
	Title   string
	Text    ui.Sentence
	Actions ui.Actions
}

// barred words why the holder of a right link may not answer. The question itself is
// not on these pages: who may not answer learns it elsewhere if at all.
func (v *visit) barred(a asking) (barredPage, error) {
	p := barredPage{Over: "Sent to " + maskedAddress(a.Seat.Address) + " for " + a.workspace.Name}
	inside := pathIn(a.Tenant, "reviews", a.Review.ID.String())
	switch {
	case errors.Is(a.Refusal, review.ErrLinkExpired) && !a.Review.Open():
		p.Title, p.Text = "This link is too old", ui.Words("The request behind it has ended, so you have nothing to do.")
	case errors.Is(a.Refusal, review.ErrLinkExpired):
		p.Title, p.Text = "This link is too old", ui.Words("It worked for 30 days. Ask for a new one, and it comes to the same mailbox.")
		p.Actions = ui.Actions{ui.PostButton{
			Action: a.action + "/renew", Hidden: []ui.Hidden{{Name: keyField, Value: v.linkKey(a.viewer.Token)}},
			Button: ui.Button{Text: "Mail me a new link", Kind: ui.Primary, TestID: "renew"},
		}}
	case errors.Is(a.Refusal, review.ErrProofNeeded):
		p.Title = "Sign in to see this request"
		p.Text = ui.Words("The link alone is not enough to answer it. Sign in with the address that the mail was sent to; you get a code there, and need no password.")
		p.Actions = ui.Actions{ui.Button{Text: "Sign in", Kind: ui.Primary, Href: signInThen(inside), TestID: "sign-in"}}
	default:
		return v.wrongPerson(a, p, inside)
	}
	return p, nil
}

// wrongPerson is the page of somebody who is signed in and may not answer from this
// seat: who started the run, or who was asked herself. In local mode one may go on as
// the person who was asked.
func (v *visit) wrongPerson(a asking, p barredPage, inside string) (barredPage, error) {
	p.Title = "Somebody else must decide this"
	p.Text = ui.Words("You are signed in, and you started this run. Who starts a run may not decide its review.")
	look := ui.Button{Text: "Look at the request", Href: inside}
	if errors.Is(a.Refusal, review.ErrNotYours) {
		p.Title = "This link is somebody else’s"
		p.Text = ui.Words("You are signed in, and you were asked yourself. Nobody answers twice, so answer from your own seat.")
		look.Text = "Open my own request"
	}
	p.Actions = ui.Actions{look}
	if !v.isLocal() {
		return p, nil
	}
	people, err := v.demoPeople()
	if err != nil {
		return p, err
	}
	for _, person := range people {
		if person.User.ID == a.Seat.User {
			p.Actions = append(p.Actions, ui.PostButton{
				Action: "/signin/as", Hidden: []ui.Hidden{{Name: "user", Value: person.User.ID.String()}, {Name: "next", Value: inside}},
				Button: ui.Button{Text: "Continue as " + person.User.Name, Kind: ui.Primary, TestID: "continue-as"},
			})
			return p, nil
		}
	}
	p.Text = append(p.Text, ui.Plain(" To play the person who was asked, open the link in a private window."))
	return p, nil
}

// renewLink mails a new link to the same mailbox in place of one that is too old. The
// old one opens nothing any more after that, so it can be asked for once.
func (s *Server) renewLink(v *visit) error {
	a, err := v.openLink()
	if err != nil {
		return err
	}
	if !errors.Is(a.Refusal, review.ErrLinkExpired) {
		return v.redirect(a.action)
	}
	form, err := v.posted()
	if err != nil {
		return err
	}
	if !v.holdsKey(a.viewer.Token, form.Get(keyField)) {
		return v.showLink(http.StatusOK, a)
	}
	err = s.DB.InTx(v.ctx(), a.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		return s.Reviews.Renew(ctx, tx, a.Seat.ID)
	})
	if err != nil {
		return err
	}
	v.saved = true
	around := v.alone("A new link is on its way")
	return v.page(http.StatusOK, around, barredBody(barredPage{
		Over: "For " + a.workspace.Name, Title: around.Title,
		Text: ui.Words("It goes to " + maskedAddress(a.Seat.Address) + " within a minute. This old link opens nothing any more."),
	}))
}

func pathOfLink(token string) string { return "/r/" + token }
