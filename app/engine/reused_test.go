package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// A step that is begun as taken over says from where, and was not tried here.
func TestAReusedStepNamesItsSourceAndHasNoTry(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, owner := db.Tenant(t)
	source, row := tenants.NewID[StepRun](), tenants.NewID[StepRun]()
	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		run := bareRun(ctx, t, tx, owner)
		s := sheet{tenant: tenant}
		s.addChange(&commitment{run: run}, insertStep{
			row:   StepRun{ID: row, StepID: "ask", Kind: pipeline.KindAI, List: pipeline.ListSteps, State: StepDone, Attempt: 1, ReusedFrom: source},
			input: []byte(`{"n":1}`), output: []byte(`{}`),
		})
		batch := &tenants.Batch{}
		s.values.queue(batch, tenant)
		s.inserts.queue(batch, tenant, WorkerID{})
		require.NoError(t, tx.Send(ctx, batch))
		rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2`, tenant, run)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, source, rows[0].ReusedFrom)
		require.NotNil(t, rows[0].EndedAt)
		tries, err := AttemptsOf(ctx, tx, row)
		require.Empty(t, tries)
		return err
	}))
}

// bareRun is the row of a run, and nothing that would carry it on.
func bareRun(ctx context.Context, t *testing.T, tx tenants.Tx, owner tenants.UserID) RunID {
	document, err := pipeline.Parse([]byte(`{"semantics": 1, "name": "Bare", "steps": [{"id": "keep", "name": "Keep", "kind": "set", "with": {"values": [{"name": "n", "formula": "1"}]}}]}`))
	require.NoError(t, err)
	id, err := pipeline.Create(ctx, tx, document, "", owner)
	require.NoError(t, err)
	_, err = pipeline.Publish(ctx, tx, id, "", owner)
	require.NoError(t, err)
	started, err := (&Engine{}).Start(ctx, tx, StartRequest{Pipeline: id, Input: []byte(`{}`), By: owner, Key: id.String()})
	require.NoError(t, err)
	return started.Run.ID
}
