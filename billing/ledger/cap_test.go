package ledger_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// S47, and more of it: many calls at once, each of random cost, under caps of all three
// scopes, while a reader looks at every balance without pause.
func TestCaseS47CapHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	b := open(t)
	runs := []step{b.run(t), b.run(t), b.run(t), b.run(t), b.run(t)}
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(10_000))
	b.setCap(t, ledger.OfPipeline(b.pipeline), ledger.Real, limit(9_000))
	for _, s := range runs {
		b.setCap(t, ledger.OfRun(s.run), ledger.Real, limit(2_500))
	}
	stop, watched := watch(t, b)

	var admitted, refused, spent atomic.Int64
	var callers sync.WaitGroup
	for n := range 50 {
		callers.Go(func() {
			chance := rand.New(rand.NewPCG(7, uint64(n)))
			for range 8 {
				h := runs[chance.IntN(len(runs))].hold(ledger.Micros(100 + chance.Int64N(400)))
				err := b.hold(t, h)
				if _, capped := ledger.AsCapReached(err); capped {
					refused.Add(1)
					continue
				}
				if err != nil {
					t.Errorf("hold: %v", err)
					return
				}
				admitted.Add(1)
				cost, err := end(b, chance, h)
				if err != nil {
					t.Errorf("end a hold: %v", err)
					return
				}
				spent.Add(int64(cost))
			}
		})
	}
	callers.Wait()
	close(stop)
	looks := <-watched
	require.Positive(t, looks)
	require.Positive(t, refused.Load(), "the caps were never reached")
	require.Greater(t, admitted.Load(), int64(20))
	month := b.month(t).Real
	require.Zero(t, month.Held, "at rest nothing is held")
	require.EqualValues(t, spent.Load(), month.Spent)
	b.sound(t)
}

// end ends a hold in one of the ways a call can end and returns what it cost.
func end(b *books, chance *rand.Rand, h ledger.Hold) (ledger.Micros, error) {
	batch := &tenants.Batch{}
	cost := ledger.Micros(chance.Int64N(int64(h.Amount) + 1))
	switch chance.IntN(4) {
	case 0:
		cost = 0
		ledger.QueueRelease(batch, h.ID)
	case 1:
		cost = h.Amount
		ledger.QueueSettle(batch, ledger.SettleUnknown(h.ID))
	default:
		ledger.QueueSettle(batch, h.Settle(tokens(int64(cost)), receipt))
	}
	return cost, b.Send(context.Background(), b.tenant, batch)
}

// watch looks for a balance beyond its cap until stop is closed, and then tells how
// often it looked.
func watch(t *testing.T, b *books) (chan struct{}, chan int) {
	stop, watched := make(chan struct{}), make(chan int, 1)
	go func() {
		looks := 0
		defer func() { watched <- looks }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			var beyond int
			err := b.InTx(context.Background(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
				return tx.QueryRow(ctx, `
					SELECT count(*) FROM balances b JOIN caps c USING (tenant_id, scope, scope_id, funds, period)
					WHERE b.spent_micros + b.held_micros - b.overrun_micros > c.limit_micros`).Scan(&beyond)
			})
			if err != nil || beyond > 0 {
				t.Errorf("%d balances beyond their cap, error %v", beyond, err)
				return
			}
			looks++
		}
	}()
	return stop, watched
}

// S47 to the letter: $1.00, $0.90 of it spent, twenty calls of at most $0.05 at once.
func TestCaseS47TwentyAtOnceWithRoomForTwo(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(ledger.Dollar))
	spent := s.hold(90 * ledger.Cent)
	require.NoError(t, b.hold(t, spent))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(spent.ID)))

	var admitted, refused atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, capped := ledger.AsCapReached(b.hold(t, s.hold(5*ledger.Cent))); capped {
				refused.Add(1)
			} else {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, 2, admitted.Load())
	require.EqualValues(t, 18, refused.Load())
	b.sound(t)
}

// S51: wherever the caps are, the lowest binds and is named.
func TestCaseS51TightestCapBinds(t *testing.T) {
	t.Parallel()
	b := open(t)
	cases := []struct {
		name                  string
		run, pipeline, tenant *ledger.Micros
		want                  ledger.Scope
		available             ledger.Micros
	}{
		{name: "tenant only", tenant: limit(50), want: ledger.ScopeTenant, available: 50},
		{name: "pipeline only", pipeline: limit(50), want: ledger.ScopePipeline, available: 50},
		{name: "run only", run: limit(50), want: ledger.ScopeRun, available: 50},
		{name: "tenant below pipeline", pipeline: limit(60), tenant: limit(50), want: ledger.ScopeTenant, available: 50},
		{name: "pipeline below tenant", pipeline: limit(50), tenant: limit(60), want: ledger.ScopePipeline, available: 50},
		{name: "run fits, tenant does not", run: limit(120), pipeline: limit(80), tenant: limit(70), want: ledger.ScopeTenant, available: 70},
		{name: "run does not fit, tenant less", run: limit(90), tenant: limit(10), want: ledger.ScopeTenant, available: 10},
		{name: "all the same", run: limit(50), pipeline: limit(50), tenant: limit(50), want: ledger.ScopeRun, available: 50},
		{name: "nothing at all", run: limit(200), tenant: limit(0), want: ledger.ScopeTenant, available: 0},
	}
	for _, c := range cases {
		s := b.run(t)
		b.setCap(t, ledger.OfRun(s.run), ledger.Real, c.run)
		b.setCap(t, ledger.OfPipeline(b.pipeline), ledger.Real, c.pipeline)
		b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, c.tenant)
		got := reached(t, b.hold(t, s.hold(100)))
		require.Equal(t, c.want, got.Scope, c.name)
		require.Equal(t, c.available, got.Available, c.name)
		require.EqualValues(t, 100, got.Needed, c.name)
	}
	require.Zero(t, b.month(t).Real.Held)
}

func TestCapOfZeroAndNoCap(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	require.NoError(t, b.hold(t, s.hold(ledger.MaxMicros)), "without a cap anything fits")
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(0))
	stopped := reached(t, b.hold(t, s.hold(1)))
	require.Equal(t, "The workspace's monthly AI spend cap is $0.00, which allows no AI calls.", stopped.String())
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, nil)
	require.NoError(t, b.hold(t, s.hold(1)), "a lifted cap is no cap")
}

func TestRaisedCapLetsTheRunGoOn(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	b.setCap(t, ledger.OfRun(s.run), ledger.Real, limit(50*ledger.Cent))
	stopped := reached(t, b.hold(t, s.hold(80*ledger.Cent)))
	require.Equal(t, s.run.String(), stopped.ID)
	require.Equal(t, "This run's AI spend cap of $0.50 has $0.50 left, and this call may cost up to $0.80.", stopped.String())
	b.setCap(t, ledger.OfRun(s.run), ledger.Real, limit(80*ledger.Cent))
	require.NoError(t, b.hold(t, s.hold(80*ledger.Cent)))
	require.Equal(t, limit(80*ledger.Cent), b.runCost(t, s.run).Real.Limit)
}

func TestLoweredCapStopsOnlyFurtherHolds(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	h := s.hold(100)
	require.NoError(t, b.hold(t, h))
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(30))
	require.Zero(t, reached(t, b.hold(t, s.hold(1))).Available, "never below 0")
	require.NoError(t, b.settle(t, h.Settle(tokens(90), receipt)))
	require.Equal(t, ledger.Standing{Limit: limit(30), Spent: 90}, b.month(t).Real)
	b.sound(t)
}

func TestBadCapsAreRefused(t *testing.T) {
	t.Parallel()
	b := open(t)
	place := ledger.OfTenant(b.tenant)
	for name, bad := range map[string]ledger.Cap{
		"negative":                   {Place: place, Funds: ledger.Real, Limit: limit(-7)},
		"beyond all":                 {Place: place, Funds: ledger.Real, Limit: limit(ledger.MaxMicros + 1)},
		"no funds":                   {Place: place, Limit: limit(7)},
		"no scope":                   {Place: ledger.Place{ID: "x"}, Funds: ledger.Real, Limit: limit(7)},
		"of nothing":                 {Place: ledger.OfCostCentre(""), Funds: ledger.Real, Limit: limit(7)},
		"followed by a negative one": {Place: place, Funds: ledger.Real, Limit: limit(7), Until: time.Now(), After: limit(-1)},
		"followed, but never":        {Place: place, Funds: ledger.Real, Limit: limit(7), After: limit(1)},
	} {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			require.ErrorIs(t, ledger.SetCap(ctx, tx, bad), ledger.ErrBadCap, name)
			return nil
		})
	}
	// The database is the second lock.
	err := b.send(t, func(batch *tenants.Batch) {
		batch.Queue(`INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros)
			VALUES ($1, 'tenant', $1::uuid::text, 'real', 'month', -1)`, b.tenant)
	})
	require.ErrorContains(t, err, "micros_check")
	require.Nil(t, b.month(t).Real.Limit)
}

func TestOtherErrorsAreNoCap(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, context.Canceled, &pgconn.PgError{Code: "TG001"}, &pgconn.PgError{Code: "TG002", Detail: "{"}} {
		_, capped := ledger.AsCapReached(err)
		require.False(t, capped, "%v", err)
	}
}

// Whoever sets a cap waits for the holds that are under way, and those that come later
// wait for it: none passes a cap unseen.
func TestSettingACapWaitsForHolds(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := b.run(t)
	require.NoError(t, b.hold(t, s.hold(100)))

	// A transaction that keeps the tenant's balance locked, with a hold behind it.
	locked, free := make(chan struct{}), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		err := b.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1 FROM balances WHERE scope = 'tenant' FOR UPDATE`)
			close(locked)
			<-free
			return err
		})
		if err != nil {
			t.Errorf("keep the balance locked: %v", err)
		}
	})
	<-locked
	before, after := make(chan error, 1), make(chan error, 1)
	go func() { before <- b.Send(context.Background(), b.tenant, holdBatch(s.hold(50))) }()
	waitUntilBlocked(t, b, 1)
	waiting.Go(func() { b.setCap(t, ledger.OfTenantDay(b.tenant), ledger.Real, limit(160)) })
	waitUntilBlocked(t, b, 2)
	go func() { after <- b.Send(context.Background(), b.tenant, holdBatch(s.hold(20))) }()
	waitUntilBlocked(t, b, 3)
	close(free)
	waiting.Wait()
	require.NoError(t, <-before)
	capped := reached(t, <-after)
	require.Equal(t, ledger.ScopeTenantDay, capped.Scope)
	require.Equal(t, ledger.Micros(10), capped.Available)
	b.sound(t)
}

func holdBatch(h ledger.Hold) *tenants.Batch {
	batch := &tenants.Batch{}
	ledger.QueueHold(batch, h)
	return batch
}

// waitUntilBlocked returns when so many sessions of the database wait for a lock.
func waitUntilBlocked(t *testing.T, b *books, sessions int) {
	t.Helper()
	super := b.Super(t)
	require.Eventually(t, func() bool {
		var blocked int
		err := super.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
		return err == nil && blocked >= sessions
	}, 20*time.Second, 5*time.Millisecond)
}
