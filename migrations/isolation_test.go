package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// tenantTable is a table with tenants' rows, as the catalogue tells it.
type tenantTable struct {
	Name      string
	Key       string // the column that says whose a row is
	Insert    string // inserts a row of tenant $1
	CanSelect bool
	CanInsert bool
	CanDelete bool
	CanUpdate string // a column the app role may change, or ""
}

// sampleValues has a valid expression for every type that a column may need a value of.
var sampleValues = map[string]string{
	"uuid":        "gen_random_uuid()",
	"text":        "gen_random_uuid()::text",
	"_text":       "ARRAY['a']",
	"bytea":       "sha256(uuid_send(gen_random_uuid()))",
	"int2":        "1",
	"int4":        "1",
	"int8":        "1",
	"bool":        "false",
	"timestamptz": "now()",
	"json":        "'{}'",
	"jsonb":       "'{}'",
}

// Each table gets a row of two tenants, made from nothing but the catalogue, so that a
// table added tomorrow is tried too. Checks and foreign keys are dropped for that in
// this test's own database; row-level security does not depend on them, and without
// them nothing else can be what refuses a row.
func TestNoTenantReachesAnothersRows(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	super := db.Super(t)
	dropChecksAndForeignKeys(t, super)
	ours, theirs := tenants.NewID[tenants.Tenant](), tenants.NewID[tenants.Tenant]()
	for _, table := range readTenantTables(t, super) {
		for _, tenant := range []tenants.ID{ours, theirs} {
			_, err := super.Exec(t.Context(), table.Insert, tenant)
			require.NoError(t, err, "make a row: %s", table.Insert)
		}
		t.Run(table.Name, func(t *testing.T) {
			tryTable(t, db, table, ours, theirs)
			var left int
			err := super.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s WHERE %s = $1`, table.Name, table.Key), theirs).Scan(&left)
			require.NoError(t, err)
			require.Equal(t, 1, left, "the other tenant's row must still be there")
		})
	}
}

// tryTable does as the app role, for one tenant, all that it can to the other's row.
func tryTable(t *testing.T, db *dbtest.Database, table tenantTable, ours, theirs tenants.ID) {
	if table.CanSelect {
		require.Equal(t, 1, countAs(t, db, ours, "SELECT 1 FROM "+table.Name), "a tenant reads its own row and no other")
		require.Zero(t, countAs(t, db, tenants.NewID[tenants.Tenant](), "SELECT 1 FROM "+table.Name))
		require.Zero(t, countAs(t, db, ours, fmt.Sprintf("SELECT 1 FROM %s WHERE %s = $1", table.Name, table.Key), theirs))
	}
	affected, err := execAs(t, db, ours, table.Insert, theirs)
	requireRefused(t, affected, err, "insert a row of the other")
	if table.CanInsert {
		affected, err = execAs(t, db, ours, table.Insert, ours)
		if _, clash := tenants.IsDuplicate(err); !clash { // a clash with our first row is past the policy, too
			require.NoError(t, err, "its own row is not refused, so it is the tenant that the row above was refused for")
			require.EqualValues(t, 1, affected)
		}
	}
	affected, err = execAs(t, db, ours, fmt.Sprintf("DELETE FROM %s WHERE %s = $1", table.Name, table.Key), theirs)
	requireUntouched(t, affected, err, table.CanDelete)

	column := table.CanUpdate
	if column == "" {
		column = table.Key
	}
	affected, err = execAs(t, db, ours, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s = $1", table.Name, column, column, table.Key), theirs)
	requireUntouched(t, affected, err, table.CanUpdate != "")
	affected, err = execAs(t, db, ours, fmt.Sprintf("UPDATE %s SET %s = $1", table.Name, table.Key), theirs)
	requireRefused(t, affected, err, "give a row of ours to the other")
}

// A connection that never named a tenant, or named none, sees nothing.
func TestNoTenantNamedNoRows(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	super := db.Super(t)
	dropChecksAndForeignKeys(t, super)
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `SET ROLE tollgate_app`)
	require.NoError(t, err)
	for _, table := range readTenantTables(t, super) {
		_, err := super.Exec(t.Context(), table.Insert, tenants.NewID[tenants.Tenant]())
		require.NoError(t, err)
		for _, setting := range []string{`RESET app.tenant_id`, `SET app.tenant_id = ''`} {
			_, err := conn.Exec(t.Context(), setting)
			require.NoError(t, err)
			tag, err := conn.Exec(t.Context(), `SELECT 1 FROM `+table.Name)
			require.NoError(t, err, "%s with %s", table.Name, setting)
			require.Zero(t, tag.RowsAffected(), "%s with %s", table.Name, setting)
		}
	}
}

func TestTenantSeesOnlyItsPeople(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, owner := db.Tenant(t)
	_, _ = db.Tenant(t)
	require.Equal(t, 1, countAs(t, db, ours, `SELECT 1 FROM users`))
	require.Equal(t, 1, countAs(t, db, ours, `SELECT 1 FROM users WHERE id = $1`, owner))
	affected, err := execAs(t, db, ours, `UPDATE users SET name = 'x' WHERE id = $1`, owner)
	requireRefused(t, affected, err, "change a person")
}

// River's jobs carry their tenant in the metadata.
func TestTenantReachesOnlyItsJobs(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	super := db.Super(t)
	ours, theirs := tenants.NewID[tenants.Tenant](), tenants.NewID[tenants.Tenant]()
	const insert = `INSERT INTO river.river_job (args, kind, max_attempts, metadata)
		VALUES ('{}', 'test', 1, jsonb_build_object('tenant_id', $1::text))`
	for _, tenant := range []tenants.ID{ours, theirs} {
		affected, err := execAs(t, db, tenant, insert, tenant.String())
		require.NoError(t, err)
		require.EqualValues(t, 1, affected)
		_, err = super.Exec(t.Context(), insert, tenant.String())
		require.NoError(t, err)
	}
	require.Equal(t, 1, countAs(t, db, ours, `SELECT 1 FROM river.river_job`))
	affected, err := execAs(t, db, ours, insert, theirs.String())
	requireRefused(t, affected, err, "insert a job of the other")
	affected, err = execAs(t, db, ours, `INSERT INTO river.river_job (args, kind, max_attempts) VALUES ('{}', 'test', 1)`)
	requireRefused(t, affected, err, "insert a job of nobody")
	affected, err = execAs(t, db, ours, `UPDATE river.river_job SET kind = 'stolen' WHERE metadata ->> 'tenant_id' = $1`, theirs.String())
	requireUntouched(t, affected, err, true)
	affected, err = execAs(t, db, ours, `DELETE FROM river.river_job`)
	requireRefused(t, affected, err, "delete jobs")
}

var errUndo = errors.New("undo")

// execAs runs a statement as the app role for a tenant, and takes it back.
func execAs(t *testing.T, db *dbtest.Database, tenant tenants.ID, sql string, args ...any) (int64, error) {
	t.Helper()
	var affected int64
	err := db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		affected = tag.RowsAffected()
		return errUndo
	})
	if errors.Is(err, errUndo) {
		return affected, nil
	}
	return affected, err
}

func countAs(t *testing.T, db *dbtest.Database, tenant tenants.ID, sql string, args ...any) int {
	t.Helper()
	count, err := execAs(t, db, tenant, sql, args...)
	require.NoError(t, err)
	return int(count)
}

func requireRefused(t *testing.T, affected int64, err error, what string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, "%s: changed %d rows", what, affected)
	require.Equal(t, "42501", pg.Code, "%s: %v", what, err)
}

// requireUntouched wants no row changed where the role has the right in general, and a
// refusal where it has not.
func requireUntouched(t *testing.T, affected int64, err error, hasRight bool) {
	t.Helper()
	if !hasRight {
		requireRefused(t, affected, err, "change the other's row without the right")
		return
	}
	require.NoError(t, err)
	require.Zero(t, affected)
}

func dropChecksAndForeignKeys(t *testing.T, super *pgxpool.Pool) {
	t.Helper()
	_, err := super.Exec(t.Context(), `DO $$
		DECLARE k record;
		BEGIN
			FOR k IN SELECT conrelid::regclass AS target, conname FROM pg_constraint
				WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype IN ('c', 'f')
			LOOP
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.target, k.conname);
			END LOOP;
		END $$`)
	require.NoError(t, err)
}

func readTenantTables(t *testing.T, super *pgxpool.Pool) []tenantTable {
	t.Helper()
	rows, _ := super.Query(t.Context(), tenantTables+`
		SELECT t.oid, t.relname, t.key,
			has_any_column_privilege('tollgate_app', t.oid, 'SELECT'),
			has_any_column_privilege('tollgate_app', t.oid, 'INSERT'),
			has_table_privilege('tollgate_app', t.oid, 'DELETE'),
			coalesce((SELECT min(a.attname) FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0
				AND a.attname <> t.key AND has_column_privilege('tollgate_app', t.oid, a.attnum, 'UPDATE')), '')
		FROM tenant_tables t ORDER BY t.relname`)
	var oids []uint32
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (tenantTable, error) {
		var table tenantTable
		var oid uint32
		err := row.Scan(&oid, &table.Name, &table.Key, &table.CanSelect, &table.CanInsert, &table.CanDelete, &table.CanUpdate)
		oids = append(oids, oid)
		return table, err
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for i := range found {
		found[i].Insert = insertOf(t, super, found[i], oids[i])
	}
	return found
}

// insertOf writes a statement that gives a value to the columns that need one.
func insertOf(t *testing.T, super *pgxpool.Pool, table tenantTable, oid uint32) string {
	t.Helper()
	rows, err := super.Query(t.Context(), `
		SELECT a.attname, coalesce(b.typname, y.typname)
		FROM pg_attribute a
		JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = y.typbasetype
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> $2
		AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''`, oid, table.Key)
	require.NoError(t, err)
	columns, values := []string{table.Key}, []string{"$1"}
	var column, kind string
	_, err = pgx.ForEachRow(rows, []any{&column, &kind}, func() error {
		sample, known := sampleValues[kind]
		require.True(t, known, "%s.%s: add a sample value of type %s", table.Name, column, kind)
		columns, values = append(columns, column), append(values, sample)
		return nil
	})
	require.NoError(t, err)
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table.Name, strings.Join(columns, ", "), strings.Join(values, ", "))
}
