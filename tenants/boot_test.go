package tenants_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestBootRefusesRolesThatRowSecurityDoesNotBind(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	for name, test := range map[string]struct {
		pool    *pgxpool.Pool
		refused string
	}{
		"a superuser":                  {db.Super(t), "refusing to serve as database role"},
		"the owner of the tables":      {poolAs(t, db.URL, "tollgate_owner"), `refusing to serve as database role "tollgate_owner"`},
		"a login that has the owner's": {poolAs(t, db.URL, ""), `refusing to serve as database role "tollgate_test"`},
		"the app role":                 {poolAs(t, db.URL, "tollgate_app"), ""},
		"the system role":              {poolAs(t, db.URL, "tollgate_system"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tenants.CheckRole(t.Context(), test.pool)
			if test.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.refused)
			require.ErrorContains(t, err, "let the login role take on tollgate_app and tollgate_system")
		})
	}
}

// The pools take a role on themselves, whatever the login may do.
func TestOpenWorksWithABroadLogin(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	opened, err := tenants.Open(t.Context(), tenants.Config{URL: db.Super(t).Config().ConnString()})
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	var role string
	err = opened.InSystemTx(t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		return stx.QueryRow(ctx, `SELECT current_user`).Scan(&role)
	})
	require.NoError(t, err)
	require.Equal(t, "tollgate_system", role)
}

func poolAs(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if role == "" {
			return nil
		}
		_, err := conn.Exec(ctx, "SET ROLE "+role)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
