package ledger_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// tagged is a hold that counts in every scope there is.
type tagged struct {
	step
	parent ledger.RunID
	loop   ledger.StepRunID
	key    ledger.KeyID
}

func (b *books) tagged(t testing.TB) tagged {
	return tagged{step: b.run(t), parent: b.run(t).run,
		loop: ledger.StepRunID(tenants.NewID[tenants.Tenant]()), key: ledger.KeyID(tenants.NewID[tenants.Tenant]())}
}

func (s tagged) hold(amount ledger.Micros, stepLimit ledger.Micros) ledger.Hold {
	h := s.step.hold(amount)
	h.Kind, h.Key, h.CostCentre, h.Ancestors = ledger.Test, s.key, "Marketing", []ledger.RunID{s.parent}
	h.Limits = []ledger.StepLimit{{Step: s.loop, Limit: stepLimit}}
	return h
}

// places are all the places that a tagged hold counts in.
func (s tagged) places(b *books) map[ledger.Scope]ledger.Place {
	return map[ledger.Scope]ledger.Place{
		ledger.ScopeStep: ledger.OfStep(s.loop), ledger.ScopeRun: ledger.OfRun(s.parent),
		ledger.ScopePipeline: ledger.OfPipeline(b.pipeline), ledger.ScopeCostCentre: ledger.OfCostCentre("Marketing"),
		ledger.ScopeKey: ledger.OfKey(s.key), ledger.ScopeTest: ledger.OfTests(b.tenant),
		ledger.ScopeTenantDay: ledger.OfTenantDay(b.tenant), ledger.ScopeTenant: ledger.OfTenant(b.tenant),
	}
}

func (b *books) stand(t testing.TB, place ledger.Place) ledger.PeriodStatus {
	t.Helper()
	var found ledger.PeriodStatus
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		status, err := ledger.Stand(ctx, tx, place)
		found = status
		return err
	})
	return found
}

// S51: a cap on any one scope binds, knows what was spent before it was set, is named,
// and binds no more once it is lifted.
func TestCaseS51EveryScopesCapBinds(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, scope := range []ledger.Scope{ledger.ScopeStep, ledger.ScopeRun, ledger.ScopePipeline, ledger.ScopeCostCentre,
		ledger.ScopeKey, ledger.ScopeTest, ledger.ScopeTenantDay, ledger.ScopeTenant} {
		s := b.tagged(t)
		place := s.places(b)[scope]
		before := b.stand(t, place).Real
		settled, held := s.hold(100, ledger.MaxMicros), s.hold(30, ledger.MaxMicros)
		require.NoError(t, b.hold(t, settled))
		require.NoError(t, b.settle(t, settled.Settle(tokens(120), receipt)), scope)
		require.NoError(t, b.hold(t, held))

		b.setCap(t, place, ledger.Real, limit(1_000_000))
		stand := b.stand(t, place).Real
		if before.Limit == nil { // places of the tenant have seen the calls of earlier rounds
			require.GreaterOrEqual(t, stand.Spent, ledger.Micros(120), scope)
		}
		require.Equal(t, ledger.Micros(30), stand.Held-before.Held, scope)
		b.setCap(t, place, ledger.Real, limit(stand.Spent+stand.Held+50))
		fits := s.hold(50, ledger.MaxMicros)
		require.NoError(t, b.hold(t, fits), scope)
		capped := reached(t, b.hold(t, s.hold(1, ledger.MaxMicros)))
		require.Equal(t, place, ledger.Place{Scope: capped.Scope, ID: capped.ID})
		require.Zero(t, capped.Available)
		require.Contains(t, capped.String(), "AI spend cap of", scope)
		b.sound(t)

		b.setCap(t, place, ledger.Real, nil)
		last := s.hold(1, ledger.MaxMicros)
		require.NoError(t, b.hold(t, last), scope)
		for _, h := range []ledger.Hold{held, fits, last} {
			require.NoError(t, b.release(t, h.ID))
		}
		require.Equal(t, before.Held, b.stand(t, place).Real.Held, scope)
		b.sound(t)
	}
}

// The limit of a step that holds others covers all its rounds, from the first hold on, and
// can be raised like every cap.
func TestStepLimitCoversWhatIsInside(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.tagged(t)
	require.NoError(t, b.hold(t, s.hold(60, 100)))
	capped := reached(t, b.hold(t, s.hold(60, 100)))
	require.Equal(t, ledger.ScopeStep, capped.Scope)
	require.Equal(t, ledger.Micros(40), capped.Available)
	require.Equal(t, limit(100), b.stand(t, ledger.OfStep(s.loop)).Real.Limit)
	b.setCap(t, ledger.OfStep(s.loop), ledger.Real, limit(120))
	require.NoError(t, b.hold(t, s.hold(60, 100)), "a raise stays, whatever later holds say")
	reached(t, b.hold(t, s.hold(1, 100)))
	b.sound(t)
}

// What a child run costs counts in every run above it; the other way round it does not.
func TestCapOfARunCoversTheRunsItStarts(t *testing.T) {
	t.Parallel()
	b := open(t)
	root, middle, leaf := b.run(t), b.run(t), b.run(t)
	b.setCap(t, ledger.OfRun(root.run), ledger.Real, limit(100))
	call := func(s step, amount ledger.Micros, above ...ledger.RunID) ledger.Hold {
		h := s.hold(amount)
		h.Ancestors = above
		return h
	}
	require.NoError(t, b.hold(t, call(leaf, 40, middle.run, root.run, middle.run)))
	require.NoError(t, b.hold(t, call(middle, 40, root.run)))
	require.Equal(t, root.run.String(), reached(t, b.hold(t, call(leaf, 21, middle.run, root.run))).ID)
	require.NoError(t, b.hold(t, call(root, 20)))
	require.Equal(t, ledger.Micros(40), b.runCost(t, leaf.run).Real.Held)
	require.Equal(t, ledger.Micros(80), b.runCost(t, middle.run).Real.Held, "each above counts it once")
	require.Equal(t, ledger.Micros(100), b.runCost(t, root.run).Real.Held)
	b.sound(t)
}

func TestAlertOnlyStopsNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(b.tenant), Funds: ledger.Real, Limit: limit(10), AlertOnly: true})
	})
	require.NoError(t, b.hold(t, s.hold(50)))
	month := b.month(t).Real
	require.Equal(t, limit(10), month.Limit)
	require.True(t, month.AlertOnly)
	_, stops := month.Left()
	require.False(t, stops)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(10))
	reached(t, b.hold(t, s.hold(1)))
}

func TestRaiseThatExpires(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	raise := func(until time.Time, after *ledger.Micros) {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(b.tenant), Funds: ledger.Real,
				Limit: limit(100), Until: until, After: after})
		})
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	raise(until, limit(40))
	require.NoError(t, b.hold(t, s.hold(60)))
	require.Equal(t, ledger.Standing{Limit: limit(100), Until: until, After: limit(40), Held: 60}, b.month(t).Real)
	raise(time.Now().Add(-time.Minute), limit(40))
	capped := reached(t, b.hold(t, s.hold(1)))
	require.Equal(t, ledger.Micros(40), capped.Limit)
	require.Equal(t, ledger.Standing{Limit: limit(40), Held: 60}, b.month(t).Real)
	raise(time.Now().Add(-time.Minute), nil)
	require.NoError(t, b.hold(t, s.hold(60)), "then there is no cap")
}

// Each day is a row of its own, in the tenant's zone.
func TestDayTurnsInTheTenantsZone(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.zone(t, "Asia/Tokyo")
	s := b.run(t)
	b.setCap(t, ledger.OfTenantDay(b.tenant), ledger.Real, limit(100))
	now := time.Now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 15, 0, 0, 0, time.UTC).AddDate(0, 0, 2)
	at := func(moment time.Time, amount ledger.Micros) ledger.Hold {
		h := s.hold(amount)
		h.At = moment
		return h
	}
	evening := at(midnight.Add(-time.Second), 100)
	require.NoError(t, b.hold(t, evening))
	require.Equal(t, midnight.AddDate(0, 0, -1), reached(t, b.hold(t, at(midnight.Add(-time.Microsecond), 1))).PeriodStart.UTC())
	require.NoError(t, b.hold(t, at(midnight, 100)))
	require.Equal(t, midnight, reached(t, b.hold(t, at(midnight.Add(time.Hour), 1))).PeriodStart.UTC())
	require.NoError(t, b.settle(t, evening.Settle(tokens(10), receipt)))
	require.NoError(t, b.hold(t, at(midnight.Add(-time.Second), 90)), "what was held that day is settled on it")
	b.sound(t)
}

// Caps appear, on scopes that were not counted before, while calls of all kinds come and
// go. No call passes one unseen: from the moment it is set, spent + held never passes it.
func TestCapsSetAmongCalls(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.tagged(t)
	var callers sync.WaitGroup
	var refused atomic.Int64
	begin := make(chan struct{})
	for n := range 12 {
		callers.Go(func() {
			chance := rand.New(rand.NewPCG(36, uint64(n)))
			<-begin
			for range 25 {
				k := ledger.Booking{}
				for range 1 + chance.IntN(2) {
					k.Held = append(k.Held, s.hold(ledger.Micros(10+chance.Int64N(20)), ledger.MaxMicros))
				}
				err := b.book(context.Background(), k)
				if _, capped := ledger.AsCapReached(err); capped || err != nil && len(k.Held) > 1 {
					refused.Add(1)
					continue
				}
				if err != nil {
					t.Errorf("hold: %v", err)
					return
				}
				ends := ledger.Booking{}
				for _, h := range k.Held {
					if chance.IntN(3) == 0 {
						ends.Released = append(ends.Released, h.ID)
					} else {
						ends.Settled = append(ends.Settled, h.Settle(tokens(int64(h.Amount)), receipt))
					}
				}
				if err := b.book(context.Background(), ends); err != nil {
					t.Errorf("end: %v", err)
					return
				}
			}
		})
	}
	stop, watched := watch(t, b)
	close(begin)
	places := s.places(b)
	for _, scope := range []ledger.Scope{ledger.ScopeKey, ledger.ScopeCostCentre, ledger.ScopeTest, ledger.ScopeTenantDay, ledger.ScopePipeline} {
		// The cap is set to what the place has by then and a little more, in the same
		// transaction that sums it up: whoever passed it unseen would stand beyond it.
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			if err := ledger.SetCap(ctx, tx, ledger.Cap{Place: places[scope], Funds: ledger.Real}); err != nil {
				return err
			}
			stand, err := ledger.Stand(ctx, tx, places[scope])
			if err != nil {
				return err
			}
			return ledger.SetCap(ctx, tx, ledger.Cap{Place: places[scope], Funds: ledger.Real, Limit: limit(stand.Real.Spent + stand.Real.Held + 300)})
		})
	}
	callers.Wait()
	close(stop)
	require.Positive(t, <-watched)
	require.Positive(t, refused.Load(), "no cap was ever reached")
	for scope, place := range places {
		require.Zero(t, b.stand(t, place).Real.Held, scope)
	}
	b.sound(t)
}

// A charge says under what its call was made, also where nothing is known of its answer.
func TestChargesSayWhoAndWhatFor(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.tagged(t)
	known, lost := s.hold(100, 1000), s.hold(100, 1000)
	known.Member, lost.Member = tenants.NewID[tenants.User](), tenants.NewID[tenants.User]()
	known.Price.CacheWriteLong = ledger.PerMillion(2 * ledger.Dollar)
	require.NoError(t, b.book(t.Context(), ledger.Booking{Held: []ledger.Hold{known, lost}}))
	require.NoError(t, b.settle(t, known.Settle(ledger.Tokens{CacheWriteLong: 20, Output: 3}, receipt)))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(lost.ID)))
	lines := b.charges(t, s.step)
	require.Len(t, lines, 2)
	for i, h := range []ledger.Hold{known, lost} {
		require.Equal(t, []any{ledger.Test, s.key, h.Member, "Marketing"},
			[]any{lines[i].Kind, lines[i].Key, lines[i].Member, lines[i].CostCentre})
	}
	require.Equal(t, ledger.Micros(43), lines[0].Cost)
	require.Equal(t, ledger.Tokens{CacheWriteLong: 20, Output: 3}, lines[0].Tokens)
	require.Equal(t, ledger.PerMillion(2*ledger.Dollar), lines[0].CacheWriteLong)
}
