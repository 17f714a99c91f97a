package mail

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Money tells somebody about money: that a raise is asked for, what became of it, or how
// far a cap is used. It leads to a page for members, who sign in there: whoever else has
// the mail can decide nothing with it.
type Money struct {
	What   Kind   `json:"what"` // KindMoneyRequest, KindMoneyAnswer or KindSpendAlert
	Title  string `json:"title"`
	Lead   string `json:"lead"`
	Facts  []Fact `json:"facts"`
	Said   string `json:"said"` // what somebody wrote about it
	SaidBy string `json:"said_by"`
	Button string `json:"button"`
	Path   string `json:"path"` // of the page: "/w/…/caps/workspace"
}

func (m Money) kind() Kind { return m.What }

// pathForm is what an address of ours looks like, without a host.
var pathForm = regexp.MustCompile(`^/w/[0-9a-f-]{36}(/[A-Za-z0-9._~%-]+)*$`)

func (m Money) cleaned() (Body, error) {
	switch m.What {
	case KindMoneyRequest, KindMoneyAnswer, KindSpendAlert:
	default:
		return nil, fmt.Errorf("%w: %q is not about money", ErrBadMessage, m.What)
	}
	if !pathForm.MatchString(m.Path) {
		return nil, fmt.Errorf("%w: it leads to no page", ErrBadMessage)
	}
	facts := m.Facts[:min(len(m.Facts), mailFacts)]
	m.Facts = nil
	for _, fact := range facts {
		m.Facts = append(m.Facts, Fact{Label: line(fact.Label, maxName), Value: line(fact.Value, mailLine)})
	}
	m.Said = cut(strings.TrimSpace(text(m.Said)), mailProposal)
	m.SaidBy, m.Button = line(m.SaidBy, maxName), line(m.Button, maxName)
	m.Title, m.Lead = line(m.Title, maxSubject), line(m.Lead, mailLine)
	return m, nil
}

func (m Money) subject() string { return m.Title }

func (Money) giveUp(now time.Time) time.Time { return now.Add(patience) }

func (m Money) compose(c composing) (parts, error) {
	return c.render("money", c.workspace, moneyPage{
		Money: m, page: c.page(m.Title, m.Lead, "AI spend caps, sent with "+product), Link: c.links.BaseURL + m.Path,
	})
}

type moneyPage struct {
	Money
	page
	Link string
}
