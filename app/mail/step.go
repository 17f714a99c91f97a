package mail

import (
	"fmt"
	"strings"
	"time"
)

// Step is what an e-mail step of a pipeline sends. Its words come from data and from
// models, so they are shown as they are: no markup, no link of theirs becomes ours.
type Step struct {
	To      []Address `json:"to"`
	CC      []Address `json:"cc,omitempty"`
	ReplyTo *Address  `json:"reply_to,omitempty"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`

	Attachments []Attachment `json:"attachments,omitempty"`
}

// maxText bounds a step's text, in bytes. It is refused, not cut: nobody would notice
// that a sent mail is not the whole one.
const maxText = 256 << 10

func (Step) kind() Kind { return KindStep }

func (s Step) cleaned() (Body, error) {
	if len(s.To) == 0 {
		return nil, fmt.Errorf("%w: it has no recipient", ErrBadMessage)
	}
	if len(s.To)+len(s.CC) > maxRecipients {
		return nil, fmt.Errorf("%w: it has %d recipients and may have %d", ErrBadMessage, len(s.To)+len(s.CC), maxRecipients)
	}
	var err error
	if s.To, err = cleanedAll(s.To); err != nil {
		return nil, err
	}
	if s.CC, err = cleanedAll(s.CC); err != nil {
		return nil, err
	}
	if s.ReplyTo != nil {
		reply, err := s.ReplyTo.cleaned()
		if err != nil {
			return nil, err
		}
		s.ReplyTo = &reply
	}
	if s.Attachments, err = cleanedFiles(s.Attachments); err != nil {
		return nil, err
	}
	s.Subject, s.Text = line(s.Subject, maxSubject), strings.TrimSpace(text(s.Text))
	if s.Subject == "" {
		return nil, fmt.Errorf("%w: it has no subject", ErrBadMessage)
	}
	if len(s.Text) > maxText {
		return nil, fmt.Errorf("%w: its text has %d bytes and may have %d", ErrBadMessage, len(s.Text), maxText)
	}
	return s, nil
}

func cleanedAll(list []Address) ([]Address, error) {
	var out []Address
	for _, address := range list {
		clean, err := address.cleaned()
		if err != nil {
			return nil, err
		}
		out = append(out, clean)
	}
	return out, nil
}

func (s Step) subject() string { return s.Subject }

func (Step) giveUp(now time.Time) time.Time { return now.Add(patience) }

func (s Step) compose(c composing) (parts, error) {
	out, err := c.render("step", c.workspace, stepPage{page: c.page(s.Subject, "", ""), Text: s.Text})
	out.to, out.cc, out.replyTo, out.attachments = s.To, s.CC, s.ReplyTo, s.Attachments
	return out, err
}

type stepPage struct {
	page
	Text string
}
