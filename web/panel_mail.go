package web

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/mail"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// readMails reads what went out for the step, or should have.
func (p *panelView) readMails(ctx context.Context, tx tenants.Tx) error {
	var err error
	p.Mails, err = p.r.v.s.Outbox.OfStepRun(ctx, tx, p.Passage.Step.ID)
	return err
}

// deliveryFold tells how far each mail of the step is. It is open where one does not get
// through: whoever waits for an answer must know that nobody was asked.
func (p *panelView) deliveryFold() ui.Fold {
	if len(p.Mails) == 0 {
		return ui.Fold{}
	}
	var pairs []ui.Pair
	sent := 0
	for _, one := range p.Mails {
		pairs = append(pairs, ui.Pair{Label: one.To.Email, Value: p.delivered(one)})
		if one.State == mail.StateSent {
			sent++
		}
	}
	if len(p.Mails) == 1 {
		pairs = append(pairs, ui.Pair{Label: "Message-ID", Value: p.Mails[0].MessageID})
	}
	return ui.Fold{ID: "fold-delivery", Title: "Delivery", Answer: fmt.Sprintf("%d of %d sent", sent, len(p.Mails)),
		Open: slices.ContainsFunc(p.Mails, inTrouble), Body: ui.Pairs{Items: pairs, Tight: true}}
}

// inTrouble tells a mail that the mail server did not take so far.
func inTrouble(m mail.Mail) bool { return m.State != mail.StateSent && m.LastError != "" }

// delivered says what became of a mail, and what comes next.
func (p *panelView) delivered(m mail.Mail) string {
	now, zone := p.r.Now, p.r.v.zone()
	switch {
	case m.State == mail.StateSent && m.SentAt != nil:
		return "Taken by the mail server " + inSentence(ui.WhenBrief(*m.SentAt, now, zone)) + triedTimes(m)
	case m.State == mail.StateFailed:
		return "Not delivered" + triedTimes(m) + ": " + m.LastError + " Nothing more is tried. Check the address."
	case m.State == mail.StateSending:
		return "On its way" + triedTimes(m)
	case m.LastError != "" && m.Kind == mail.KindStep:
		return "Not sent yet" + triedTimes(m) + ": " + m.LastError
	case m.LastError != "":
		return "Not sent yet" + triedTimes(m) + ": " + m.LastError + " The next try is " + inSentence(ui.WhenBrief(m.NextTryAt, now, zone)) + "."
	}
	return "Waits to be sent"
}

func triedTimes(m mail.Mail) string {
	if m.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", try %d", m.Attempt)
}
