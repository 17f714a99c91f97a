package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// orNull gives an identity of another room to Postgres; an unset one is null.
func orNull(id [16]byte) any {
	if id == ([16]byte{}) {
		return nil
	}
	return id
}

const insertMail = `
	INSERT INTO mails (tenant_id, id, kind, run_id, step_run_id, seat_id, generation, to_address, to_name, subject, data,
		message_id, created_at, next_try_at, give_up_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

func insert(ctx context.Context, tx pgx.Tx, tenant tenants.ID, m Mail) error {
	_, err := tx.Exec(ctx, insertMail, m.values(tenant)...)
	if err != nil {
		return fmt.Errorf("queue a mail: %w", err)
	}
	return nil
}

func (m Mail) values(tenant tenants.ID) []any {
	return []any{orNull(tenant), m.ID, string(m.Kind), orNull(m.RunID), orNull(m.StepRunID), orNull(m.SeatID), m.Generation,
		m.To.Email, m.To.Name, m.Subject, m.data, m.MessageID, m.CreatedAt, m.NextTryAt, m.GiveUpAt}
}

// columns are a mail's row and the name of its workspace.
const columns = `m.id, m.kind, m.run_id, m.step_run_id, m.seat_id, m.generation, m.to_address, m.to_name, m.subject, m.message_id,
	m.state, m.attempt, m.sent_at, m.last_error, m.created_at, m.next_try_at, m.give_up_at, m.data,
	coalesce((SELECT t.name FROM tenants t WHERE t.id = m.tenant_id), '')`

func scan(row pgx.CollectableRow) (Mail, error) {
	var m Mail
	var run, stepRun, seat ID // foreign identities, null as zero
	err := row.Scan(&m.ID, &m.Kind, &run, &stepRun, &seat, &m.Generation, &m.To.Email, &m.To.Name, &m.Subject, &m.MessageID,
		&m.State, &m.Attempt, &m.SentAt, &m.LastError, &m.CreatedAt, &m.NextTryAt, &m.GiveUpAt, &m.data, &m.workspace)
	m.RunID, m.StepRunID, m.SeatID = run, stepRun, seat
	return m, err
}

// one runs a query for at most one mail.
func one(ctx context.Context, tx pgx.Tx, query string, args ...any) (Mail, error) {
	rows, _ := tx.Query(ctx, query, args...)
	m, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Mail{}, ErrNotFound
	}
	if err != nil {
		return Mail{}, fmt.Errorf("read a mail: %w", err)
	}
	return m, nil
}

// claim takes a mail for sending. It meets a row only if nobody else is at it: queued,
// or left behind by somebody who must have given up long ago.
func claim(ctx context.Context, tx pgx.Tx, id ID, worker [16]byte) (Mail, error) {
	return one(ctx, tx, `
		UPDATE mails AS m SET state = 'sending', attempt = attempt + 1, worker_id = $2, claimed_at = clock_timestamp()
		WHERE m.id = $1 AND m.kind <> 'step'
			AND (m.state = 'queued' OR m.state = 'sending' AND m.claimed_at < clock_timestamp() - $3::interval)
		RETURNING `+columns, id, orNull(worker), abandonedAfter)
}

// settle ends an attempt. It meets no row if the mail was taken over meanwhile.
func settle(ctx context.Context, tx pgx.Tx, m Mail, end ending) error {
	tag, err := tx.Exec(ctx, `
		UPDATE mails SET state = $3, last_error = $4, worker_id = NULL,
			sent_at = CASE WHEN $3 = 'sent' THEN clock_timestamp() END,
			next_try_at = CASE WHEN $3 = 'queued' THEN $5 ELSE next_try_at END
		WHERE id = $1 AND state = 'sending' AND attempt = $2`,
		m.ID, m.Attempt, string(end.state), end.problem, end.nextTry)
	if err != nil {
		return fmt.Errorf("record what became of a mail: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return errTakenOver
	}
	return nil
}

// ending is what became of an attempt.
type ending struct {
	state   State
	problem string
	nextTry time.Time // when queued again
}
