package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Whatever is done in whatever order, the balances are what the lines make them and no
// cap is passed; a small model beside the ledger tells how much must be spent and held.
func TestRandomOperationsKeepTheBooks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.setCap(t, ledger.OfPipeline(b.pipeline), ledger.Real, limit(20_000))
			spent, held := operate(t, b, rand.New(rand.NewPCG(seed, 99)))
			requireTotals(t, b, spent, held)
			b.sound(t)
		})
	}
}

// operate holds and ends holds at random, over two months, and returns what must be
// spent and held after it.
func operate(t *testing.T, b *books, chance *rand.Rand) (ledger.Micros, ledger.Micros) {
	steps := []step{b.run(t), b.run(t), b.run(t)}
	var open []ledger.Hold
	var spent, held ledger.Micros
	for range 120 {
		if len(open) == 0 || chance.IntN(5) < 2 {
			h := anyHold(steps[chance.IntN(len(steps))], chance)
			err := b.hold(t, h)
			if _, capped := ledger.AsCapReached(err); capped {
				continue
			}
			require.NoError(t, err)
			open, held = append(open, h), held+h.Amount
			continue
		}
		n := chance.IntN(len(open))
		h := open[n]
		open = append(open[:n], open[n+1:]...)
		held -= h.Amount
		spent += endSomehow(t, b, chance, h)
		if chance.IntN(10) == 0 {
			require.True(t, tenants.IsLostRace(b.release(t, h.ID)))
		}
	}
	return spent, held
}

func anyHold(s step, chance *rand.Rand) ledger.Hold {
	months := []time.Time{at("2026-10-15T00:00:00Z"), at("2026-10-31T23:59:59Z"), at("2026-11-01T00:00:00Z")}
	h := s.hold(ledger.Micros(chance.Int64N(2_000)))
	h.At, h.Parked = months[chance.IntN(len(months))], chance.IntN(3) == 0
	if chance.IntN(4) == 0 {
		h.Price.Funds = ledger.Pretend
	}
	return h
}

// endSomehow ends a hold in any way, also above what was reserved, and returns what it
// must have cost.
func endSomehow(t *testing.T, b *books, chance *rand.Rand, h ledger.Hold) ledger.Micros {
	switch chance.IntN(4) {
	case 0:
		require.NoError(t, b.release(t, h.ID))
		return 0
	case 1:
		require.NoError(t, b.settle(t, ledger.SettleUnknown(h.ID)))
		return h.Amount
	}
	cost := chance.Int64N(2_500)
	require.NoError(t, b.settle(t, h.Settle(tokens(cost), receipt)))
	return ledger.Micros(cost)
}

func requireTotals(t *testing.T, b *books, spent, held ledger.Micros) {
	t.Helper()
	for _, scope := range []ledger.Scope{ledger.ScopeRun, ledger.ScopePipeline, ledger.ScopeTenant} {
		var gotSpent, gotHeld ledger.Micros
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			return tx.QueryRow(ctx, `SELECT sum(spent_micros)::bigint, sum(held_micros)::bigint FROM balances WHERE scope = $1`, scope).
				Scan(&gotSpent, &gotHeld)
		})
		require.Equal(t, spent, gotSpent, scope)
		require.Equal(t, held, gotHeld, scope)
	}
}

func TestReconcileNamesEachDifference(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	settled, open := s.hold(100), s.hold(30)
	require.NoError(t, b.hold(t, settled))
	require.NoError(t, b.hold(t, open))
	require.NoError(t, b.settle(t, settled.Settle(tokens(120), receipt)))
	b.sound(t)

	tenant := ledger.OfTenant(b.tenant)
	hold := ledger.Place{Scope: "hold", ID: settled.ID.String()}
	tampered := []struct {
		statement string
		want      []ledger.Difference
	}{
		{`UPDATE balances SET held_micros = 31 WHERE scope = 'tenant'`,
			[]ledger.Difference{{Place: tenant, Figure: "held", Recorded: 31, Computed: 30}}},
		{`UPDATE balances SET spent_micros = 119 WHERE scope = 'tenant'`,
			[]ledger.Difference{{Place: tenant, Figure: "spent", Recorded: 119, Computed: 120}}},
		{`UPDATE balances SET overrun_micros = 0 WHERE scope = 'tenant'`,
			[]ledger.Difference{{Place: tenant, Figure: "overrun", Recorded: 0, Computed: 20}}},
		{`DELETE FROM balances WHERE scope = 'run'`, []ledger.Difference{
			{Place: ledger.OfRun(s.run), Figure: "held", Computed: 30},
			{Place: ledger.OfRun(s.run), Figure: "overrun", Computed: 20},
			{Place: ledger.OfRun(s.run), Figure: "spent", Computed: 120}}},
		{`UPDATE holds SET state = 'released' WHERE state = 'settled'`,
			[]ledger.Difference{{Place: hold, Figure: "charges", Recorded: 1, Computed: 0}}},
	}
	super := b.Super(t)
	for _, c := range tampered {
		tx, err := super.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), c.statement)
		require.NoError(t, err)
		found, err := ledger.Reconcile(t.Context(), tenants.Tx{Tx: tx, Tenant: b.tenant})
		require.NoError(t, err)
		for i := range found {
			found[i].Funds, found[i].PeriodStart = "", time.Time{}
		}
		require.Equal(t, c.want, found, c.statement)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	// A charge that is gone is told by the hold and by every sum it was in.
	tx, err := super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `DELETE FROM charges`)
	require.NoError(t, err)
	found, err := ledger.Reconcile(t.Context(), tenants.Tx{Tx: tx, Tenant: b.tenant})
	require.NoError(t, err)
	require.Len(t, found, 1+2*3)
	require.NoError(t, tx.Rollback(t.Context()))
	b.sound(t)
}
