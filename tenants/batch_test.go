package tenants_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// A batch is sent again after a deadlock, and then mostly on another connection.
func TestBatchMayBeSentOnAnotherConnection(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	ours, _ := db.Tenant(t)
	batch := &tenants.Batch{}
	batch.Queue(`SELECT length($1::text)`, "again")
	err := db.InTx(t.Context(), ours, func(ctx context.Context, tx tenants.Tx) error {
		require.NoError(t, tx.Send(ctx, batch))
		return db.Send(ctx, ours, batch) // the transaction keeps its connection meanwhile
	})
	require.NoError(t, err)
}
