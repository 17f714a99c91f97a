// Package dbtest gives each test a migrated database of its own, reached as the
// restricted roles that the product uses.
//
// TEST_DATABASE_URL names a server and a superuser on it; without it the package
// starts one throw-away server per test process. Databases are cloned from a template
// that is made once for each shape of the migrations.
package dbtest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that pgtestdb opens
	"github.com/peterldowns/pgtestdb"
	"github.com/stretchr/testify/require"

	"tollgate/migrations"
	"tollgate/tenants"
)

// Database is one test's own database.
type Database struct {
	*tenants.DB
	URL string // of a login that may take on the app, system and owner roles
}

// Open makes a migrated database and drops it when the test ends.
func Open(t testing.TB) *Database {
	t.Helper()
	config := pgtestdb.Custom(t, serverConfig(t), migrator{})
	db, err := tenants.Open(t.Context(), tenants.Config{URL: config.URL(), AppConns: 8, SysConns: 4})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return &Database{DB: db, URL: config.URL()}
}

// Super connects as a role that row-level security does not bind, to look at all rows
// or at the catalogue. The product never does.
func (d *Database) Super(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config := serverConfig(t)
	own, err := pgx.ParseConfig(d.URL)
	require.NoError(t, err)
	config.Database = own.Database
	pool, err := pgxpool.New(t.Context(), config.URL())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Tenant makes a tenant with one owner, and returns both.
func (d *Database) Tenant(t testing.TB) (tenants.ID, tenants.UserID) {
	t.Helper()
	tenant, user := tenants.NewID[tenants.Tenant](), tenants.NewID[tenants.User]()
	err := d.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO tenants (id, name) VALUES ($1, 'Test workspace')`, tenant)
		batch.Queue(`INSERT INTO users (id, email, name) VALUES ($1, $2, 'Olga Owner')`, user, user.String()+"@example.com")
		batch.Queue(`INSERT INTO members (tenant_id, user_id, role) VALUES ($1, $2, 'owner')`, tenant, user)
		return tx.SendBatch(ctx, batch).Close()
	})
	require.NoError(t, err)
	return tenant, user
}

// migrator makes the template database for pgtestdb.
type migrator struct{}

func (migrator) Hash() (string, error) { return migrations.Hash() }

func (migrator) Migrate(ctx context.Context, _ *sql.DB, template pgtestdb.Config) error {
	_, err := migrations.Up(ctx, template.URL())
	return err
}
