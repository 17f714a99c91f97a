package tenants_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// Requests that ask for a second connection while they hold one end, well or with
// trouble that says so, within the limit; afterwards the pool serves as before.
func TestCaseS76NestedTransactionsEmptyNoPoolForGood(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	small, err := tenants.Open(t.Context(), tenants.Config{URL: db.URL, AppConns: 4, SysConns: 2})
	require.NoError(t, err)
	t.Cleanup(small.Close)
	one := func(ctx context.Context, tx tenants.Tx) error { return tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)) }
	began := time.Now()
	var all sync.WaitGroup
	var well, troubled atomic.Int32
	for range 50 {
		all.Go(func() {
			err := small.InTx(context.Background(), ours, func(ctx context.Context, tx tenants.Tx) error {
				if err := one(ctx, tx); err != nil {
					return err
				}
				return small.InTx(ctx, ours, one)
			})
			switch {
			case err == nil:
				well.Add(1)
			case tenants.IsTrouble(err):
				troubled.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.Logf("%d went well and %d had trouble in %v", well.Load(), troubled.Load(), time.Since(began).Round(time.Millisecond))
	require.Less(t, time.Since(began), 40*time.Second)
	began = time.Now()
	require.NoError(t, small.InTx(t.Context(), ours, one))
	require.Less(t, time.Since(began), 5*time.Second, "the pool did not come back")
}

// readOnly makes new sessions of a database refuse all changes, "on", as those of a server
// do that was the main one before a fail-over, or take them again, "off". Old ones are
// cut when it goes on, and stay as they are when it goes off.
func readOnly(t *testing.T, db *dbtest.Database, yes string) {
	t.Helper()
	own, err := pgx.ParseConfig(db.URL)
	require.NoError(t, err)
	server, err := pgx.Connect(t.Context(), dbtest.ServerURL(t))
	require.NoError(t, err)
	defer server.Close(context.Background())
	_, err = server.Exec(t.Context(), `ALTER DATABASE `+pgx.Identifier{own.Database}.Sanitize()+` SET default_transaction_read_only = `+yes)
	require.NoError(t, err)
	_, err = server.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND $2 = 'on'`, own.Database, yes)
	require.NoError(t, err)
}

// A server that takes no changes is no place to stay: the check is red, work has trouble
// that may pass, and once there is one that takes them, all goes on alone.
func TestCaseS74PoolLeavesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	change := func() error {
		batch := &tenants.Batch{}
		batch.Guarded(`UPDATE tenants SET name = name || '+' WHERE id = $1 RETURNING 1`, ours)
		return db.Send(t.Context(), ours, batch)
	}
	require.NoError(t, db.Ping(t.Context()))
	require.NoError(t, change())
	readOnly(t, db, "on")
	require.Error(t, db.Ping(t.Context()))
	require.Eventually(t, func() bool {
		err := change()
		require.Error(t, err)
		return tenants.IsTrouble(err)
	}, 5*time.Second, 10*time.Millisecond)
	readOnly(t, db, "off")
	require.Eventually(t, func() bool { return change() == nil && db.Ping(t.Context()) == nil }, 10*time.Second, 50*time.Millisecond)
}

// A session that turns read-only under our hands, without being cut, is left as well.
func TestCaseS74SessionThatTurnsReadOnlyIsLeft(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	one, err := tenants.Open(t.Context(), tenants.Config{URL: db.URL, AppConns: 1, SysConns: 1})
	require.NoError(t, err)
	t.Cleanup(one.Close)
	write := func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE tenants SET name = name || '+'`)
		return err
	}
	require.NoError(t, one.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`)
		return err
	}))
	require.ErrorContains(t, one.Ping(t.Context()), "takes no changes")
	require.True(t, tenants.IsTrouble(one.InTx(t.Context(), ours, write)))
	require.NoError(t, one.InTx(t.Context(), ours, write), "the pool kept the session")
	require.NoError(t, one.Ping(t.Context()))
}

// A process that stands still in the middle of a transaction, as a frozen one does, gives
// its locks back before its slices are taken over.
func TestStandingStillInATransactionGivesItsLocksBack(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	held, still := make(chan struct{}), make(chan struct{})
	over := make(chan error)
	go func() {
		over <- db.InTx(context.Background(), ours, func(ctx context.Context, tx tenants.Tx) error {
			if _, err := tx.Exec(ctx, `UPDATE tenants SET name = 'held'`); err != nil {
				return err
			}
			close(held)
			<-still
			_, err := tx.Exec(ctx, `SELECT 1`)
			return err
		})
	}()
	<-held
	began := time.Now()
	require.NoError(t, db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE tenants SET name = 'free'`)
		return err
	}))
	require.Less(t, time.Since(began), 13*time.Second)
	close(still)
	require.True(t, tenants.IsTrouble(<-over))
	require.Equal(t, "free", tenantName(t, db, ours))
}
