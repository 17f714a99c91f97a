package tenants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestTxSeesOnlyItsTenant(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	theirs, _ := db.Tenant(t)

	err := db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT id FROM tenants`)
		seen, err := pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		require.NoError(t, err)
		require.Equal(t, []tenants.ID{ours}, seen)

		tag, err := tx.Exec(ctx, `UPDATE tenants SET name = 'stolen' WHERE id = $1`, theirs)
		require.NoError(t, err)
		require.Zero(t, tag.RowsAffected())
		return nil
	})
	require.NoError(t, err)
}

func TestTxWithoutTenantIsRefused(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	err := db.InTx(t.Context(), tenants.ID{}, func(context.Context, tenants.Tx) error {
		t.Fatal("ran without a tenant")
		return nil
	})
	require.ErrorContains(t, err, "needs a tenant")
	require.ErrorContains(t, db.Send(t.Context(), tenants.ID{}, &tenants.Batch{}), "needs a tenant")
}

func TestTxSettingDoesNotOutliveIt(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	for range 20 { // every pooled connection is used at least once
		require.NoError(t, db.InTx(t.Context(), ours, func(context.Context, tenants.Tx) error { return nil }))
	}
	other, err := tenants.Open(t.Context(), tenants.Config{URL: db.URL})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	var visible int
	err = db.InTx(t.Context(), tenants.NewID[tenants.Tenant](), func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM tenants`).Scan(&visible)
	})
	require.NoError(t, err)
	require.Zero(t, visible)
}

func TestTxRetriesDeadlocksAndRollsBack(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	tries := 0
	err := db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		tries++
		if _, err := tx.Exec(ctx, `UPDATE tenants SET name = name || '+'`); err != nil {
			return err
		}
		if tries < 3 {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'clash' USING ERRCODE = '40P01'; END $$`)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, tries)
	require.Equal(t, "Test workspace+", tenantName(t, db, ours))
}

func TestBatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	theirs, _ := db.Tenant(t)

	lost := &tenants.Batch{}
	lost.Guarded(`UPDATE tenants SET name = 'first' WHERE id = $1 RETURNING 1`, ours)
	lost.Guarded(`UPDATE tenants SET name = 'second' WHERE id = $1 RETURNING 1`, theirs)
	err := db.Send(t.Context(), ours, lost)
	require.True(t, tenants.IsLostRace(err), "%v", err)
	require.Equal(t, "Test workspace", tenantName(t, db, ours))

	won := &tenants.Batch{}
	won.Guarded(`UPDATE tenants SET name = 'first' WHERE id = $1 RETURNING 1`, ours)
	require.NoError(t, db.Send(t.Context(), ours, won))
	require.Equal(t, "first", tenantName(t, db, ours))
}

func TestBatchInsideTxRollsBackWithIt(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	boom := errors.New("boom")
	err := db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		batch := &tenants.Batch{}
		batch.Guarded(`UPDATE tenants SET name = 'first' WHERE id = $1 RETURNING 1`, ours)
		require.NoError(t, tx.Send(ctx, batch))
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.Equal(t, "Test workspace", tenantName(t, db, ours))
}

func tenantName(t *testing.T, db *dbtest.Database, id tenants.ID) string {
	t.Helper()
	var name string
	err := db.InTx(t.Context(), id, func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT name FROM tenants WHERE id = $1`, id).Scan(&name)
	})
	require.NoError(t, err)
	return name
}

func TestTimesAreReadAsUTC(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	inTenant(t, db, tenant, func(ctx context.Context, tx tenants.Tx) {
		var now time.Time
		require.NoError(t, tx.QueryRow(ctx, `SELECT now()`).Scan(&now))
		require.Equal(t, tx.Now, now)
		require.Equal(t, time.UTC, now.Location())
	})
}

// Queries over trees of rows are cheap to run and dear to compile.
func TestQueriesAreNotCompiled(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		var jit string
		err := tx.QueryRow(ctx, `SHOW jit`).Scan(&jit)
		require.Equal(t, "off", jit)
		return err
	}))
}
