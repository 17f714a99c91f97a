package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestTroubleIsToldFromRefusals(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"57P01": true, "57P03": true, "53300": true, "08006": true, "40P01": true, "40001": true, "25006": true, "25P03": true,
		"57014": false, "23505": false, "TG001": false, "TG002": false, "22P02": false, "42P01": false, "": false,
	} {
		err := fmt.Errorf("commit: %w", &pgconn.PgError{Code: code})
		require.Equal(t, want, tenants.IsTrouble(err), "SQLSTATE %q", code)
	}
	require.True(t, tenants.IsTrouble(fmt.Errorf("begin a transaction: %w", pgconn.ErrConnClosed)))
	require.False(t, tenants.IsTrouble(nil))
	require.False(t, tenants.IsTrouble(errors.New("a defect")))
	require.False(t, tenants.IsTrouble(pgx.ErrNoRows))
	require.False(t, tenants.IsTrouble(context.Canceled))
}

// A connection that is cut in the middle of a transaction is trouble, however it shows.
func TestCutConnectionIsTrouble(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	super := db.Super(t)
	for range 5 {
		err := db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
			var pid int
			require.NoError(t, tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid))
			_, err := super.Exec(ctx, `SELECT pg_terminate_backend($1, 5000)`, pid)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, `SELECT 1`)
			return err
		})
		require.True(t, tenants.IsTrouble(err), "%v", err)
	}
}

func TestServerThatIsNotThereIsTrouble(t *testing.T) {
	t.Parallel()
	_, err := pgx.Connect(t.Context(), "postgres://nobody@"+dbtest.FreeAddr(t)+"/none?sslmode=disable")
	require.True(t, tenants.IsTrouble(err), "%v", err)
}
