package review

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reasons why a review cannot be opened, seen or answered.
var (
	// ErrNobodyToAsk: no one is left who may decide, or fewer than must agree.
	ErrNobodyToAsk = errors.New("nobody is left who may decide this review")
	// ErrBadQuestion: the question cannot be asked as it is. The message says why.
	ErrBadQuestion = errors.New("this question cannot be asked")
	// ErrNotFound: the workspace has no such review.
	ErrNotFound = errors.New("there is no such review")
	// ErrUnknownLink: the link was never ours, is cut, altered or revoked. All of
	// these look the same from outside.
	ErrUnknownLink = errors.New("this review link is not valid")
	// ErrLinkExpired: the link is right and too old; a new one can be mailed.
	ErrLinkExpired = errors.New("this review link has expired")
	// ErrNotYours: the seat belongs to somebody else.
	ErrNotYours = errors.New("this review asks somebody else")
	// ErrRequester: who started the run may not decide its review.
	ErrRequester = errors.New("who started a run may not decide its review")
	// ErrProofNeeded: the review asks for a stronger proof of who answers.
	ErrProofNeeded = errors.New("this review needs a stronger proof of who answers")
	// ErrChanged: what the answer was given to is not what the review asks.
	ErrChanged = errors.New("the question changed after it was shown")
	// ErrAlreadyDecided: people decided already. It comes as *Settled.
	ErrAlreadyDecided = errors.New("this review is already decided")
	// ErrNotOpen: the review ended without people. It comes as *Settled.
	ErrNotOpen = errors.New("this review is not open any more")
)

// Settled says that no answer is needed any more, and what happened instead. It is
// ErrAlreadyDecided where people decided, else ErrNotOpen.
type Settled struct {
	Outcome Outcome   // "" when only this seat has answered and the review is still open
	Verdict Verdict   // of the seat that asks, if it has answered
	Own     bool      // the seat that asks has answered
	By      string    // who decided; empty if whoever asks may not know, or nobody did
	At      time.Time // of the own answer, else of the end
}

// Error says what happened.
func (s *Settled) Error() string {
	if s.Own {
		return fmt.Sprintf("this seat answered %q at %s", s.Verdict, s.At.Format(time.RFC3339))
	}
	return fmt.Sprintf("this review ended as %q at %s", s.Outcome, s.At.Format(time.RFC3339))
}

// Is tells the two kinds apart for errors.Is.
func (s *Settled) Is(target error) bool {
	if s.Own || s.Outcome.ByPeople() {
		return target == ErrAlreadyDecided
	}
	return target == ErrNotOpen
}

// NotDue says that a review cannot time out yet. At Due it is worth trying again.
type NotDue struct{ Due time.Time }

// Error says when.
func (n *NotDue) Error() string {
	return "this review is not due before " + n.Due.Format(time.RFC3339)
}

// FieldProblem says what is wrong with one part of an answer.
type FieldProblem struct {
	Field   string // name of an editable field, or "verdict" or "comment"
	Message string
}

// Invalid is an answer that cannot be taken as it is. Nothing is recorded.
type Invalid struct{ Problems []FieldProblem }

// Error lists the problems.
func (i *Invalid) Error() string {
	var parts []string
	for _, problem := range i.Problems {
		parts = append(parts, problem.Field+": "+problem.Message)
	}
	return "this answer cannot be taken: " + strings.Join(parts, "; ")
}

func invalid(field, message string) error {
	return &Invalid{Problems: []FieldProblem{{Field: field, Message: message}}}
}
