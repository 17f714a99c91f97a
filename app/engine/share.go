package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ShareID identifies a link to a run.
type ShareID = tenants.IDOf[Share]

// Share is a link by which people outside the workspace look at a run.
type Share struct {
	ID        ShareID
	Run       RunID
	ByName    string
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   *time.Time // ended before it expired
}

// MaxShare is how long a link may last.
const MaxShare = 90 * 24 * time.Hour

// ErrNoShare tells that a link opens nothing: it never did, has expired, was ended, or the
// workspace gives none any more. ErrSharesOff tells that an owner has not allowed them.
var (
	ErrNoShare   = errors.New("no such link to a run")
	ErrSharesOff = errors.New("the workspace gives no links to its runs")
)

// SharesAllowed tells whether the workspace gives links to its runs.
func SharesAllowed(ctx context.Context, tx tenants.Tx) (bool, error) {
	var allowed bool
	err := tx.QueryRow(ctx, `SELECT coalesce((SELECT allowed FROM share_settings WHERE tenant_id = $1), false)`, tx.Tenant).Scan(&allowed)
	if err != nil {
		return false, fmt.Errorf("look whether links are given: %w", err)
	}
	return allowed, nil
}

// AllowShares says whether the workspace gives links to its runs. While it does not, those
// that were given open nothing.
func AllowShares(ctx context.Context, tx tenants.Tx, allow bool, by tenants.Membership) error {
	if err := by.Require(tenants.AllowSharing); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO share_settings (tenant_id, allowed) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET allowed = $2, changed_at = now()`, tx.Tenant, allow)
	if err != nil {
		return fmt.Errorf("allow links: %w", err)
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "workspace.sharing_changed", Target: tenants.Target{Kind: "workspace", ID: tx.Tenant}, Detail: map[string]any{"allowed": allow},
	})
}

// ShareRun makes a link to a run that lasts for a time. The same form makes one link.
func (e *Engine) ShareRun(ctx context.Context, tx tenants.Tx, run RunID, lasts time.Duration, by tenants.Membership, key string) error {
	if allowed, err := SharesAllowed(ctx, tx); err != nil || !allowed {
		return errors.Join(err, ErrSharesOff)
	}
	if _, err := RunByID(ctx, tx, run); err != nil {
		return err
	}
	id := tenants.NewID[Share]()
	tag, err := tx.Exec(ctx, `
		INSERT INTO run_shares (tenant_id, id, run_id, token_hash, by_user, by_name, form_key, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval) ON CONFLICT (tenant_id, form_key) DO NOTHING`,
		tx.Tenant, id, run, tenants.HashToken(e.ShareToken(id)), by.User.ID, by.User.Name, key, min(max(lasts, time.Hour), MaxShare))
	if err != nil {
		return fmt.Errorf("make a link to a run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "run.shared", Target: tenants.Target{Kind: "run", ID: run}, Detail: map[string]any{"link": id, "hours": lasts.Hours()},
	})
}

// ShareToken is what a link carries: 43 characters, safe in an address.
func (e *Engine) ShareToken(id ShareID) string {
	token := e.Callbacks.Secret.Derive("run share", id, 1)
	return base64.RawURLEncoding.EncodeToString(token[:])
}

// EndShare ends a link to a run. Ended before, nothing changes.
func EndShare(ctx context.Context, tx tenants.Tx, run RunID, id ShareID, by tenants.Membership) error {
	tag, err := tx.Exec(ctx, `UPDATE run_shares SET ended_at = now() WHERE tenant_id = $1 AND run_id = $2 AND id = $3 AND ended_at IS NULL`, tx.Tenant, run, id)
	if err != nil {
		return fmt.Errorf("end a link to a run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		var there bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM run_shares WHERE tenant_id = $1 AND run_id = $2 AND id = $3)`, tx.Tenant, run, id).Scan(&there)
		if err == nil && !there {
			err = ErrNoShare
		}
		return err
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "run.share_ended", Target: tenants.Target{Kind: "run", ID: run}, Detail: map[string]any{"link": id},
	})
}

// SharesOf lists the links to a run that still open it, the newest first.
func SharesOf(ctx context.Context, tx tenants.Tx, run RunID) ([]Share, error) {
	rows, _ := tx.Query(ctx, `
		SELECT id, run_id, by_name, created_at, expires_at, ended_at FROM run_shares
		WHERE tenant_id = $1 AND run_id = $2 AND ended_at IS NULL AND expires_at > now() ORDER BY id DESC LIMIT 50`, tx.Tenant, run)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Share])
	if err != nil {
		return nil, fmt.Errorf("list the links to a run: %w", err)
	}
	return found, nil
}

// FindShare finds the workspace and the link that a token belongs to, among all workspaces.
// It returns ErrNoShare where there is none; whether it still opens its run is OpenShare's.
func (e *Engine) FindShare(ctx context.Context, token string) (tenants.ID, ShareID, error) {
	var tenant tenants.ID
	var id ShareID
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		return tx.QueryRow(ctx, `SELECT tenant_id, id FROM run_shares WHERE token_hash = $1`, tenants.HashToken(token)).Scan(&tenant, &id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant, id, ErrNoShare
	}
	if err != nil {
		return tenant, id, fmt.Errorf("look a link to a run up: %w", err)
	}
	return tenant, id, nil
}

// OpenShare reads which run a link opens now. It returns ErrNoShare where it opens none.
func OpenShare(ctx context.Context, tx tenants.Tx, id ShareID) (Share, error) {
	rows, _ := tx.Query(ctx, `
		SELECT s.id, s.run_id, s.by_name, s.created_at, s.expires_at, s.ended_at
		FROM run_shares s JOIN share_settings a ON a.tenant_id = s.tenant_id AND a.allowed
		WHERE s.tenant_id = $1 AND s.id = $2 AND s.ended_at IS NULL AND s.expires_at > now()`, tx.Tenant, id)
	share, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Share])
	if errors.Is(err, pgx.ErrNoRows) {
		return share, ErrNoShare
	}
	if err != nil {
		return share, fmt.Errorf("open a link to a run: %w", err)
	}
	return share, nil
}
