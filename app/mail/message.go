package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tollgate/tenants"
)

// Letter names the identity's type; the row itself is Mail.
type Letter struct{}

// ID identifies a mail of the outbox.
type ID = tenants.IDOf[Letter]

// Kind says what a mail is about.
type Kind string

// The kinds of mail.
const (
	KindReviewRequest Kind = "review_request" // asks a seat's person to decide
	KindLoginCode     Kind = "login_code"     // the system's own; no workspace sees it
	KindStep          Kind = "step"           // what an e-mail step of a pipeline sends
	KindNotice        Kind = "notice"         // tells the people of a pipeline about its runs
	KindMoneyRequest  Kind = "money_request"  // asks somebody to decide about money
	KindMoneyAnswer   Kind = "money_answer"   // tells whoever asked what became of it
	KindSpendAlert    Kind = "spend_alert"    // tells how far a cap is used
)

// Message is a mail to be queued. The ids say what it belongs to; unset ones are zero.
type Message struct {
	To         Address
	RunID      [16]byte
	StepRunID  [16]byte
	SeatID     [16]byte
	Generation int // of the seat's link
	Body       Body
}

// Body is what one kind of mail says: ReviewRequest, LoginCode, Step or Money. It is kept as
// data, and becomes text and HTML when the mail is sent.
type Body interface {
	kind() Kind
	// cleaned returns the body fit for storing: bounded, and free of what cannot be
	// shown. Its error is permanent: this body can never be sent.
	cleaned() (Body, error)
	subject() string
	// giveUp is until when sending is worth trying.
	giveUp(now time.Time) time.Time
	compose(c composing) (parts, error)
}

// patience is how long most mails are tried before they count as failed.
const patience = 72 * time.Hour

// bodyOf reads a stored body.
func bodyOf(kind Kind, data []byte) (Body, error) {
	switch kind {
	case KindReviewRequest:
		return decoded[ReviewRequest](data)
	case KindLoginCode:
		return decoded[LoginCode](data)
	case KindStep:
		return decoded[Step](data)
	case KindNotice:
		return decoded[Notice](data)
	case KindMoneyRequest, KindMoneyAnswer, KindSpendAlert:
		return decoded[Money](data)
	}
	return nil, fmt.Errorf("a mail of unknown kind %q", kind)
}

func decoded[B Body](data []byte) (Body, error) {
	var body B
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, fmt.Errorf("read the data of a mail: %w", err)
	}
	return body, nil
}

// ErrBadMessage says that a message can never be sent as it is: an address that is
// none, no recipient, no subject, or too much of something. The message names it.
var ErrBadMessage = errors.New("this mail cannot be sent")
