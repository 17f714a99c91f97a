package ledger_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func (b *books) book(ctx context.Context, k ledger.Booking) error {
	batch := &tenants.Batch{ByKey: true}
	k.Queue(batch)
	return b.Send(ctx, b.tenant, batch)
}

// Whatever is booked together comes to what it would come to one by one, and one booking
// gives its money to the next hold.
func TestManyCallsAreBookedAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	one, two := b.run(t), b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(1000))
	b.setCap(t, ledger.OfRun(two.run), ledger.Real, limit(450))
	first := []ledger.Hold{one.hold(100), one.hold(200), two.hold(300), two.hold(150)}
	require.NoError(t, b.book(t.Context(), ledger.Booking{Held: first}))
	require.Equal(t, ledger.Standing{Limit: limit(1000), Held: 750}, b.month(t).Real)
	require.Equal(t, ledger.Standing{Limit: limit(450), Held: 450}, b.runCost(t, two.run).Real)

	next := []ledger.Hold{one.hold(400), two.hold(70)}
	require.NoError(t, b.book(t.Context(), ledger.Booking{
		Settled:  []ledger.Settlement{first[0].Settle(tokens(130), receipt), ledger.SettleUnknown(first[2].ID)},
		Released: []ledger.HoldID{first[1].ID, first[3].ID}, Held: next,
	}))
	require.Equal(t, ledger.Standing{Limit: limit(1000), Spent: 430, Held: 470, Overrun: 30}, b.month(t).Real)
	require.Equal(t, ledger.Standing{Spent: 130, Held: 400, Overrun: 30}, b.runCost(t, one.run).Real)
	require.Equal(t, ledger.Standing{Limit: limit(450), Spent: 300, Held: 70}, b.runCost(t, two.run).Real)
	lines := append(b.charges(t, one), b.charges(t, two)...)
	require.Len(t, lines, 2)
	require.False(t, lines[0].Tokens.Estimated)
	require.Equal(t, ledger.Micros(300), lines[1].Cost)
	b.sound(t)
}

// A booking of which one part is refused leaves no trace.
func TestBookingIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	one, two := b.run(t), b.run(t)
	b.setCap(t, ledger.OfRun(two.run), ledger.Real, limit(100))
	held := []ledger.Hold{one.hold(50), one.hold(50)}
	require.NoError(t, b.book(t.Context(), ledger.Booking{Held: held}))
	before := b.month(t)
	settled := held[0].Settle(tokens(10), receipt)

	err := b.book(t.Context(), ledger.Booking{Settled: []ledger.Settlement{settled}, Held: []ledger.Hold{one.hold(1), two.hold(60), two.hold(60)}})
	require.ErrorContains(t, err, "does not allow these holds together")
	err = b.book(t.Context(), ledger.Booking{Settled: []ledger.Settlement{settled, ledger.SettleUnknown(held[1].ID)}, Held: []ledger.Hold{two.hold(101)}})
	capped, ok := ledger.AsCapReached(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, limit(100), &capped.Limit)
	stranger := one.hold(1)
	stranger.StepRun = two.id
	err = b.book(t.Context(), ledger.Booking{Held: []ledger.Hold{one.hold(1), stranger}})
	require.True(t, tenants.IsLostRace(err), "%v", err)
	err = b.book(t.Context(), ledger.Booking{Released: []ledger.HoldID{held[0].ID, tenants.NewID[ledger.Hold]()}})
	require.True(t, tenants.IsLostRace(err), "%v", err)
	require.Equal(t, before, b.month(t))
	b.sound(t)
}

// Bookings of many runs side by side, in any order, never wait for each other in a circle
// and add up.
func TestBookingsSideBySideAddUp(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(1_000_000))
	var steps []step
	for range 8 {
		steps = append(steps, b.run(t))
	}
	var group errgroup.Group
	for seed := range uint64(4) {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(seed, 2))
			var open []ledger.Hold
			for range 15 {
				k := ledger.Booking{}
				for _, h := range open {
					k.Settled = append(k.Settled, h.Settle(tokens(7), receipt))
				}
				open = nil
				for range 1 + random.IntN(5) {
					open = append(open, steps[random.IntN(len(steps))].hold(10))
				}
				k.Held = open
				if err := b.book(context.Background(), k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	b.sound(t)
}
