package tenants

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that sees and changes the rows of one tenant.
type Tx struct {
	pgx.Tx
	Tenant ID
	Now    time.Time // the database's clock at the transaction's begin, in UTC

	committed *[]func()
}

// AfterCommit has fn called once the transaction is committed, and not at all if it is
// not. It is for telling others that there is something to look at; what must happen
// belongs into the transaction.
func (tx Tx) AfterCommit(fn func()) { *tx.committed = append(*tx.committed, fn) }

// SystemTx is a transaction across tenants, as the system role: it may touch only the
// tables whose policies name that role.
type SystemTx struct {
	pgx.Tx
	Now time.Time
}

// InTx runs fn in a transaction of the given tenant and commits if fn returns nil.
// After a serialization failure or a deadlock fn runs again, up to three times more,
// so it must have no effect outside the database and must not keep what it read in a
// failed try.
func (db *DB) InTx(ctx context.Context, tenant ID, fn func(context.Context, Tx) error) error {
	if tenant.IsZero() {
		return errors.New("a tenant transaction needs a tenant")
	}
	var committed []func()
	err := retried(ctx, func() error {
		committed = nil
		return within(ctx, db.app, func(tx pgx.Tx) error {
			var ignored string
			var now time.Time
			if err := tx.QueryRow(ctx, `SELECT `+db.binding()+`, now()`, tenant.String()).Scan(&ignored, &now); err != nil {
				return fmt.Errorf("name the transaction's tenant: %w", err)
			}
			return fn(ctx, Tx{Tx: tx, Tenant: tenant, Now: now.UTC(), committed: &committed})
		})
	})
	if err != nil {
		return err
	}
	for _, fn := range committed {
		fn()
	}
	return nil
}

// binding is the expression that binds a transaction to the tenant $1. Behind a pooler it
// takes on the role as well, which elsewhere the connection has.
func (db *DB) binding() string {
	if db.pooled {
		return `set_config('app.tenant_id', $1, true) || set_config('role', '` + appRole + `', true)
			|| set_config('idle_in_transaction_session_timeout', '` + idleLimit + `', true) || set_config('jit', 'off', true)`
	}
	return `set_config('app.tenant_id', $1, true)`
}

// InSystemTx is InTx for work across tenants.
func (db *DB) InSystemTx(ctx context.Context, fn func(context.Context, SystemTx) error) error {
	return retried(ctx, func() error {
		return within(ctx, db.system, func(tx pgx.Tx) error {
			var ignored string
			var now time.Time
			if err := tx.QueryRow(ctx, `SELECT `+durably+`, now()`).Scan(&ignored, &now); err != nil {
				return fmt.Errorf("read the database's clock: %w", err)
			}
			return fn(ctx, SystemTx{Tx: tx, Now: now.UTC()})
		})
	})
}

// SystemLook reads one row across tenants with a single statement. It is for looks that
// are made many times a second and mostly find nothing: a transaction around one would
// cost four times as much.
func (db *DB) SystemLook(ctx context.Context, query string, args ...any) pgx.Row {
	return db.system.QueryRow(ctx, query, args...)
}

// within begins, runs, and commits or rolls back. The roll-back gets a context of its
// own: a cancelled request must still give its connection back clean.
func within(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	conn, err := acquired(ctx, pool)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(ctx) // a no-op after the commit
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

const extraTries = 3

func retried(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if n == extraTries || !isTransient(err) {
			return err
		}
		pause := time.Duration(1+rand.IntN(10<<n)) * time.Millisecond
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

const serializationFailure, deadlock = "40001", "40P01"

func isTransient(err error) bool {
	code := sqlState(err)
	return code == serializationFailure || code == deadlock
}

// IsLostRace tells that a guarded change did not meet exactly the row it expected:
// somebody else changed it first, and the whole transaction is void.
func IsLostRace(err error) bool { return sqlState(err) == "TG001" }

// IsDuplicate tells that a unique key refused a row, and which key.
func IsDuplicate(err error) (string, bool) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" {
		return pg.ConstraintName, true
	}
	return "", false
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
