package mail

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// ReviewRequest asks somebody to decide. Its link is derived when it is sent.
type ReviewRequest struct {
	Requester    string     `json:"requester"` // who asks; empty when nobody started the run
	Why          string     `json:"why"`       // group or role for which she is asked; may be empty
	PipelineName string     `json:"pipeline"`
	Title        string     `json:"title"`
	Facts        []Fact     `json:"facts"`
	More         int        `json:"more"` // facts that are on the page only
	Proposal     string     `json:"proposal"`
	ProposalBy   string     `json:"proposal_by"`
	ProposalAI   bool       `json:"proposal_ai"`
	CanEdit      bool       `json:"can_edit"`
	ApproveLabel string     `json:"approve_label"` // "" means Approve
	RejectLabel  string     `json:"reject_label"`  // "" means Reject
	OnApprove    string     `json:"on_approve"`
	OnReject     string     `json:"on_reject"`
	OnSilence    string     `json:"on_silence"`
	Needed       int        `json:"needed"` // how many must agree
	Asked        int        `json:"asked"`  // of how many
	Due          *time.Time `json:"due"`
	Zone         string     `json:"zone"` // IANA name, in which she reads times
}

// Fact is one line of what a reviewer should know.
type Fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// A mail shows the beginning; the page behind the link shows all.
const (
	mailFacts    = 6
	mailProposal = 600 // characters
	mailLine     = 300
)

func (ReviewRequest) kind() Kind { return KindReviewRequest }

func (r ReviewRequest) cleaned() (Body, error) {
	facts := r.Facts
	if len(facts) > mailFacts {
		facts, r.More = facts[:mailFacts], len(facts)-mailFacts
	}
	r.Facts = nil
	for _, fact := range facts {
		r.Facts = append(r.Facts, Fact{Label: line(fact.Label, maxName), Value: line(fact.Value, mailLine)})
	}
	r.Proposal = cut(strings.TrimSpace(text(r.Proposal)), mailProposal)
	for _, field := range []*string{&r.Requester, &r.Why, &r.PipelineName, &r.ProposalBy, &r.ApproveLabel, &r.RejectLabel} {
		*field = line(*field, maxName)
	}
	for _, field := range []*string{&r.Title, &r.OnApprove, &r.OnReject, &r.OnSilence} {
		*field = line(*field, mailLine)
	}
	r.ApproveLabel, r.RejectLabel = cmp.Or(r.ApproveLabel, "Approve"), cmp.Or(r.RejectLabel, "Reject")
	return r, nil
}

// subject says what to do and until when; the time never falls victim to a cut.
func (r ReviewRequest) subject() string {
	if r.Due == nil {
		return line(r.Title, maxSubject)
	}
	title := line(r.Title, maxSubject-60)
	if last, _ := utf8.DecodeLastRuneInString(title); !strings.ContainsRune("?!.…", last) {
		title += "."
	}
	return title + " Decide by " + when(*r.Due, r.Due.Year(), r.Zone)
}

func (ReviewRequest) giveUp(now time.Time) time.Time { return now.Add(patience) }

func (r ReviewRequest) compose(c composing) (parts, error) {
	link := c.links.Review(c.mail.SeatID, c.mail.Generation)
	page := requestPage{ReviewRequest: r, page: c.page(r.subject(), r.ask(), "Reviews, sent with "+product), Link: link}
	if r.Due != nil {
		page.Deadline = when(*r.Due, c.now.Year(), r.Zone)
	}
	return c.render("review", c.workspace+" reviews", page)
}

// ask is who asks and why her.
func (r ReviewRequest) ask() string {
	who := r.Requester
	if who == "" {
		who = "The pipeline “" + r.PipelineName + "”"
	}
	if r.Why == "" {
		return who + " asks you to decide."
	}
	return who + " asks you, because you are in “" + r.Why + "”."
}

// requestPage is what the templates of a review request see.
type requestPage struct {
	ReviewRequest
	page
	Link     string
	Deadline string
}

// Quorum says how many must agree, where it is more than one.
func (r requestPage) Quorum() string {
	switch {
	case r.Asked <= 1:
		return ""
	case r.Needed <= 1:
		return fmt.Sprintf("%d people are asked; the first answer stands.", r.Asked)
	case r.Needed == r.Asked:
		return fmt.Sprintf("All %d people must agree.", r.Asked)
	}
	return fmt.Sprintf("%d of %d people must agree.", r.Needed, r.Asked)
}
