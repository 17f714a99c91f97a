package mail

import (
	"time"

	"tollgate/tenants"
)

// LoginCode brings somebody the digits to sign in with. They are derived when the mail
// is sent and are never stored.
type LoginCode struct {
	ID      tenants.LoginCodeID `json:"id"`
	Expires time.Time           `json:"expires"`
}

func (LoginCode) kind() Kind { return KindLoginCode }

func (l LoginCode) cleaned() (Body, error) { return l, nil }

// subject does not hold the digits: subjects are shown on locked screens.
func (LoginCode) subject() string { return "Your code to sign in to " + product }

func (l LoginCode) giveUp(time.Time) time.Time { return l.Expires }

func (l LoginCode) compose(c composing) (parts, error) {
	digits := c.links.Digits(l.ID)
	minutes := max(int(l.Expires.Sub(c.mail.CreatedAt).Round(time.Minute)/time.Minute), 1)
	return c.render("code", product, codePage{
		page:   c.page(l.subject(), "Type it on the page where you asked for it.", "Sign-in"),
		Digits: digits[:3] + " " + digits[3:], Minutes: minutes,
	})
}

type codePage struct {
	page
	Digits  string
	Minutes int
}
