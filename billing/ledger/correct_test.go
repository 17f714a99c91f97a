package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func (b *books) correct(t testing.TB, c ledger.Correction) ledger.Micros {
	t.Helper()
	var added ledger.Micros
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		got, err := ledger.Correct(ctx, tx, c)
		added = got
		return err
	})
	return added
}

func (b *books) statement(t testing.TB, at time.Time) ledger.Statement {
	t.Helper()
	month := b.monthAt(t, at)
	var s ledger.Statement
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		got, err := ledger.StatementOf(ctx, tx, month, ledger.Real)
		s = got
		return err
	})
	return s
}

// What becomes known of a call whose answer was lost is a line of its own, in the month in
// which it becomes known; each builds on those before.
func TestLateCorrections(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.tagged(t)
	b.setCap(t, ledger.OfCostCentre("Marketing"), ledger.Real, limit(10_000))
	old := s.hold(100, 1000)
	old.At = time.Now().AddDate(0, -2, 0)
	require.NoError(t, b.hold(t, old))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(old.ID)))
	before := b.statement(t, old.At)
	require.True(t, before.Closed)
	require.Equal(t, ledger.Micros(100), before.Total())

	correct := func(cost ledger.Micros) ledger.Micros {
		return b.correct(t, ledger.Correction{Hold: old.ID, Cost: cost, Tokens: tokens(int64(cost)), Reason: "the provider's bill"})
	}
	require.Equal(t, ledger.Micros(-60), correct(40))
	require.Equal(t, ledger.Standing{Spent: -60}, b.month(t).Real, "given back in this month")
	require.Equal(t, before, b.statement(t, old.At), "a month that is over keeps its figures")
	require.Equal(t, ledger.Micros(90), correct(130))
	require.Equal(t, ledger.Standing{Spent: 30, Overrun: 30}, b.month(t).Real, "30 beyond what was reserved")
	require.Equal(t, ledger.Standing{Limit: limit(10_000), Spent: 30, Overrun: 30}, b.stand(t, ledger.OfCostCentre("Marketing")).Real)
	require.Zero(t, correct(130))
	require.Equal(t, ledger.Standing{Limit: limit(1000), Spent: 130, Overrun: 30}, b.stand(t, ledger.OfStep(s.loop)).Real)
	require.Equal(t, ledger.Standing{Spent: 130, Overrun: 30}, b.runCost(t, s.parent).Real)
	b.sound(t)

	now := b.statement(t, time.Now())
	require.False(t, now.Closed)
	require.Equal(t, ledger.Micros(30), now.Corrected)
	require.EqualValues(t, 3, now.Correction)
	require.Zero(t, now.Charged)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		lines, err := ledger.CorrectionsIn(ctx, tx, now.UsageMonth, ledger.Real)
		require.NoError(t, err)
		require.Len(t, lines, 3)
		require.Equal(t, old.ID, lines[0].Hold)
		require.Equal(t, ledger.Micros(-60), lines[0].Added)
		require.WithinDuration(t, old.At, lines[0].CallAt, time.Second)
		added, err := ledger.CorrectTokens(ctx, tx, old.ID, tokens(70), "counted again", tenants.UserID{})
		require.NoError(t, err)
		require.Equal(t, ledger.Micros(-60), added)
		return err
	})
	// A cap that is set only now counts them too.
	b.setCap(t, ledger.OfTests(b.tenant), ledger.Real, limit(10_000))
	require.Equal(t, ledger.Micros(-30), b.stand(t, ledger.OfTests(b.tenant)).Real.Spent)
	b.sound(t)
}

func TestCorrectionsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := open(t)
	other := opened(t, b.Database)
	s := b.run(t)
	h := s.hold(100)
	require.NoError(t, b.hold(t, h))
	good := ledger.Correction{Hold: h.ID, Cost: 5, Reason: "why"}
	try := func(b *books, c ledger.Correction) error {
		return b.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
			_, err := ledger.Correct(ctx, tx, c)
			return err
		})
	}
	require.True(t, tenants.IsLostRace(try(b, good)), "a call under way has no charge")
	require.NoError(t, b.settle(t, ledger.SettleUnknown(h.ID)))
	require.True(t, tenants.IsLostRace(try(other, good)), "another tenant's is not found")
	for name, change := range map[string]func(*ledger.Correction){
		"below nothing": func(c *ledger.Correction) { c.Cost = -1 }, "beyond all": func(c *ledger.Correction) { c.Cost = ledger.MaxMicros + 1 },
		"no reason": func(c *ledger.Correction) { c.Reason = "  " }, "no such tokens": func(c *ledger.Correction) { c.Tokens.Output = -1 },
	} {
		bad := good
		change(&bad)
		require.ErrorIs(t, try(b, bad), ledger.ErrBadCorrection, name)
	}
	require.NoError(t, try(b, good))
	b.sound(t)
}

// A month is provisional while it runs or something is held in it, and closed then.
func TestStatementCloses(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	last := time.Now().AddDate(0, -1, 0)
	open, done := s.hold(100), s.hold(50)
	open.At, done.At = last, last
	require.NoError(t, b.hold(t, open))
	require.NoError(t, b.hold(t, done))
	require.NoError(t, b.settle(t, done.Settle(tokens(60), receipt)))
	statement := b.statement(t, last)
	require.False(t, statement.Closed)
	require.EqualValues(t, 1, statement.Open)
	require.Equal(t, ledger.Micros(100), statement.Held)
	require.NoError(t, b.release(t, open.ID))
	statement = b.statement(t, last)
	require.True(t, statement.Closed)
	require.Equal(t, ledger.Micros(60), statement.Total())
	require.Equal(t, ledger.Micros(60), statement.Own)
	require.Equal(t, ledger.Micros(10), statement.Overrun)
	require.EqualValues(t, 1, statement.Calls)
	require.False(t, b.statement(t, time.Now()).Closed)
}

// Usage is the same before days are summed up and after, and each day is summed up once.
func TestUsageOfSummedUpDays(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.zone(t, "America/New_York")
	first, second := b.run(t), b.tagged(t)
	at := time.Now().AddDate(0, -1, 0)
	begin := b.monthAt(t, at).From
	for day := range 5 {
		b.charge(t, first, begin.Add(time.Duration(72*day+2)*time.Hour), int64(10+day))
		h := second.hold(100, ledger.MaxMicros)
		h.At = begin.Add(time.Duration(72*day+7) * time.Hour)
		require.NoError(t, b.hold(t, h))
		require.NoError(t, b.settle(t, ledger.SettleUnknown(h.ID)))
	}
	b.charge(t, first, time.Now(), 1000)
	busy := first.hold(7)
	busy.At = begin.Add((72*3 + 4) * time.Hour)
	require.NoError(t, b.hold(t, busy))

	all := func() map[ledger.UsageBy][]ledger.UsageLine {
		sums := map[ledger.UsageBy][]ledger.UsageLine{}
		for _, by := range []ledger.UsageBy{ledger.ByMonth, ledger.ByDay, ledger.ByPipeline, ledger.ByModel, ledger.ByMember, ledger.ByKey, ledger.ByCostCentre} {
			sums[by] = b.usage(t, b.monthAt(t, at), ledger.Real, by)
		}
		return sums
	}
	before := all()
	require.Len(t, before[ledger.ByCostCentre], 2)
	require.EqualValues(t, 2, before[ledger.ByMonth][0].Runs)
	roll := func() int {
		days, err := ledger.RollUsage(t.Context(), b.DB)
		require.NoError(t, err)
		return days
	}
	require.Equal(t, 3, roll(), "the day with a call under way waits, and those behind it")
	require.Equal(t, before, all())
	require.NoError(t, b.settle(t, busy.Settle(tokens(7), receipt)))
	require.Equal(t, 2, roll())
	require.Zero(t, roll())
	after := all()
	require.Equal(t, before[ledger.ByMonth][0].Cost+7, after[ledger.ByMonth][0].Cost)
	require.Equal(t, before[ledger.ByMonth][0].Calls+1, after[ledger.ByMonth][0].Calls)
	require.Equal(t, after[ledger.ByMonth][0].Cost, b.statement(t, at).Charged)
}

// An estimate is corrected by the answer that came late, once; what was known is not.
func TestLateAnswersCorrectEstimatesOnly(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	known, lost, refused := s.hold(100), s.hold(100), s.hold(100)
	for _, h := range []ledger.Hold{known, lost, refused} {
		require.NoError(t, b.hold(t, h))
	}
	require.NoError(t, b.settle(t, known.Settle(tokens(60), receipt)))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(lost.ID)))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(refused.ID)))
	late := func(s ledger.Settlement) bool {
		var corrected bool
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			got, err := ledger.CorrectEstimate(ctx, tx, s, "it came late")
			corrected = got
			return err
		})
		return corrected
	}
	require.False(t, late(known.Settle(tokens(10), receipt)), "the provider's own figures stand")
	require.False(t, late(ledger.SettleUnknown(lost.ID)))
	require.True(t, late(lost.Settle(tokens(30), receipt)))
	require.False(t, late(lost.Settle(tokens(20), receipt)), "once")
	require.True(t, late(ledger.Settlement{Hold: refused.ID}), "no work was done")
	require.Equal(t, ledger.Standing{Spent: 90}, b.month(t).Real)
	b.sound(t)
}
