package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// SendResult is what became of an e-mail step's mail.
type SendResult struct {
	MessageID string
	Already   bool // it was sent before and not again now
	Repeated  bool // it was sent now, and may have been sent before: an earlier try ended without a record
}

// SendStep sends the mail of an e-mail step, once for each step run: the first call
// fixes what it says and its Message-ID, and once it is recorded as sent no call sends
// it again. The caller sees to it that no two calls for one step run work at once, and
// owns the retries. Errors are *SendError, ErrBadMessage (for good), or the database's.
func (o *Outbox) SendStep(ctx context.Context, db *tenants.DB, tenant tenants.ID, run, stepRun [16]byte, body Step) (SendResult, error) {
	var row Mail
	var before State
	var now time.Time
	err := db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		fresh, err := o.row(Message{RunID: run, StepRunID: stepRun, Body: body}, tx.Now)
		if err != nil {
			return err
		}
		now = tx.Now
		row, before, err = claimStep(ctx, tx, fresh)
		return err
	})
	if err != nil {
		return SendResult{}, err
	}
	result := SendResult{MessageID: row.MessageID, Already: before == StateSent, Repeated: before == StateSending}
	if result.Already {
		return result, nil
	}
	failure := o.attempt(ctx, row, now, body.Attachments...)
	if err := o.recordStep(ctx, db, tenant, row, failure, now); err != nil {
		return SendResult{}, err
	}
	if failure != nil {
		return SendResult{}, failure
	}
	return result, nil
}

// claimStep makes the step's row if there is none, and takes it unless it is sent. It
// returns the state in which the row was found.
func claimStep(ctx context.Context, tx tenants.Tx, fresh Mail) (Mail, State, error) {
	const onlyOnce = insertMail + ` ON CONFLICT (tenant_id, step_run_id) WHERE kind = 'step' DO NOTHING`
	if _, err := tx.Exec(ctx, onlyOnce, fresh.values(tx.Tenant)...); err != nil {
		return Mail{}, "", fmt.Errorf("queue the mail of a step: %w", err)
	}
	const query = `SELECT ` + columns + ` FROM mails m WHERE m.tenant_id = $1 AND m.step_run_id = $2 AND m.kind = 'step' FOR UPDATE OF m`
	found, err := one(ctx, tx, query, tx.Tenant, fresh.StepRunID)
	if err != nil || found.State == StateSent {
		return found, found.State, err
	}
	taken, err := one(ctx, tx, `
		UPDATE mails AS m SET state = 'sending', attempt = attempt + 1, claimed_at = clock_timestamp()
		WHERE m.id = $1 RETURNING `+columns, found.ID)
	return taken, found.State, err
}

func (o *Outbox) recordStep(ctx context.Context, db *tenants.DB, tenant tenants.ID, row Mail, failure *SendError, now time.Time) error {
	end := ending{state: StateSent}
	switch {
	case failure != nil && failure.Unsure:
		return nil // the row stays "sending", so that the next try is told as repeated
	case failure != nil && failure.Permanent:
		end = ending{state: StateFailed, problem: line(failure.Error(), 1000)}
	case failure != nil:
		end = ending{state: StateQueued, problem: line(failure.Error(), 1000), nextTry: now}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	return within(ctx, db, tenant, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		err := settle(ctx, tx, row, end)
		if errors.Is(err, errTakenOver) && end.state == StateSent {
			return fmt.Errorf("the mail went out, and another try has begun: %w", err)
		}
		return err
	})
}
