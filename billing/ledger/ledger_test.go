package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// books is a ledger with one tenant, one pipeline and any number of runs in it.
type books struct {
	*dbtest.Database
	tenant   tenants.ID
	pipeline ledger.PipelineID
}

func open(t testing.TB) *books {
	t.Helper()
	db := dbtest.Open(t)
	return opened(t, db)
}

// opened adds a tenant with a published pipeline to a database.
func opened(t testing.TB, db *dbtest.Database) *books {
	t.Helper()
	tenant, _ := db.Tenant(t)
	b := &books{Database: db, tenant: tenant, pipeline: ledger.PipelineID(tenants.NewID[tenants.Tenant]())}
	batch := &tenants.Batch{}
	batch.Queue(`INSERT INTO pipelines (tenant_id, id, name, draft) VALUES ($1, $2, 'Triage', '{}')`, tenant, b.pipeline)
	batch.Queue(`INSERT INTO pipeline_versions (tenant_id, pipeline_id, number, document, digest, semantics)
		VALUES ($1, $2, 1, '{}', sha256('{}'), 1)`, tenant, b.pipeline)
	require.NoError(t, b.Send(t.Context(), tenant, batch))
	return b
}

// step is a running step run of a run.
type step struct {
	run ledger.RunID
	id  ledger.StepRunID
}

// run starts a run of the pipeline with one step in it.
func (b *books) run(t testing.TB) step {
	t.Helper()
	s := step{run: ledger.RunID(tenants.NewID[tenants.Tenant]()), id: ledger.StepRunID(tenants.NewID[tenants.Tenant]())}
	batch := &tenants.Batch{}
	batch.Queue(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key)
		VALUES ($1, $2, $3, 1, ('x' || substr(md5($2::uuid::text), 1, 15))::bit(60)::bigint, 'Run', 'running', sha256('{}'), $2::uuid::text)`,
		b.tenant, s.run, b.pipeline)
	batch.Queue(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state)
		VALUES ($1, $2, $3, 'ask', 'ai', 'running')`, b.tenant, s.id, s.run)
	require.NoError(t, b.Send(t.Context(), b.tenant, batch))
	return s
}

// tester is a price with which every token costs one micro.
var tester = ledger.Price{
	Provider: "test", Model: "plain", Funds: ledger.Real,
	Input: ledger.PerMillion(ledger.Dollar), Output: ledger.PerMillion(ledger.Dollar),
}

func (s step) hold(amount ledger.Micros) ledger.Hold {
	return ledger.Hold{
		ID: tenants.NewID[ledger.Hold](), Run: s.run, StepRun: s.id, Attempt: 1, Payer: ledger.PayerOwn,
		Quote: ledger.Quote{Model: "test/plain", Price: tester, Amount: amount},
	}
}

func (b *books) send(t testing.TB, fill func(*tenants.Batch)) error {
	t.Helper()
	batch := &tenants.Batch{}
	fill(batch)
	return b.Send(t.Context(), b.tenant, batch)
}

func (b *books) hold(t testing.TB, h ledger.Hold) error {
	t.Helper()
	return b.send(t, func(batch *tenants.Batch) { ledger.QueueHold(batch, h) })
}

func (b *books) settle(t testing.TB, s ledger.Settlement) error {
	t.Helper()
	return b.send(t, func(batch *tenants.Batch) { ledger.QueueSettle(batch, s) })
}

func (b *books) release(t testing.TB, id ledger.HoldID) error {
	t.Helper()
	return b.send(t, func(batch *tenants.Batch) { ledger.QueueRelease(batch, id) })
}

func (b *books) setCap(t testing.TB, place ledger.Place, funds ledger.Funds, limit *ledger.Micros) {
	t.Helper()
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: place, Funds: funds, Limit: limit})
	})
}

func (b *books) in(t testing.TB, fn func(context.Context, tenants.Tx) error) {
	t.Helper()
	require.NoError(t, b.InTx(t.Context(), b.tenant, fn))
}

// month is the tenant's current month.
func (b *books) month(t testing.TB) ledger.MonthStatus {
	t.Helper()
	var month ledger.MonthStatus
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.Month(ctx, tx)
		month = found
		return err
	})
	return month
}

func (b *books) runCost(t testing.TB, id ledger.RunID) ledger.Standings {
	t.Helper()
	var cost ledger.Standings
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.RunCost(ctx, tx, id)
		cost = found
		return err
	})
	return cost
}

func (b *books) charges(t testing.TB, s step) []ledger.Charge {
	t.Helper()
	var lines []ledger.Charge
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.ChargesOfStep(ctx, tx, s.id)
		lines = found
		return err
	})
	return lines
}

// sound fails the test if any balance is not what its lines make it.
func (b *books) sound(t testing.TB) {
	t.Helper()
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.Reconcile(ctx, tx)
		require.NoError(t, err)
		require.Empty(t, found)
		return nil
	})
}

// reached requires that err is a cap's and returns which.
func reached(t testing.TB, err error) *ledger.CapReached {
	t.Helper()
	require.Error(t, err)
	found, ok := ledger.AsCapReached(err)
	require.True(t, ok, "%v", err)
	return found
}

func limit(micros ledger.Micros) *ledger.Micros { return &micros }

// tokens costs n micros at the tester's price.
func tokens(n int64) ledger.Tokens { return ledger.Tokens{Output: n} }

var receipt = ledger.Receipt{Model: "plain-2026", RequestID: "req_1", Finish: "stop", Latency: 1500 * time.Millisecond}
