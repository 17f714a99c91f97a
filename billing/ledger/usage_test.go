package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// usage reads a month's sums.
func (b *books) usage(t testing.TB, month ledger.UsageMonth, funds ledger.Funds, by ledger.UsageBy) []ledger.UsageLine {
	t.Helper()
	var lines []ledger.UsageLine
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		lines, err = ledger.UsageOf(ctx, tx, month, funds, by)
		return err
	})
	return lines
}

func (b *books) monthAt(t testing.TB, at time.Time) ledger.UsageMonth {
	t.Helper()
	var month ledger.UsageMonth
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		month, err = ledger.MonthAt(ctx, tx, at)
		return err
	})
	return month
}

// charge books one call of a step at a time.
func (b *books) charge(t testing.TB, s step, at time.Time, cost int64) {
	t.Helper()
	h := s.hold(ledger.Micros(cost))
	h.At = at
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, h.Settle(tokens(cost), receipt)))
}

func TestUsageSumsUpToWhatWasSpentByWhateverItIsSummed(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.zone(t, "Asia/Tokyo")
	begin := time.Date(2026, 7, 31, 15, 0, 0, 0, time.UTC) // 1 August in Tokyo
	first, second := b.run(t), b.run(t)
	b.charge(t, first, begin.Add(-time.Second), 1000) // still July
	b.charge(t, first, begin, 10)
	b.charge(t, first, begin.Add(23*time.Hour), 20)
	b.charge(t, second, begin.Add(24*time.Hour), 300)
	august := b.monthAt(t, begin.Add(48*time.Hour))
	require.Equal(t, begin, august.From)
	require.Equal(t, time.Date(2026, 8, 31, 15, 0, 0, 0, time.UTC), august.To)

	for _, by := range []ledger.UsageBy{ledger.ByMonth, ledger.ByDay, ledger.ByPipeline, ledger.ByModel, ledger.ByMember} {
		var cost ledger.Micros
		var calls int64
		for _, line := range b.usage(t, august, ledger.Real, by) {
			cost, calls = cost+line.Cost, calls+line.Calls
			require.Equal(t, line.Cost, line.Own, "the tests pay with their own key")
			require.Equal(t, int64(line.Cost), line.Input+line.Output, "a token costs a micro")
		}
		require.Equal(t, ledger.Micros(330), cost, by)
		require.Equal(t, int64(3), calls, by)
		require.Empty(t, b.usage(t, august, ledger.Pretend, by))
	}
	days := b.usage(t, august, ledger.Real, ledger.ByDay)
	require.Equal(t, []string{"2026-08-01", "2026-08-02"}, []string{days[0].Key, days[1].Key}, "the tenant's days")
	require.Equal(t, int64(1), days[0].Runs, "two calls of one run")
	require.Equal(t, b.pipeline.String(), b.usage(t, august, ledger.Real, ledger.ByPipeline)[0].Key)
	require.Equal(t, int64(2), b.usage(t, august, ledger.Real, ledger.ByPipeline)[0].Runs)
	july := b.monthAt(t, begin.Add(-time.Second))
	require.Equal(t, august.From, july.To, "no instant lies between two months")
	require.Equal(t, ledger.Micros(1000), b.usage(t, july, ledger.Real, ledger.ByMonth)[0].Cost)
}

func TestUsageIsNobodyElses(t *testing.T) {
	t.Parallel()
	b := open(t)
	now := time.Now()
	b.charge(t, b.run(t), now, 500)
	other := opened(t, b.Database)
	require.Empty(t, other.usage(t, other.monthAt(t, now), ledger.Real, ledger.ByModel))
	require.NotEmpty(t, b.usage(t, b.monthAt(t, now), ledger.Real, ledger.ByModel))
}
