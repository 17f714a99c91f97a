package tenants

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// checkRoles refuses to serve as a role that row-level security would not bind: a
// superuser, one that bypasses it, or the owner of the tables.
func (db *DB) checkRoles(ctx context.Context) error {
	err := within(ctx, db.app, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT `+db.binding(), ""); err != nil {
			return fmt.Errorf("take on the role %s: %w", appRole, err)
		}
		return checkRole(ctx, tx)
	})
	if err != nil {
		return err
	}
	return within(ctx, db.system, func(tx pgx.Tx) error { return checkRole(ctx, tx) })
}

func checkRole(ctx context.Context, db interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) error {
	const query = `
		SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolname = $1 OR pg_has_role(r.oid, $1, 'USAGE')
		FROM pg_roles r WHERE r.rolname = current_user`
	var name string
	var super, bypass, owner bool
	if err := db.QueryRow(ctx, query, ownerRole).Scan(&name, &super, &bypass, &owner); err != nil {
		return fmt.Errorf("check the database role: %w", err)
	}
	if super || bypass || owner {
		return fmt.Errorf("refusing to serve as database role %q: it could read every tenant's rows; let the login role take on %s and %s", name, appRole, systemRole)
	}
	return nil
}
