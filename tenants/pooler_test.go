package tenants_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// throughBouncer reaches a database through a pooler that shares sessions, as the system
// directly.
func throughBouncer(t *testing.T, db *dbtest.Database) (*tenants.DB, string) {
	t.Helper()
	url := fault.StartBouncer(t, db.URL, "transaction")
	through, err := tenants.Open(t.Context(), tenants.Config{URL: url, SystemURL: db.URL})
	require.NoError(t, err)
	t.Cleanup(through.Close)
	return through, url
}

// Behind a pooler in transaction mode each transaction has its role and tenant, whichever
// session it meets, and leaves nothing on it.
func TestCaseS75PoolerSharesSessionsAndNothingElse(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	through, url := throughBouncer(t, db)
	require.Contains(t, through.Mode(), "pooler")
	require.Contains(t, db.Mode(), "direct")
	ids := make([]tenants.ID, 8)
	for n := range ids {
		ids[n], _ = db.Tenant(t)
	}
	var all sync.WaitGroup
	for n := range 200 {
		ours := ids[n%len(ids)]
		all.Go(func() {
			err := through.InTx(context.Background(), ours, func(ctx context.Context, tx tenants.Tx) error {
				var role string
				var seen []tenants.ID
				err := tx.QueryRow(ctx, `SELECT current_user, array_agg(id) FROM tenants`).Scan(&role, &seen)
				if err == nil && (role != "tollgate_app" || len(seen) != 1 || seen[0] != ours) {
					err = fmt.Errorf("as %s one saw %v", role, seen)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			batch := &tenants.Batch{}
			batch.Guarded(`UPDATE tenants SET name = 'n' WHERE id = $1 AND current_user = 'tollgate_app' RETURNING 1`, ours)
			if err := through.Send(context.Background(), ours, batch); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	stranger, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer stranger.Close(context.Background())
	var role, tenant string
	require.NoError(t, stranger.QueryRow(t.Context(), `SELECT current_user, coalesce(current_setting('app.tenant_id', true), '')`, pgx.QueryExecModeExec).Scan(&role, &tenant))
	require.Equal(t, "tollgate_test", role)
	require.Empty(t, tenant)
}

// River needs sessions of its own: the system's connections may go through a pooler that
// lends them, and through no other.
func TestCaseS75SystemNeedsSessionsOfItsOwn(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	_, err := tenants.Open(t.Context(), tenants.Config{URL: db.URL, SystemURL: fault.StartBouncer(t, db.URL, "transaction")})
	require.ErrorContains(t, err, "TOLLGATE_SYSTEM_DATABASE_URL")
	session, err := tenants.Open(t.Context(), tenants.Config{URL: db.URL, SystemURL: fault.StartBouncer(t, db.URL, "session"), SysConns: 2})
	require.NoError(t, err)
	t.Cleanup(session.Close)
	var role string
	require.NoError(t, session.System().QueryRow(t.Context(), `SELECT current_user`).Scan(&role))
	require.Equal(t, "tollgate_system", role)
}

// A migration that adds a column disturbs no statement that was prepared before it,
// directly or behind a pooler.
func TestCaseS75ColumnsAreAddedUnderPreparedStatements(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	through, _ := throughBouncer(t, db)
	for name, reached := range map[string]*tenants.DB{"direct": db.DB, "pooler": through} {
		read := func() (tenants.Tenant, error) {
			var found tenants.Tenant
			err := reached.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
				var err error
				found, err = tenants.TenantOf(ctx, tx)
				return err
			})
			return found, err
		}
		before, err := read()
		require.NoError(t, err)
		_, err = db.Super(t).Exec(t.Context(), `ALTER TABLE tenants ADD COLUMN added_`+name+` text NOT NULL DEFAULT 'new'`)
		require.NoError(t, err)
		for range 5 {
			after, err := read()
			require.NoError(t, err, name)
			require.Equal(t, before, after)
		}
	}
}
