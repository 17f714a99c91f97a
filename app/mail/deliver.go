package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

var (
	// ErrBusy says that another attempt at this mail has not ended yet. The job is to
	// be tried again after a while.
	ErrBusy = errors.New("this mail is being sent by somebody else")
	// ErrNotFound says that there is no such mail.
	ErrNotFound = errors.New("there is no such mail")

	errTakenOver = errors.New("this mail was taken over by another worker")
)

// How long things take at most. An attempt is cut off long before it counts as
// abandoned, so no two are at one mail.
const (
	attemptLimit   = 2 * time.Minute
	abandonedAfter = 5 * time.Minute
	recordLimit    = 10 * time.Second
)

// retryPauses are the waits after each failed attempt; the last one repeats.
var retryPauses = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// Deliver does the job SendMail: it claims the mail, sends it with no transaction open,
// and records the end. worker is who does it, so that the reaper can tell.
//
// A refusal by the mail server is no error: it is recorded, and where it was for now, a
// job for the next try is added. An error says that nothing could be recorded; the job
// is to be done again, and the mail then goes out a second time with its Message-ID.
// A mail that needs nothing any more is no error either.
func (o *Outbox) Deliver(ctx context.Context, db *tenants.DB, job SendMail, worker [16]byte) error {
	var claimed Mail
	var now time.Time
	err := within(ctx, db, job.Tenant, func(ctx context.Context, tx pgx.Tx, at time.Time) error {
		var err error
		now = at
		if claimed, err = claim(ctx, tx, job.Mail, worker); errors.Is(err, ErrNotFound) {
			return unclaimed(ctx, tx, job.Mail)
		}
		return err
	})
	if err != nil || claimed.ID.IsZero() {
		return err
	}
	end := endOf(claimed, o.attempt(ctx, claimed, now), now)
	return o.record(ctx, db, job, claimed, end)
}

// unclaimed tells why a mail could not be claimed: nil if there is nothing to do.
func unclaimed(ctx context.Context, tx pgx.Tx, id ID) error {
	var state State
	err := tx.QueryRow(ctx, `SELECT state FROM mails WHERE id = $1`, id).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("look at a mail: %w", err)
	}
	if state == StateSending {
		return ErrBusy
	}
	return nil
}

// attempt composes and sends, with the bytes of what goes with it; nil means that the mail
// was taken.
func (o *Outbox) attempt(ctx context.Context, m Mail, now time.Time, files ...Attachment) *SendError {
	if m.Kind == KindLoginCode && !now.Before(m.GiveUpAt) {
		return &SendError{Permanent: true, Message: "The code expired before it could be sent."}
	}
	composed, err := o.compose(m, now)
	if err != nil {
		return &SendError{Permanent: true, Message: "The mail cannot be written.", Err: err}
	}
	if composed.Attachments, err = filled(composed.Attachments, files); err != nil {
		return &SendError{Permanent: true, Message: "The mail cannot be written.", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	if err := o.config.Sender.Send(ctx, composed); err != nil {
		return asSendError(err)
	}
	return nil
}

// endOf decides what follows from an attempt.
func endOf(m Mail, failure *SendError, now time.Time) ending {
	if failure == nil {
		return ending{state: StateSent}
	}
	problem := line(failure.Error(), 1000)
	next := now.Add(retryPauses[min(max(m.Attempt, 1), len(retryPauses))-1])
	if failure.Permanent || next.After(m.GiveUpAt) {
		return ending{state: StateFailed, problem: problem}
	}
	return ending{state: StateQueued, problem: problem, nextTry: next}
}

// record writes the end of an attempt, also when the work was told to stop meanwhile:
// an unrecorded sent mail is sent again.
func (o *Outbox) record(ctx context.Context, db *tenants.DB, job SendMail, m Mail, end ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	return within(ctx, db, job.Tenant, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := settle(ctx, tx, m, end); err != nil {
			return err
		}
		if end.state != StateQueued {
			return nil
		}
		return o.addJob(ctx, tx, job, end.nextTry)
	})
}

// within opens the transaction that a mail needs: its workspace's, or the system's.
func within(ctx context.Context, db *tenants.DB, tenant tenants.ID, fn func(context.Context, pgx.Tx, time.Time) error) error {
	if tenant.IsZero() {
		return db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error { return fn(ctx, tx, tx.Now) })
	}
	return db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error { return fn(ctx, tx, tx.Now) })
}

// Requeue frees the mails that dead workers were sending and adds jobs for them: they
// may have gone out, and go out again with the same Message-ID. Mails of e-mail steps
// are left alone, since their step is taken over as a whole. It returns how many.
func (o *Outbox) Requeue(ctx context.Context, tx tenants.SystemTx, deadWorkers ...[16]byte) (int, error) {
	rows, _ := tx.Query(ctx, `
		UPDATE mails SET state = 'queued', worker_id = NULL, next_try_at = $2
		WHERE state = 'sending' AND worker_id = ANY($1) AND kind <> 'step'
		RETURNING id, tenant_id`, deadWorkers, tx.Now)
	freed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SendMail])
	if err != nil {
		return 0, fmt.Errorf("free the mails of dead workers: %w", err)
	}
	for _, job := range freed {
		if err := o.addJob(ctx, tx, job, time.Time{}); err != nil {
			return 0, err
		}
	}
	return len(freed), nil
}
