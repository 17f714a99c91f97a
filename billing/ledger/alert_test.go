package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func (b *books) findAlerts(t testing.TB) int {
	t.Helper()
	found, err := ledger.FindAlerts(t.Context(), b.DB)
	require.NoError(t, err)
	return found
}

func (b *books) takeAlerts(t testing.TB) []ledger.Alert {
	t.Helper()
	var taken []ledger.Alert
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		got, err := ledger.TakeAlerts(ctx, tx)
		taken = got
		return err
	})
	return taken
}

// Each threshold is told once for a place and period, whoever looks how often.
func TestAlertsAreFoundOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(1000))
	spend := func(amount int64) {
		b.charge(t, s, time.Time{}, amount)
	}
	spend(499)
	require.Zero(t, b.findAlerts(t))
	spend(1)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			_, err := ledger.FindAlerts(t.Context(), b.DB)
			return err
		})
	}
	require.NoError(t, group.Wait())
	taken := b.takeAlerts(t)
	require.Len(t, taken, 1)
	require.Equal(t, ledger.AlertHalf, taken[0].Kind)
	require.Equal(t, ledger.OfTenant(b.tenant), taken[0].Place)
	require.Equal(t, ledger.Micros(500), taken[0].Spent)
	require.Empty(t, b.takeAlerts(t), "told once")

	spend(500)
	require.Equal(t, 2, b.findAlerts(t), "80 % and 100 % at once")
	require.Zero(t, b.findAlerts(t))
	require.Len(t, b.takeAlerts(t), 2)

	// The first run that a cap stops, and no other of its period.
	first, second := b.run(t), b.run(t)
	for _, stopped := range []step{first, second, first} {
		capped := reached(t, b.hold(t, stopped.hold(500)))
		require.NoError(t, b.send(t, func(batch *tenants.Batch) { ledger.QueueStopped(batch, *capped, stopped.run) }))
	}
	taken = b.takeAlerts(t)
	require.Len(t, taken, 1)
	require.Equal(t, ledger.AlertStopped, taken[0].Kind)
	require.Equal(t, first.run, taken[0].Run)
	require.Equal(t, ledger.Micros(1000), taken[0].Spent)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		all, err := ledger.AlertsSince(ctx, tx, tx.Now.Add(-time.Hour))
		require.Len(t, all, 4)
		return err
	})
}

// A month that will pass its cap, if it goes on as the last days, is told before it does.
func TestForecastAndItsAlert(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	forecast := func(place ledger.Place, most *ledger.Micros) ledger.Forecast {
		var f ledger.Forecast
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			got, err := ledger.ForecastOf(ctx, tx, place, ledger.Real, most)
			f = got
			return err
		})
		return f
	}
	require.Equal(t, ledger.Forecast{}, forecast(ledger.OfTenant(b.tenant), nil), "nothing is known of nothing")
	now := time.Now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for day := 1; day <= 9; day++ {
		b.charge(t, s, midnight.AddDate(0, 0, -day).Add(time.Hour), 700)
	}
	b.charge(t, s, midnight, 50)
	month := b.month(t)
	left := int64(month.To.Sub(midnight) / (24 * time.Hour))
	spent := month.Real.Spent
	f := forecast(ledger.OfPipeline(b.pipeline), nil)
	require.Equal(t, ledger.Forecast{Known: true, Total: spent + 700*ledger.Micros(left), Spent: spent, Daily: 700, Days: 7}, f)
	_, err := ledger.RollUsage(t.Context(), b.DB)
	require.NoError(t, err)
	require.Equal(t, f, forecast(ledger.OfTenant(b.tenant), nil), "the same from summed-up days")
	require.Equal(t, midnight.AddDate(0, 0, 2).Add(12*time.Hour), forecast(ledger.OfTenant(b.tenant), limit(spent+1500)).Passes)
	require.Zero(t, forecast(ledger.OfCostCentre("nobody's"), nil).Days)

	if left < 3 {
		return // the month is all but over, and nothing is ahead of it
	}
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(spent*3+1500))
	b.findAlerts(t)
	kinds := []ledger.AlertKind{}
	for _, a := range b.takeAlerts(t) {
		kinds = append(kinds, a.Kind)
	}
	if f.Total > spent*3+1500 {
		require.Contains(t, kinds, ledger.AlertOnCourse)
	} else {
		require.Empty(t, kinds)
	}
}

// What would fit, beside what was promised before and under a cap that is only thought of.
func TestDryQuestions(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.tagged(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	b.setCap(t, ledger.OfRun(s.parent), ledger.Real, limit(90))
	require.NoError(t, b.hold(t, s.hold(20, 1000)))
	var dry ledger.Dry
	ask := func(dry *ledger.Dry, h ledger.Hold) *ledger.CapReached {
		var found *ledger.CapReached
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			got, err := dry.Fits(ctx, tx, h)
			found = got
			return err
		})
		return found
	}
	require.Nil(t, ask(&dry, s.hold(40, 1000)))
	tight := ask(&dry, s.hold(40, 1000))
	require.Equal(t, ledger.OfRun(s.parent), ledger.Place{Scope: tight.Scope, ID: tight.ID})
	require.Equal(t, ledger.Micros(30), tight.Available)
	require.Nil(t, ask(&dry, b.run(t).hold(40)), "another run is bound by the tenant only")
	require.Equal(t, ledger.ScopeTenant, ask(&dry, b.run(t).hold(1)).Scope)

	other := s
	other.loop = ledger.StepRunID(tenants.NewID[tenants.Tenant]())
	var fresh ledger.Dry
	require.Equal(t, ledger.ScopeStep, ask(&fresh, other.hold(10, 5)).Scope, "a step's limit counts before its first hold")
	fresh.Assume(ledger.Cap{Place: ledger.OfRun(s.parent), Funds: ledger.Real, Limit: limit(25)})
	require.Equal(t, ledger.Micros(5), ask(&fresh, s.hold(10, 1000)).Available)
	fresh.Assume(ledger.Cap{Place: ledger.OfRun(s.parent), Funds: ledger.Real})
	require.Nil(t, ask(&fresh, s.hold(80, 1000)))
	require.Equal(t, ledger.Micros(20), b.month(t).Real.Held, "nothing was held")
}
