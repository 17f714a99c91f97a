package ledger_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func (b *books) zone(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, b.send(t, func(batch *tenants.Batch) {
		batch.Queue(`UPDATE tenants SET zone = $2 WHERE id = $1`, b.tenant, name)
	}))
}

// S48: in Tokyo August begins nine hours before it does in UTC.
func TestCaseS48MonthTurnsInTheTenantsZone(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.zone(t, "Asia/Tokyo")
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	turn := time.Date(2026, 7, 31, 15, 0, 0, 0, time.UTC)
	at := func(moment time.Time, amount ledger.Micros) ledger.Hold {
		h := s.hold(amount)
		h.At = moment
		return h
	}
	july := at(turn.Add(-time.Hour), 100)
	require.NoError(t, b.hold(t, july))

	for _, late := range []time.Duration{-5 * time.Second, -time.Second, -time.Microsecond} {
		refused := reached(t, b.hold(t, at(turn.Add(late), 1)))
		require.Equal(t, time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC), refused.PeriodStart.UTC())
	}
	august := at(turn, 40)
	require.NoError(t, b.hold(t, august))
	require.NoError(t, b.hold(t, at(turn.Add(5*time.Second), 60)))
	require.Equal(t, turn, reached(t, b.hold(t, at(turn.Add(6*time.Second), 1))).PeriodStart.UTC())

	// What was held in July is settled in July, whenever that happens.
	require.NoError(t, b.settle(t, july.Settle(tokens(70), receipt)))
	require.NoError(t, b.hold(t, at(turn.Add(-time.Second), 30)), "July got its own money back")
	reached(t, b.hold(t, at(turn.Add(6*time.Second), 1)))
	b.sound(t)
}

// Every moment of a local month has the same start, the next month another, in zones
// that change their clocks at midnight, by half hours or by a whole day.
func TestMonthStartsAreProofAgainstClockChanges(t *testing.T) {
	t.Parallel()
	b := open(t)
	super := b.Super(t)
	chance := rand.New(rand.NewPCG(48, 2026))
	zones := []string{"UTC", "Europe/Berlin", "Asia/Tokyo", "America/Asuncion", "America/Havana", "America/Sao_Paulo",
		"Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Cairo", "Asia/Beirut"}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		starts := map[string]time.Time{}
		seen := map[time.Time]string{}
		for _, moment := range moments(chance) {
			var start time.Time
			require.NoError(t, super.QueryRow(t.Context(), `SELECT ledger_month($1, $2)`, moment, name).Scan(&start))
			month := moment.In(zone).Format("2006-01")
			start = start.UTC()
			if known, ok := starts[month]; ok {
				require.Equal(t, known, start, "%s %v", name, moment)
			}
			if other, ok := seen[start]; ok {
				require.Equal(t, other, month, "%s %v", name, moment)
			}
			starts[month], seen[start] = start, month
			require.Equal(t, 1, start.In(zone).Day(), "%s %v starts %v", name, moment, start.In(zone))
		}
	}
}

// moments are spread over years in which clocks were changed, dense around the turns of
// months.
func moments(chance *rand.Rand) []time.Time {
	var all []time.Time
	for range 60 {
		turn := time.Date(2010+chance.IntN(20), time.Month(1+chance.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
		if chance.IntN(4) == 0 {
			turn = time.Date(2017, time.October, 1, 0, 0, 0, 0, time.UTC) // no midnight in Asunción
		}
		all = append(all, turn.Add(time.Duration(chance.Int64N(int64(52*time.Hour)))-26*time.Hour))
	}
	return all
}

func TestMonthStatusShowsItsBounds(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.zone(t, "Europe/Berlin")
	month := b.month(t)
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, "Europe/Berlin", month.Zone)
	for _, bound := range []time.Time{month.From, month.To} {
		local := bound.In(zone)
		require.Equal(t, []int{1, 0, 0, 0}, []int{local.Day(), local.Hour(), local.Minute(), local.Second()})
	}
	require.Equal(t, month.From.In(zone).AddDate(0, 1, 0), month.To.In(zone))

	s := b.run(t)
	require.NoError(t, b.hold(t, s.hold(10)))
	require.EqualValues(t, 10, b.month(t).Real.Held, "a hold of now is in the month of now")
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		found, err := ledger.MonthOfPipeline(ctx, tx, b.pipeline)
		require.NoError(t, err)
		require.EqualValues(t, 10, found.Real.Held)
		return nil
	})
}
