package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"tollgate/tenants"
)

// Inserter adds a job in an open transaction. A River client is one.
type Inserter interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Queue is River's queue for sending mail.
const Queue = "mail"

// SendMail is the job that sends one mail. Tenant is zero for the system's own.
type SendMail struct {
	Mail   ID         `json:"mail_id"`
	Tenant tenants.ID `json:"tenant_id"`
}

// Kind names the job.
func (SendMail) Kind() string { return "send_mail" }

// Config is what an outbox needs.
type Config struct {
	Sender   Sender
	Inserter Inserter
	Links    Links
	From     Address // only its address is used; the name is the workspace's
}

// Outbox keeps mails as rows until they are sent.
type Outbox struct {
	config Config
	domain string // of Message-IDs
}

// New checks the configuration and makes the outbox.
func New(config Config) (*Outbox, error) {
	from, err := config.From.cleaned()
	if err != nil {
		return nil, fmt.Errorf("the sender's address: %w", err)
	}
	if config.Sender == nil || config.Inserter == nil {
		return nil, fmt.Errorf("an outbox needs a sender and an inserter of jobs")
	}
	config.From = from
	config.Links.BaseURL = strings.TrimRight(config.Links.BaseURL, "/")
	return &Outbox{config: config, domain: from.Email[strings.LastIndexByte(from.Email, '@')+1:]}, nil
}

// Queue adds a mail and the job that sends it to the caller's transaction.
// ErrBadMessage says that it can never be sent; nothing was written then.
func (o *Outbox) Queue(ctx context.Context, tx tenants.Tx, m Message) (ID, error) {
	row, err := o.row(m, tx.Now)
	if err != nil {
		return ID{}, err
	}
	if err := insert(ctx, tx, tx.Tenant, row); err != nil {
		return ID{}, err
	}
	return row.ID, o.addJob(ctx, tx, SendMail{Mail: row.ID, Tenant: tx.Tenant}, time.Time{})
}

// QueueSystem is Queue for a mail that belongs to no workspace.
func (o *Outbox) QueueSystem(ctx context.Context, tx tenants.SystemTx, m Message) (ID, error) {
	row, err := o.row(m, tx.Now)
	if err != nil {
		return ID{}, err
	}
	if err := insert(ctx, tx, tenants.ID{}, row); err != nil {
		return ID{}, err
	}
	return row.ID, o.addJob(ctx, tx, SendMail{Mail: row.ID}, time.Time{})
}

// row makes the mail's row, whose Message-ID stays what it is from here on.
func (o *Outbox) row(m Message, now time.Time) (Mail, error) {
	body, err := m.Body.cleaned()
	if err != nil {
		return Mail{}, err
	}
	to := m.To
	if step, ok := body.(Step); ok {
		to = step.To[0]
	}
	if to, err = to.cleaned(); err != nil {
		return Mail{}, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return Mail{}, fmt.Errorf("%w: %w", ErrBadMessage, err)
	}
	id := tenants.NewID[Letter]()
	return Mail{
		ID: id, Kind: body.kind(), RunID: m.RunID, StepRunID: m.StepRunID, SeatID: m.SeatID, Generation: m.Generation,
		To: to, Subject: body.subject(), MessageID: id.String() + "@" + o.domain, State: StateQueued,
		CreatedAt: now, NextTryAt: now, GiveUpAt: body.giveUp(now), data: data,
	}, nil
}

// addJob adds the job that tries a mail at the given time, or at once. The metadata
// tells the tenant to row-level security.
func (o *Outbox) addJob(ctx context.Context, tx pgx.Tx, args SendMail, at time.Time) error {
	opts := &river.InsertOpts{Queue: Queue, ScheduledAt: at}
	if !args.Tenant.IsZero() {
		opts.Metadata = []byte(`{"tenant_id":"` + args.Tenant.String() + `"}`)
	}
	if _, err := o.config.Inserter.InsertTx(ctx, tx, args, opts); err != nil {
		return fmt.Errorf("add the job of a mail: %w", err)
	}
	return nil
}

func (o *Outbox) compose(m Mail, now time.Time) (Composed, error) {
	return compose(composing{mail: m, workspace: m.workspace, links: o.config.Links, now: now}, o.config.From)
}
