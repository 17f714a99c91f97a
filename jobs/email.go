package jobs

import (
	"context"
	"encoding/json"
	"errors"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/tenants"
)

// Email sends the mails of "email" steps.
type Email struct {
	DB     *tenants.DB
	Outbox *mail.Outbox
}

// Classes of failures of a mail.
const (
	classBadMessage  = "bad_message"  // it can never be sent as it is
	classMailRefused = "mail_refused" // the mail server said no for good
	classMailTrouble = "mail_trouble" // the mail server was not reached, or said: later
)

// Call sends the mail of a step, once for each step run.
func (e Email) Call(ctx context.Context, call engine.Call) engine.Reply {
	var input engine.EmailInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return engine.Reply{Failure: &engine.Failure{Class: engine.ClassInternal, Message: "The step's stored mail cannot be read."}}
	}
	files, err := e.attachments(ctx, call, input.Attachments)
	if err != nil {
		return mailReply(err)
	}
	sent, err := e.Outbox.SendStep(ctx, e.DB, call.Tenant, call.Run, call.StepRun, step(input, files))
	if err != nil {
		return mailReply(err)
	}
	output, err := json.Marshal(map[string]any{"message_id": sent.MessageID, "to": input.To, "subject": input.Subject})
	if err != nil {
		return mailReply(err)
	}
	return engine.Reply{Output: output, Note: mailNote(sent)}
}

// attachments reads the files that go with a mail. Only those of the run itself can.
func (e Email) attachments(ctx context.Context, call engine.Call, refs []engine.FileRef) ([]mail.Attachment, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	var files []mail.Attachment
	err := e.DB.InTx(ctx, call.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		files = nil
		for _, ref := range refs {
			content, err := runFile(ctx, tx, call.Run, ref)
			if err != nil {
				return err
			}
			files = append(files, mail.Attachment{Name: ref.Name, Type: ref.Type, Size: int64(len(content)), Digest: ref.Digest, Data: content})
		}
		return nil
	})
	return files, err
}

func step(input engine.EmailInput, files []mail.Attachment) mail.Step {
	out := mail.Step{Attachments: files, To: addresses(input.To), CC: addresses(input.CC), Subject: input.Subject, Text: input.Body}
	if input.ReplyTo != "" {
		out.ReplyTo = &mail.Address{Email: input.ReplyTo}
	}
	return out
}

func addresses(list []string) []mail.Address {
	var out []mail.Address
	for _, one := range list {
		out = append(out, mail.Address{Email: one})
	}
	return out
}

func mailNote(sent mail.SendResult) string {
	switch {
	case sent.Already:
		return "The mail had gone out before the program stopped; it was not sent again."
	case sent.Repeated:
		return "The program stopped while this mail was being sent, so it may have gone out twice, with the same Message-ID."
	}
	return ""
}

func mailReply(err error) engine.Reply {
	var refused *mail.SendError
	switch {
	case errors.Is(err, engine.ErrNoValue):
		return engine.Reply{Failure: &engine.Failure{Class: classBadMessage,
			Message: "An attachment is no file of this run, so the mail was not sent. Pick a file of the input or of an earlier step."}}
	case errors.Is(err, mail.ErrBadMessage):
		return engine.Reply{Failure: &engine.Failure{Class: classBadMessage,
			Message: "This mail cannot be sent as it is. Correct the step's addresses, subject, text or attachments.", Detail: err.Error()}}
	case errors.As(err, &refused) && refused.Permanent:
		return engine.Reply{Failure: &engine.Failure{Class: classMailRefused, Message: refused.Message, Detail: err.Error()}}
	case errors.As(err, &refused):
		return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: classMailTrouble, Message: refused.Message, Detail: err.Error()}}
	}
	return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: classMailTrouble,
		Message: "The mail could not be sent just now.", Detail: err.Error()}}
}
