package ledger_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func TestHoldAndSettle(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(1000))
	h := s.hold(600)
	require.NoError(t, b.hold(t, h))
	require.Equal(t, ledger.Standing{Limit: limit(1000), Held: 600}, b.month(t).Real)
	require.Equal(t, ledger.Standing{Held: 600}, b.runCost(t, s.run).Real)

	require.NoError(t, b.settle(t, h.Settle(ledger.Tokens{Input: 100, Output: 200, Reasoning: 50}, receipt)))
	require.Equal(t, ledger.Standing{Limit: limit(1000), Spent: 350}, b.month(t).Real)
	require.Equal(t, ledger.Standing{Spent: 350}, b.runCost(t, s.run).Real)
	want := ledger.Charge{
		Hold: h.ID, Run: s.run, StepRun: s.id, Attempt: 1, Pipeline: b.pipeline, Funds: ledger.Real, Payer: ledger.PayerOwn, Kind: ledger.Ordinary,
		Model: "test/plain", ModelBilled: "plain-2026", Tokens: ledger.Tokens{Input: 100, Output: 200, Reasoning: 50},
		Input: tester.Input, Output: tester.Output, Reserved: 600, Cost: 350,
		RequestID: "req_1", Finish: "stop", Latency: 1500 * time.Millisecond,
	}
	got := b.charges(t, s)
	require.Len(t, got, 1)
	ignored := cmpopts.IgnoreFields(ledger.Charge{}, "StartedAt", "BookedAt")
	require.Empty(t, cmp.Diff(want, got[0], ignored, cmp.AllowUnexported(ledger.Rate{})))
	b.sound(t)
}

func TestHoldEndsOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	settle := func(h ledger.Hold) error { return b.settle(t, h.Settle(tokens(10), receipt)) }
	release := func(h ledger.Hold) error { return b.release(t, h.ID) }
	unknown := func(h ledger.Hold) error { return b.settle(t, ledger.SettleUnknown(h.ID)) }
	dispatch := func(h ledger.Hold) error {
		return b.send(t, func(batch *tenants.Batch) { ledger.QueueDispatch(batch, h.ID) })
	}
	ends := []func(ledger.Hold) error{settle, release, unknown}
	for _, first := range ends {
		for _, second := range append(ends, dispatch) {
			h := s.hold(100)
			require.NoError(t, b.hold(t, h))
			require.NoError(t, first(h))
			before := b.month(t).Real
			err := second(h)
			require.True(t, tenants.IsLostRace(err), "%v", err)
			require.Equal(t, before, b.month(t).Real)
		}
	}
	never := s.hold(100)
	for _, end := range ends {
		require.True(t, tenants.IsLostRace(end(never)), "a hold that was never made")
	}
	require.NoError(t, b.hold(t, never))
	_, twice := tenants.IsDuplicate(b.hold(t, never))
	require.True(t, twice)
	b.sound(t)
}

// A settlement that was late voids everything that rode with it.
func TestSecondSettleVoidsItsBatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h, next := s.hold(100), s.hold(50)
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, h.Settle(tokens(10), receipt)))
	err := b.send(t, func(batch *tenants.Batch) {
		ledger.QueueHold(batch, next)
		ledger.QueueSettle(batch, h.Settle(tokens(10), receipt))
	})
	require.True(t, tenants.IsLostRace(err), "%v", err)
	require.Equal(t, ledger.Standing{Spent: 10}, b.month(t).Real)
	b.sound(t)
}

func TestSettleBeforeHoldFreesItsMoney(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	first, second := s.hold(90), s.hold(60)
	require.NoError(t, b.hold(t, first))
	require.EqualValues(t, 10, reached(t, b.hold(t, second)).Available)
	require.NoError(t, b.send(t, func(batch *tenants.Batch) {
		ledger.QueueSettle(batch, first.Settle(tokens(40), receipt))
		ledger.QueueHold(batch, second)
	}))
	require.Equal(t, ledger.Standing{Limit: limit(100), Spent: 40, Held: 60}, b.month(t).Real)
	b.sound(t)
}

func TestReleaseGivesBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(600)
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.release(t, h.ID))
	require.Equal(t, ledger.Standing{}, b.month(t).Real)
	require.Empty(t, b.charges(t, s))
	b.sound(t)
}

func TestOverrunIsItsOwnLine(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	h := s.hold(90)
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, h.Settle(tokens(130), receipt)))
	require.Equal(t, ledger.Standing{Limit: limit(100), Spent: 130, Overrun: 40}, b.month(t).Real)
	line := b.charges(t, s)[0]
	require.EqualValues(t, 40, line.Overrun)
	require.EqualValues(t, 130, line.Cost)
	left, capped := b.month(t).Real.Left()
	require.True(t, capped)
	require.Zero(t, left)
	require.Zero(t, reached(t, b.hold(t, s.hold(1))).Available)
	b.sound(t)
}

func TestUnknownOutcomeIsBookedAsReserved(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	absurd := map[string]ledger.Tokens{
		"negative": {Input: -1, Output: 5}, "most": {Output: math.MaxInt64}, "least": {CacheRead: math.MinInt64},
		"beyond any model": {Reasoning: 100_000_001},
	}
	settlements := map[string]func(ledger.Hold) ledger.Settlement{
		"nobody knows": func(h ledger.Hold) ledger.Settlement { return ledger.SettleUnknown(h.ID) },
	}
	for name, usage := range absurd {
		settlements[name] = func(h ledger.Hold) ledger.Settlement { return h.Settle(usage, receipt) }
	}
	for name, settlement := range settlements {
		h := s.hold(70)
		require.NoError(t, b.hold(t, h), name)
		require.NoError(t, b.settle(t, settlement(h)), name)
	}
	lines := b.charges(t, s)
	require.Len(t, lines, len(settlements))
	for _, line := range lines {
		require.True(t, line.Tokens.Estimated)
		require.EqualValues(t, 70, line.Cost)
		require.Equal(t, tester.Input, line.Input, "the hold's price is kept")
		require.Zero(t, line.Overrun)
	}
	b.sound(t)
}

// A line whose figures are not all the provider's says so.
func TestEstimatesAreMarked(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, c := range map[string]struct {
		used      ledger.Tokens
		estimated bool
		cost      ledger.Micros
	}{
		"told in full":              {used: ledger.Tokens{Input: 5, Output: 6}, cost: 11},
		"counted by us":             {used: ledger.Tokens{Output: 7, Estimated: true}, estimated: true, cost: 7},
		"cache rate is not known":   {used: ledger.Tokens{CacheRead: 8}, estimated: true, cost: 8},
		"caching rate is not known": {used: ledger.Tokens{CacheWrite: 9}, estimated: true, cost: 9},
	} {
		s := b.run(t)
		h := s.hold(70)
		require.NoError(t, b.hold(t, h), name)
		require.NoError(t, b.settle(t, h.Settle(c.used, receipt)), name)
		line := b.charges(t, s)[0]
		require.Equal(t, c.estimated, line.Tokens.Estimated, name)
		require.Equal(t, c.cost, line.Cost, name)
		_, known := line.CacheRead.Micros()
		require.False(t, known, "an unknown rate stays unknown on the line")
	}
}

func TestZeroUsageIsAFigure(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(70)
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, h.Settle(ledger.Tokens{}, receipt)))
	line := b.charges(t, s)[0]
	require.Zero(t, line.Cost)
	require.False(t, line.Tokens.Estimated)
}

// S52: the answer came under a name that has no price.
func TestUnknownBilledModelIsPricedAsAsked(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(70)
	require.NoError(t, b.hold(t, h))
	strange := ledger.Receipt{Model: "alias\x00\xff" + string(make([]byte, 5000)), RequestID: "\xf0\x9f", Finish: "?", Latency: -time.Hour}
	require.NoError(t, b.settle(t, h.Settle(tokens(60), strange)))
	line := b.charges(t, s)[0]
	require.EqualValues(t, 60, line.Cost)
	require.Equal(t, "alias", line.ModelBilled)
	require.Zero(t, line.Latency)
}

func TestPretendMoneyIsApart(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	quote, err := ledger.QuoteFor("practice/standard", now, time.Minute, 100, 100)
	require.NoError(t, err)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(0))
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Pretend, limit(quote.Amount))
	h := s.hold(0)
	h.Quote = quote
	require.NoError(t, b.hold(t, h))
	month := b.month(t)
	require.Equal(t, ledger.Standing{Limit: limit(0)}, month.Real)
	require.Equal(t, quote.Amount, month.Of(ledger.Pretend).Held)
	again := h
	again.ID = tenants.NewID[ledger.Hold]()
	require.Equal(t, ledger.Pretend, reached(t, b.hold(t, again)).Funds)
	require.Equal(t, ledger.Real, reached(t, b.hold(t, s.hold(1))).Funds)
	b.sound(t)
}

func TestHoldRefusesNonsense(t *testing.T) {
	t.Parallel()
	b := open(t)
	s, other := b.run(t), b.run(t)
	cases := map[string]func(*ledger.Hold){
		"negative amount":       func(h *ledger.Hold) { h.Amount = -1 },
		"amount beyond all":     func(h *ledger.Hold) { h.Amount = ledger.MaxMicros + 1 },
		"no funds":              func(h *ledger.Hold) { h.Price.Funds = "" },
		"no payer":              func(h *ledger.Hold) { h.Payer = "nobody" },
		"attempt 0":             func(h *ledger.Hold) { h.Attempt = 0 },
		"no run":                func(h *ledger.Hold) { h.Run = ledger.RunID{} },
		"step of another run":   func(h *ledger.Hold) { h.StepRun = other.id },
		"a run that is no more": func(h *ledger.Hold) { h.Run[15]++ },
	}
	for name, spoil := range cases {
		h := s.hold(10)
		spoil(&h)
		err := b.hold(t, h)
		require.Error(t, err, name)
		_, capped := ledger.AsCapReached(err)
		require.False(t, capped, name)
	}
	require.Zero(t, b.month(t).Real.Held)
}

func TestNoTenantTouchesAnother(t *testing.T) {
	t.Parallel()
	ours := open(t)
	theirs := opened(t, ours.Database)
	s := ours.run(t)
	h := s.hold(100)
	require.NoError(t, ours.hold(t, h))
	ours.setCap(t, ledger.OfTenant(ours.tenant), ledger.Real, limit(500))
	done := s.hold(50)
	require.NoError(t, ours.hold(t, done))
	require.NoError(t, ours.settle(t, done.Settle(tokens(50), receipt)))

	require.True(t, tenants.IsLostRace(theirs.hold(t, s.hold(1))))
	require.True(t, tenants.IsLostRace(theirs.settle(t, h.Settle(tokens(1), receipt))))
	require.True(t, tenants.IsLostRace(theirs.release(t, h.ID)))
	require.NoError(t, theirs.send(t, func(batch *tenants.Batch) { ledger.QueueAbandon(batch, s.id, 9) }))
	require.Empty(t, theirs.charges(t, s))
	require.Equal(t, ledger.Standings{}, theirs.runCost(t, s.run))
	theirs.in(t, func(ctx context.Context, tx tenants.Tx) error {
		for _, table := range []string{"caps", "balances", "holds", "charges"} {
			var rows int
			require.NoError(t, tx.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&rows))
			require.Zero(t, rows, table)
		}
		return nil
	})
	require.Equal(t, ledger.Standing{Limit: limit(500), Spent: 50, Held: 100}, ours.month(t).Real)
}

func TestChargesAreNeverChanged(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(10)
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, h.Settle(tokens(5), receipt)))
	for _, statement := range []string{
		`UPDATE charges SET cost_micros = 0`, `DELETE FROM charges`, `DELETE FROM holds`, `DELETE FROM balances`,
		`UPDATE holds SET amount = 0`, `UPDATE holds SET run_id = id`,
	} {
		err := b.send(t, func(batch *tenants.Batch) { batch.Queue(statement) })
		require.ErrorContains(t, err, "permission denied", statement)
	}
}

func TestChargesOfRunInPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	s, other := b.run(t), b.run(t)
	for _, of := range []step{s, s, other, s} {
		h := of.hold(10)
		require.NoError(t, b.hold(t, h))
		require.NoError(t, b.settle(t, h.Settle(tokens(5), receipt)))
	}
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		all, err := ledger.ChargesOfRun(ctx, tx, s.run, ledger.HoldID{})
		require.NoError(t, err)
		require.Len(t, all, 3)
		rest, err := ledger.ChargesOfRun(ctx, tx, s.run, all[0].Hold)
		require.NoError(t, err)
		require.Equal(t, all[1:], rest)
		none, err := ledger.ChargesOfRun(ctx, tx, s.run, all[2].Hold)
		require.NoError(t, err)
		require.Empty(t, none)
		return nil
	})
}
