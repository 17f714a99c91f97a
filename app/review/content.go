package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Content is what reviewers are shown, and what the digest is made of.
type Content struct {
	PipelineName string          `json:"pipeline"`
	RunName      string          `json:"run"`
	Requester    string          `json:"requester"` // name of who asks; may be empty
	Round        int             `json:"round"`
	Title        string          `json:"title"`
	Body         string          `json:"body"`
	Facts        []Fact          `json:"facts"`
	Proposal     Proposal        `json:"proposal"`
	Editable     []EditableField `json:"editable"`
	Labels       Labels          `json:"labels"`
	Consequences Consequences    `json:"consequences"`
}

// Bounds of a question. What is judged is never cut: a question beyond them is refused.
const (
	maxContent  = 1 << 20 // bytes, all together
	maxFacts    = 100
	maxEditable = 50
	maxPeople   = 200
	maxLine     = 300 // characters of a title, a name or a label
)

// content checks the question and gives what is shown of it.
func (q Question) content(requester string) (Content, error) {
	if len(q.Facts) > maxFacts || len(q.Editable) > maxEditable {
		return Content{}, fmt.Errorf("%w: it has more than %d facts or %d fields to edit", ErrBadQuestion, maxFacts, maxEditable)
	}
	c := Content{
		PipelineName: line(q.PipelineName), RunName: line(q.RunName), Requester: line(requester),
		Round: max(q.Round, 1), Title: line(q.Title), Body: text(q.Body), Editable: slices.Clone(q.Editable),
		Proposal:     Proposal{Text: text(q.Proposal.Text), By: line(q.Proposal.By), AI: q.Proposal.AI},
		Labels:       Labels{Approve: line(q.Labels.Approve), Reject: line(q.Labels.Reject), SendBack: line(q.Labels.SendBack)},
		Consequences: Consequences{Approve: text(q.Consequences.Approve), Reject: text(q.Consequences.Reject), Silence: text(q.Consequences.Silence)},
	}
	for _, fact := range q.Facts {
		c.Facts = append(c.Facts, Fact{Label: line(fact.Label), Value: text(fact.Value)})
	}
	if c.Title == "" {
		return Content{}, fmt.Errorf("%w: it has no words", ErrBadQuestion)
	}
	return c, checkEditable(c.Editable)
}

// encode gives the exact bytes that are kept, and their digest.
func (c Content) encode() (string, []byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrBadQuestion, err)
	}
	if out.Len() > maxContent {
		return "", nil, fmt.Errorf("%w: it shows %d bytes and may show %d", ErrBadQuestion, out.Len(), maxContent)
	}
	sum := sha256.Sum256(out.Bytes())
	return out.String(), sum[:], nil
}

// text makes foreign text fit for storing and showing: valid UTF-8, plain line ends,
// no other control characters.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r == 0:
			return '\uFFFD'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// line is text in one line of at most maxLine characters, cut where one can see it.
func line(s string) string {
	s = strings.Join(strings.Fields(text(s)), " ")
	if runes := []rune(s); len(runes) > maxLine {
		return string(runes[:maxLine-1]) + "…"
	}
	return s
}
