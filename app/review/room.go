package review

import (
	"context"
	"time"

	"tollgate/tenants"
)

// Review, Seat and Answer name the identities' types; the rows themselves are
// Detail, SeatRow and Recorded.
type (
	Review struct{}
	Seat   struct{}
	Answer struct{}
)

// ID identifies a review, SeatID one person's place in it, AnswerID a decision.
type (
	ID       = tenants.IDOf[Review]
	SeatID   = tenants.IDOf[Seat]
	AnswerID = tenants.IDOf[Answer]
)

// Room is where reviews are opened, answered and closed.
type Room struct {
	secret tenants.Secret
	outbox Outbox
}

// New makes the room. Links are derived from the secret; the outbox mails them.
func New(secret tenants.Secret, outbox Outbox) *Room {
	return &Room{secret: secret, outbox: outbox}
}

// Outbox takes the mails to people who are asked, in the transaction that makes their
// seats: either both are there or none.
type Outbox interface {
	Invite(ctx context.Context, tx tenants.Tx, invitation Invitation) error
	// FirstSent tells when the first mail to one of the seats was taken by its
	// server; zero while none was.
	FirstSent(ctx context.Context, tx tenants.Tx, seats []SeatID) (time.Time, error)
}

// Invitation is what the mail to one seat says. The link in it is derived at the
// moment of sending, from seat and generation.
type Invitation struct {
	Seat       SeatID
	Generation int
	RunID      [16]byte
	StepRunID  [16]byte

	ToAddress string
	ToName    string
	Why       string // why she is asked: a group or a role; may be empty

	Requester    string // who asks; empty when nobody started the run
	PipelineName string
	Title        string
	Facts        []Fact
	Proposal     Proposal
	CanEdit      bool
	Labels       Labels
	Consequences Consequences
	Needed       int // how many must agree
	Asked        int // of how many
	Due          *time.Time
	Zone         string // IANA name, in which she reads times
}
