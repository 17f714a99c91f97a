package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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

func insertReview(ctx context.Context, tx tenants.Tx, d Detail) error {
	content, digest, err := d.Content.encode()
	if err != nil {
		return err
	}
	stages, err := json.Marshal([]Policy{d.Policy})
	if err != nil {
		return fmt.Errorf("write a review's policy: %w", err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		INSERT INTO reviews (tenant_id, id, run_id, step_run_id, round, title, content, digest, stages, proof,
			requester_id, allow_requester, send_back, opened_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		tx.Tenant, d.ID, d.RunID, d.StepRunID, d.Content.Round, d.Content.Title, content, digest, stages, string(d.Proof),
		orNull(d.Requester), d.AllowRequester, d.SendBack, d.OpenedAt, d.DueAt)
	for _, s := range d.Seats {
		batch.Queue(`
			INSERT INTO seats (tenant_id, id, review_id, group_name, user_id, address, name, zone, token_hash, generation, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			tx.Tenant, s.ID, d.ID, s.Group, orNull(s.User), s.Address, s.Name, s.Zone, s.tokenHash, s.Generation, s.ExpiresAt)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write a review: %w", err)
	}
	return nil
}

func lockReview(ctx context.Context, tx tenants.Tx, id ID) error {
	var locked ID
	err := tx.QueryRow(ctx, `SELECT id FROM reviews WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tx.Tenant, id).Scan(&locked)
	return found(err, "lock a review")
}

func lockOfSeat(ctx context.Context, tx tenants.Tx, seat SeatID) (ID, error) {
	const query = `
		SELECT r.id FROM seats s JOIN reviews r ON r.tenant_id = s.tenant_id AND r.id = s.review_id
		WHERE s.tenant_id = $1 AND s.id = $2 FOR UPDATE OF r`
	var id ID
	err := tx.QueryRow(ctx, query, tx.Tenant, seat).Scan(&id)
	return id, found(err, "lock a seat's review")
}

func found(err error, what string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// load reads a review whole, in one round trip, and the database's clock with it: in
// Decide that is after the lock was had.
func (r *Room) load(ctx context.Context, tx tenants.Tx, id ID) (Detail, error) {
	batch := &pgx.Batch{}
	var d Detail
	var readErr error
	batch.Queue(selectReview, tx.Tenant, id).QueryRow(func(row pgx.Row) error {
		d, readErr = scanReview(row)
		return readErr
	})
	batch.Queue(selectSeats, tx.Tenant, id).Query(func(rows pgx.Rows) error {
		d.Seats, readErr = pgx.CollectRows(rows, scanSeat)
		return readErr
	})
	batch.Queue(selectAnswers, tx.Tenant, id).Query(func(rows pgx.Rows) error {
		d.Answers, readErr = pgx.CollectRows(rows, scanAnswer)
		return readErr
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return Detail{}, found(err, "read a review")
	}
	return d, r.settleDue(ctx, tx, &d)
}

const selectReview = `
	SELECT id, run_id, step_run_id, content, digest, stages, proof, requester_id, allow_requester, send_back,
		opened_at, due_at, outcome, closed_at, clock_timestamp()
	FROM reviews WHERE tenant_id = $1 AND id = $2`

func scanReview(row pgx.Row) (Detail, error) {
	var d Detail
	var content string
	var stages []Policy
	err := row.Scan(&d.ID, &d.RunID, &d.StepRunID, &content, &d.Digest, &stages, &d.Proof, &d.Requester, &d.AllowRequester,
		&d.SendBack, &d.OpenedAt, &d.DueAt, &d.Outcome, &d.ClosedAt, &d.Now)
	if err != nil {
		return Detail{}, err
	}
	if err := json.Unmarshal([]byte(content), &d.Content); err != nil {
		return Detail{}, fmt.Errorf("read what a review shows: %w", err)
	}
	d.Policy, d.Now, d.OpenedAt = stages[0], d.Now.UTC(), d.OpenedAt.UTC()
	return d, nil
}

const selectSeats = `
	SELECT s.id, s.group_name, s.user_id, s.address, s.name, s.zone, s.generation, s.expires_at, s.state, s.token_hash,
		m.user_id IS NOT NULL
	FROM seats s LEFT JOIN members m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
	WHERE s.tenant_id = $1 AND s.review_id = $2 ORDER BY s.id`

func scanSeat(row pgx.CollectableRow) (SeatRow, error) {
	var s SeatRow
	err := row.Scan(&s.ID, &s.Group, &s.User, &s.Address, &s.Name, &s.Zone, &s.Generation, &s.ExpiresAt, &s.State,
		&s.tokenHash, &s.Member)
	return s, err
}

const selectAnswers = `
	SELECT id, seat_id, verdict, comment, edits, digest, proof, user_id, name, address, client, decided_at
	FROM decisions WHERE tenant_id = $1 AND review_id = $2 ORDER BY decided_at, id`

func scanAnswer(row pgx.CollectableRow) (Recorded, error) {
	var a Recorded
	var edits string
	err := row.Scan(&a.ID, &a.Seat, &a.Verdict, &a.Comment, &edits, &a.Digest, &a.Proof, &a.User, &a.Name, &a.Address, &a.Client, &a.At)
	if err != nil {
		return Recorded{}, err
	}
	a.At = a.At.UTC()
	return a, json.Unmarshal([]byte(edits), &a.Edits)
}

func insertAnswer(ctx context.Context, tx tenants.Tx, review ID, a Recorded) error {
	edits, err := json.Marshal(a.Edits)
	if err != nil {
		return fmt.Errorf("write a reviewer's edits: %w", err)
	}
	var b tenants.Batch
	b.Queue(`
		INSERT INTO decisions (tenant_id, id, review_id, seat_id, verdict, comment, edits, digest, proof, user_id, name, address, client, decided_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		tx.Tenant, a.ID, review, a.Seat, string(a.Verdict), a.Comment, string(edits), a.Digest, string(a.Proof), orNull(a.User),
		a.Name, a.Address, a.Client, a.At)
	b.Guarded(`
		UPDATE seats SET state = 'answered', closed_at = $3
		WHERE tenant_id = $1 AND id = $2 AND state = 'open' RETURNING id`, tx.Tenant, a.Seat, a.At)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("record an answer: %w", err)
	}
	return nil
}

// closeReview ends a review and takes the remaining seats away.
func closeReview(ctx context.Context, tx tenants.Tx, id ID, outcome Outcome) error {
	var b tenants.Batch
	b.Guarded(`
		UPDATE reviews SET state = 'closed', outcome = $3, closed_at = clock_timestamp()
		WHERE tenant_id = $1 AND id = $2 AND state = 'open' RETURNING id`, tx.Tenant, id, string(outcome))
	b.Queue(`
		UPDATE seats SET state = 'closed', closed_at = clock_timestamp()
		WHERE tenant_id = $1 AND review_id = $2 AND state = 'open'`, tx.Tenant, id)
	if err := tx.Send(ctx, &b); err != nil {
		return fmt.Errorf("close a review: %w", err)
	}
	return nil
}
