package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Rewrapped tells what a Rewrap came to, in sealed values.
type Rewrapped struct {
	Done     int
	Unopened int // sealed under a secret that the vault does not know; left as they are
}

// Rewrap seals anew, under the server's present secret, what an earlier one had sealed, of
// all tenants. It may run beside processes that use the values, and again.
func Rewrap(ctx context.Context, db *DB, vault Vault) (Rewrapped, error) {
	var total Rewrapped
	ids, err := allTenants(ctx, db)
	if err != nil {
		return total, err
	}
	for _, id := range ids {
		var of Rewrapped
		err := db.InTx(ctx, id, func(ctx context.Context, tx Tx) error {
			of = Rewrapped{}
			for _, column := range sealedColumns {
				if err := column.rewrap(ctx, tx, vault, &of); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return total, err
		}
		total.Done += of.Done
		total.Unopened += of.Unopened
	}
	return total, nil
}

func allTenants(ctx context.Context, db *DB) (ids []ID, err error) {
	err = db.InSystemTx(ctx, func(ctx context.Context, stx SystemTx) error {
		rows, _ := stx.Query(ctx, `SELECT id FROM tenants ORDER BY id`)
		ids, err = pgx.CollectRows(rows, pgx.RowTo[ID])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	return ids, nil
}

// sealedColumn is where sealed values are kept: the rows that others than the present key
// sealed, with what each is bound to, and the statement that replaces one.
type sealedColumn struct{ stale, replace string }

// sealedColumns are all there are. The rows stay locked until the transaction ends.
var sealedColumns = []sealedColumn{
	{
		`SELECT id, '` + secretColumn + `', sealed FROM tenant_secrets WHERE tenant_id = $1 AND key_id <> $2 ORDER BY id FOR UPDATE`,
		`UPDATE tenant_secrets SET sealed = $3, key_id = $4 WHERE tenant_id = $1 AND id = $2`,
	},
	{
		`SELECT id, '` + keyPlace("") + `' || base_url, sealed FROM provider_keys
			WHERE tenant_id = $1 AND key_id <> $2 AND sealed IS NOT NULL ORDER BY id FOR UPDATE`,
		`UPDATE provider_keys SET sealed = $3, key_id = $4 WHERE tenant_id = $1 AND id = $2`,
	},
	{
		`SELECT id, '` + keyPlace("") + `' || old_base_url, old_sealed FROM provider_keys
			WHERE tenant_id = $1 AND old_key_id <> $2 AND old_sealed IS NOT NULL ORDER BY id FOR UPDATE`,
		`UPDATE provider_keys SET old_sealed = $3, old_key_id = $4 WHERE tenant_id = $1 AND id = $2`,
	},
}

// sealedValue is one value, and what it is bound to.
type sealedValue struct {
	Row    IDOf[any]
	Place  string
	Sealed []byte
}

func (c sealedColumn) rewrap(ctx context.Context, tx Tx, vault Vault, total *Rewrapped) error {
	rows, _ := tx.Query(ctx, c.stale, tx.Tenant, vault.KeyID())
	values, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sealedValue])
	if err != nil {
		return fmt.Errorf("list what an earlier secret sealed: %w", err)
	}
	for _, value := range values {
		plain, err := vault.Open(tx.Tenant, value.Row, value.Place, value.Sealed)
		if errors.Is(err, ErrSealed) {
			total.Unopened++
			continue
		}
		if err != nil {
			return err
		}
		sealed, err := vault.Seal(tx.Tenant, value.Row, value.Place, plain)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, c.replace, tx.Tenant, value.Row, sealed, vault.KeyID()); err != nil {
			return fmt.Errorf("seal a value anew: %w", err)
		}
		total.Done++
	}
	return nil
}
