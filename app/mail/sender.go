package mail

import (
	"context"
	"errors"
)

// Sender hands a mail to whoever carries it. It is called with no transaction open.
// Its error is a *SendError.
type Sender interface {
	Send(ctx context.Context, mail Composed) error
}

// SendError says why a mail was not taken.
type SendError struct {
	Permanent bool   // trying again does not help
	Unsure    bool   // the mail may have been taken all the same
	Message   string // plain words
	Err       error
}

// Error says it in plain words, with the server's own after them.
func (e *SendError) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + " " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }

// asSendError gives every error of a sender its class; an unknown one is worth trying
// again.
func asSendError(err error) *SendError {
	var known *SendError
	if errors.As(err, &known) {
		return known
	}
	return &SendError{Message: "The mail could not be sent.", Err: err}
}

// Mailbox keeps all mails here: nothing leaves, and the outbox's rows are the mailbox.
// It is the sender of the local mode.
type Mailbox struct{}

// Send takes every mail.
func (Mailbox) Send(context.Context, Composed) error { return nil }
