package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// longAgo makes a hold whose time is over.
func longAgo(h ledger.Hold) ledger.Hold {
	h.At, h.Lifetime = time.Now().Add(-time.Hour), time.Minute
	return h
}

func (b *books) end(t *testing.T, s step) {
	t.Helper()
	require.NoError(t, b.send(t, func(batch *tenants.Batch) {
		batch.Queue(`UPDATE step_runs SET state = 'failed', ended_at = now() WHERE tenant_id = $1 AND id = $2`, b.tenant, s.id)
	}))
}

func TestExpireHolds(t *testing.T) {
	t.Parallel()
	b := open(t)
	other := opened(t, b.Database)
	running, ended, again, theirs := b.run(t), b.run(t), b.run(t), other.run(t)

	answering := longAgo(running.hold(1))
	require.NoError(t, b.hold(t, answering))
	lost, parked, young := longAgo(ended.hold(20)), longAgo(ended.hold(300)), ended.hold(4000)
	parked.Parked = true
	for _, h := range []ledger.Hold{lost, parked, young} {
		require.NoError(t, b.hold(t, h))
	}
	firstTry := longAgo(again.hold(50_000))
	require.NoError(t, b.hold(t, firstTry))
	require.NoError(t, b.send(t, func(batch *tenants.Batch) {
		batch.Queue(`UPDATE step_runs SET attempt = 2 WHERE tenant_id = $1 AND id = $2`, b.tenant, again.id)
	}))
	strange := longAgo(theirs.hold(7))
	require.NoError(t, other.hold(t, strange))
	b.end(t, ended)
	other.end(t, theirs)

	done, err := ledger.ExpireHolds(t.Context(), b.DB)
	require.NoError(t, err)
	require.Equal(t, ledger.Expired{Settled: 3, Released: 1}, done)
	require.Equal(t, ledger.Standing{Spent: 50_020, Held: 4001}, b.month(t).Real)
	require.EqualValues(t, 7, other.month(t).Real.Spent)
	lines := b.charges(t, ended)
	require.Len(t, lines, 1)
	require.Equal(t, lost.ID, lines[0].Hold)
	require.True(t, lines[0].Tokens.Estimated)
	require.Equal(t, tester.Output, lines[0].Output)

	done, err = ledger.ExpireHolds(t.Context(), b.DB)
	require.NoError(t, err)
	require.Equal(t, ledger.Expired{}, done, "a second sweep finds nothing")
	require.NoError(t, b.settle(t, answering.Settle(tokens(1), receipt)), "a slow answer still counts")
	require.True(t, tenants.IsLostRace(b.settle(t, lost.Settle(tokens(1), receipt))), "an answer after the sweep does not")
	b.sound(t)
	other.sound(t)
}

// The sweep meets a commit of the run that has its lock and then ends the same hold: it
// waits, finds the hold ended, and neither deadlocks nor charges again.
func TestExpireWaitsForTheRunsCommit(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := longAgo(s.hold(100))
	require.NoError(t, b.hold(t, h))
	b.end(t, s)
	swept := make(chan error, 1)
	tries := 0
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		tries++
		_, err := tx.Exec(ctx, `SELECT 1 FROM runs WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, b.tenant, s.run)
		require.NoError(t, err)
		go func() {
			done, err := ledger.ExpireHolds(context.Background(), b.DB)
			if done != (ledger.Expired{}) {
				t.Errorf("swept %+v", done)
			}
			swept <- err
		}()
		waitUntilBlocked(t, b, 1)
		batch := &tenants.Batch{}
		ledger.QueueSettle(batch, h.Settle(tokens(60), receipt))
		return tx.Send(ctx, batch)
	})
	require.NoError(t, <-swept)
	require.Equal(t, 1, tries)
	require.Equal(t, ledger.Standing{Spent: 60}, b.month(t).Real)
	b.sound(t)
}

func TestAbandonEndsWhatAnAttemptHeld(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	sent, parked, later, settled := s.hold(100), s.hold(20), s.hold(3), s.hold(4000)
	parked.Parked, later.Attempt = true, 2
	for _, h := range []ledger.Hold{sent, parked, later, settled} {
		require.NoError(t, b.hold(t, h))
	}
	require.NoError(t, b.settle(t, settled.Settle(tokens(1000), receipt)))
	abandon := func() error {
		return b.send(t, func(batch *tenants.Batch) { ledger.QueueAbandon(batch, s.id, 1) })
	}
	require.NoError(t, abandon())
	require.Equal(t, ledger.Standing{Spent: 1100, Held: 3}, b.month(t).Real)
	require.NoError(t, abandon(), "there is nothing left to end")
	require.Equal(t, ledger.Standing{Spent: 1100, Held: 3}, b.month(t).Real)
	b.sound(t)
}

func TestDispatchedHoldIsNotGivenBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(100)
	h.Parked = true
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.send(t, func(batch *tenants.Batch) { ledger.QueueDispatch(batch, h.ID) }))
	require.NoError(t, b.send(t, func(batch *tenants.Batch) { ledger.QueueAbandon(batch, s.id, 1) }))
	require.Equal(t, ledger.Standing{Spent: 100}, b.month(t).Real)
}
