package mail

import "time"

// State says how far a mail is.
type State string

// The states of a mail.
const (
	StateQueued  State = "queued"  // waits for its first or next try
	StateSending State = "sending" // a worker is at it, or died at it
	StateSent    State = "sent"    // the mail server took it, or the local mailbox did
	StateFailed  State = "failed"  // given up; LastError says why
)

// Mail is a row of the outbox.
type Mail struct {
	ID         ID
	Kind       Kind
	RunID      [16]byte // zero if it belongs to no run; so with the next two
	StepRunID  [16]byte
	SeatID     [16]byte
	Generation int
	To         Address // the first one, where there are several
	Subject    string
	MessageID  string
	State      State
	Attempt    int // how often it was tried; the same Message-ID each time
	SentAt     *time.Time
	LastError  string // plain words; empty once it is sent
	CreatedAt  time.Time
	NextTryAt  time.Time
	GiveUpAt   time.Time

	data      []byte
	workspace string
}
