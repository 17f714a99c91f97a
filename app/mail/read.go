package mail

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// maxList bounds a list of mails.
const maxList = 200

// List gives the workspace's newest mails. Those of sign-in are not among them.
func (o *Outbox) List(ctx context.Context, tx tenants.Tx) ([]Mail, error) {
	return all(ctx, tx, `SELECT `+columns+` FROM mails m WHERE m.tenant_id = $1 ORDER BY m.id DESC LIMIT $2`, tx.Tenant, maxList)
}

// ByID gives one mail of the workspace as it goes out, with live links: whoever may read
// it could answer in its receiver's place. It is for the mailbox of the local mode.
func (o *Outbox) ByID(ctx context.Context, tx tenants.Tx, id ID) (Mail, Composed, error) {
	m, err := one(ctx, tx, `SELECT `+columns+` FROM mails m WHERE m.tenant_id = $1 AND m.id = $2`, tx.Tenant, id)
	if err != nil {
		return Mail{}, Composed{}, err
	}
	composed, err := o.compose(m, tx.Now)
	return m, composed, err
}

// ListSystem gives the newest mails that belong to no workspace, for the local mode.
func (o *Outbox) ListSystem(ctx context.Context, tx tenants.SystemTx) ([]Mail, error) {
	return all(ctx, tx, `SELECT `+columns+` FROM mails m WHERE m.tenant_id IS NULL ORDER BY m.id DESC LIMIT $1`, maxList)
}

// SystemByID gives one mail that belongs to no workspace as it goes out, for the local
// mode: it holds a code that signs its receiver in.
func (o *Outbox) SystemByID(ctx context.Context, tx tenants.SystemTx, id ID) (Mail, Composed, error) {
	m, err := one(ctx, tx, `SELECT `+columns+` FROM mails m WHERE m.tenant_id IS NULL AND m.id = $1`, id)
	if err != nil {
		return Mail{}, Composed{}, err
	}
	composed, err := o.compose(m, tx.Now)
	return m, composed, err
}

// OfStepRun gives the mails of one step run, oldest first, so that its page can tell
// whether people were reached.
func (o *Outbox) OfStepRun(ctx context.Context, tx tenants.Tx, stepRun [16]byte) ([]Mail, error) {
	return all(ctx, tx, `SELECT `+columns+` FROM mails m WHERE m.tenant_id = $1 AND m.step_run_id = $2 ORDER BY m.id LIMIT $3`, tx.Tenant, stepRun, maxList)
}

// FirstSent tells when the first mail to one of the seats was taken; zero while none was.
func (o *Outbox) FirstSent(ctx context.Context, tx tenants.Tx, seats [][16]byte) (time.Time, error) {
	var first *time.Time
	err := tx.QueryRow(ctx, `SELECT min(sent_at) FROM mails WHERE tenant_id = $1 AND seat_id = ANY($2)`, tx.Tenant, seats).Scan(&first)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask when a mail was sent: %w", err)
	}
	if first == nil {
		return time.Time{}, nil
	}
	return first.UTC(), nil
}

func all(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]Mail, error) {
	rows, _ := tx.Query(ctx, query, args...)
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list mails: %w", err)
	}
	return list, nil
}
