package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// limited is a key's bucket of a database, on a clock that a test moves.
type limited struct {
	*dbtest.Database
	t     *testing.T
	super *pgxpool.Pool
	key   ledger.RateBucket
}

func newRates(t *testing.T, limit tenants.RateLimit) *limited {
	t.Helper()
	db := dbtest.Open(t)
	return &limited{db, t, db.Super(t), ledger.SharedBucket("openai", "gpt", limit)}
}

func (r *limited) tenantID() tenants.ID {
	id, _ := r.Tenant(r.t)
	return id
}

func aTicket() ledger.StepRunID { return ledger.StepRunID(tenants.NewID[tenants.Tenant]()) }

func (r *limited) ask(tenant tenants.ID, ticket ledger.StepRunID, bound int64, more ...ledger.RateBucket) (pass *ledger.RatePass, delay ledger.RateDelay) {
	r.t.Helper()
	require.NoError(r.t, r.InSystemTx(r.t.Context(), func(ctx context.Context, stx tenants.SystemTx) (err error) {
		pass, delay, err = ledger.AskRate(ctx, stx, ledger.RateAsk{Tenant: tenant, Ticket: ticket, Bound: bound, Key: r.key, More: more})
		return err
	}))
	return pass, delay
}

func (r *limited) settle(pass *ledger.RatePass, out ledger.RateOutcome) {
	r.t.Helper()
	require.NoError(r.t, r.InSystemTx(r.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		return ledger.SettleRate(ctx, stx, pass, out)
	}))
}

// pass lets time go by.
func (r *limited) passTime(d time.Duration) {
	r.t.Helper()
	_, err := r.super.Exec(r.t.Context(), `
		WITH b AS (UPDATE rate_buckets SET filled_at = filled_at - $1::interval, paused_until = paused_until - $1::interval)
		UPDATE rate_tickets SET due_at = due_at - $1::interval`, d)
	require.NoError(r.t, err)
}

func tokensUsed(n int64) ledger.RateOutcome { return ledger.RateOutcome{Used: &n} }

// about compares waits: between two calls a little real time goes by, too.
func about(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InDelta(t, want.Seconds(), got.Seconds(), 2, "want about %v, got %v", want, got)
}

func TestRateLimitsNothingWhereNoneIsSet(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{})
	pass, delay := r.ask(r.tenantID(), aTicket(), 1_000_000)
	require.Nil(t, pass)
	require.Zero(t, delay)
	var buckets int
	require.NoError(t, r.super.QueryRow(t.Context(), `SELECT count(*) FROM rate_buckets`).Scan(&buckets))
	require.Zero(t, buckets)
}

func TestRateOfTokensIsReservedAndCorrected(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 60_000})
	tenant := r.tenantID()
	first, delay := r.ask(tenant, aTicket(), 9_000)
	require.Zero(t, delay)
	ticket := aTicket()
	_, delay = r.ask(tenant, ticket, 3_000) // 10,000 fit, 1,000 are left, 2,000 flow in within 2 s
	about(t, 2*time.Second, delay.Wait)
	require.Equal(t, r.key.Name, delay.BarredBy)

	r.settle(first, tokensUsed(1_000))
	pass, delay := r.ask(tenant, ticket, 3_000)
	require.Zero(t, delay, "the first call used less than it reserved")
	r.settle(pass, tokensUsed(63_000))
	_, delay = r.ask(tenant, ticket, 3_000) // about -54,000: 57 s, asked again before that
	about(t, 10*time.Second, delay.Wait)
	r.passTime(time.Minute)
	_, delay = r.ask(tenant, ticket, 3_000)
	require.Zero(t, delay)
}

func TestRateOfRequests(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Requests: 12}) // two fit
	tenant := r.tenantID()
	for range 2 {
		_, delay := r.ask(tenant, aTicket(), 1_000_000)
		require.Zero(t, delay)
	}
	_, delay := r.ask(tenant, aTicket(), 1)
	about(t, 5*time.Second, delay.Wait)
	_, delay = r.ask(tenant, aTicket(), 1)
	about(t, 6*time.Second, delay.Wait) // 10 s behind the other, asked again after 6
}

// What is larger than the bucket begins when the bucket is full, and is paid off after.
func TestRateOfACallLargerThanTheBucket(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 600})
	tenant := r.tenantID()
	_, delay := r.ask(tenant, aTicket(), 1_000_000)
	require.Zero(t, delay)
	_, delay = r.ask(tenant, aTicket(), 1)
	require.NotZero(t, delay)
	r.passTime(24 * time.Hour)
	_, delay = r.ask(tenant, aTicket(), 1)
	require.NotZero(t, delay, "10 minutes' worth flow in at once at most, and 27 hours' are missing")
}

// Who came first goes first; nobody slips in where another waits for the same room.
func TestRateKeepsTheLine(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 60_000})
	tenant, big, small := r.tenantID(), aTicket(), aTicket()
	_, delay := r.ask(tenant, aTicket(), 8_000)
	require.Zero(t, delay)
	_, delay = r.ask(tenant, big, 9_500)
	require.NotZero(t, delay)
	_, delay = r.ask(tenant, small, 1_000)
	require.NotZero(t, delay, "1,000 would fit, but another waits for them")
	r.passTime(8 * time.Second)
	_, delay = r.ask(tenant, small, 1_000)
	require.NotZero(t, delay)
	_, delay = r.ask(tenant, big, 9_500)
	require.Zero(t, delay)
	r.passTime(time.Second)
	_, delay = r.ask(tenant, small, 1_000)
	require.Zero(t, delay)
}

// A call that does not come back loses its place, and holds up nobody.
func TestRateForgetsWhoLeftTheLine(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 60_000})
	tenant, stays := r.tenantID(), aTicket()
	r.ask(tenant, aTicket(), 10_000)
	for range 20 {
		_, delay := r.ask(tenant, aTicket(), 10_000)
		require.NotZero(t, delay)
	}
	_, delay := r.ask(tenant, stays, 10_000)
	about(t, 10*time.Second, delay.Wait)
	r.passTime(4 * time.Minute)
	_, delay = r.ask(tenant, stays, 10_000)
	require.Zero(t, delay)
	require.NoError(t, r.InSystemTx(t.Context(), ledger.SweepRates))
	var tickets, buckets int
	count := `SELECT (SELECT count(*) FROM rate_tickets), (SELECT count(*) FROM rate_buckets)`
	require.NoError(t, r.super.QueryRow(t.Context(), count).Scan(&tickets, &buckets))
	require.Zero(t, tickets)
	require.Equal(t, 1, buckets, "a bucket in use stays")
	r.passTime(2 * time.Hour)
	require.NoError(t, r.InSystemTx(t.Context(), ledger.SweepRates))
	require.NoError(t, r.super.QueryRow(t.Context(), count).Scan(&tickets, &buckets))
	require.Zero(t, buckets)
}

// A workspace with hundreds of calls in the line holds up another's single one by one call
// only.
func TestRateTakesTurnsBetweenWorkspaces(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 60_000})
	noisy, quiet := r.tenantID(), r.tenantID()
	r.ask(noisy, aTicket(), 10_000)
	for range 50 {
		_, delay := r.ask(noisy, aTicket(), 5_000)
		require.NotZero(t, delay)
	}
	_, delay := r.ask(quiet, aTicket(), 5_000)
	require.Less(t, delay.Wait, 12*time.Second)
}

// A call has to fit under the limit of its key and that of its workspace, and takes from
// neither while one of them bars it.
func TestRateOfKeyAndWorkspaceTogether(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 600_000})
	tenant, other := r.tenantID(), r.tenantID()
	own := ledger.TenantBucket(tenant, tenants.RateLimit{Requests: 6})
	_, delay := r.ask(tenant, aTicket(), 40_000, own)
	require.Zero(t, delay)
	_, delay = r.ask(tenant, aTicket(), 40_000, own)
	require.Equal(t, own.Name, delay.BarredBy)
	_, delay = r.ask(other, aTicket(), 60_000)
	require.NotZero(t, delay, "40,000 of 100,000 are taken, and 40,000 wait before")
	_, delay = r.ask(other, aTicket(), 20_000)
	require.NotZero(t, delay)
}

// The provider's word lowers a limit and never raises it.
func TestRateIsLoweredByTheProvider(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		told ledger.RateOutcome
		wait time.Duration // of a call of 10,000 tokens after 3 s
	}{
		"nothing told":        {ledger.RateOutcome{Used: n(0)}, 0},
		"a higher limit":      {ledger.RateOutcome{Used: n(0), Tokens: n(1_000_000), TokensLeft: n(900_000), Requests: n(100), RequestsLeft: n(99)}, 0},
		"half the limit":      {ledger.RateOutcome{Used: n(0), Tokens: n(30_000)}, 0}, // 5,000 fit, and it begins when they are there
		"nothing left":        {ledger.RateOutcome{Used: n(0), TokensLeft: n(0)}, 7 * time.Second * 6 / 10},
		"nothing left before": {ledger.RateOutcome{Used: n(0), TokensLeft: n(0), Took: 5 * time.Second}, 2 * time.Second},
		"no calls left":       {ledger.RateOutcome{Used: n(0), RequestsLeft: n(0)}, 0}, // calls are not limited here
		"to be left alone":    {ledger.RateOutcome{Used: n(0), Pause: 33 * time.Second}, 30 * time.Second},
		"hostile figures":     {ledger.RateOutcome{Used: n(-1 << 62), Tokens: n(-5), TokensLeft: n(1 << 62), Took: -time.Hour, Pause: -time.Hour}, 0},
		"more than there is":  {ledger.RateOutcome{Used: n(1 << 62)}, 10 * time.Second},
	} {
		r := newRates(t, tenants.RateLimit{Tokens: 60_000})
		tenant := r.tenantID()
		pass, delay := r.ask(tenant, aTicket(), 10_000)
		require.Zero(t, delay)
		r.settle(pass, tc.told)
		r.passTime(3 * time.Second)
		_, delay = r.ask(tenant, aTicket(), 10_000)
		require.InDelta(t, tc.wait.Seconds(), delay.Wait.Seconds(), 2, name)
	}
}

// However many ask at the same moment, no more begin than there is room for.
func TestRateIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	r := newRates(t, tenants.RateLimit{Tokens: 60}) // 10 fit, and one more flows in each second
	tenant := r.tenantID()
	more := ledger.TenantBucket(tenant, tenants.RateLimit{Tokens: 600})
	began := time.Now()
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			if pass, _ := r.ask(tenant, aTicket(), 1, more); pass != nil {
				granted.Add(1)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, granted.Load(), int64(10))
	require.LessOrEqual(t, granted.Load(), 10+int64(time.Since(began)/time.Second)+1)
}

// Four minutes of three workspaces, whose calls use a random part of what they could: never
// more than the limit and its bucket, at least nine tenths of it, and each a fair part.
func TestRateOverTime(t *testing.T) {
	t.Parallel()
	const perMinute, minutes = 60_000, 4
	r := newRates(t, tenants.RateLimit{Tokens: perMinute})
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a test
	type waiting struct {
		tenant int
		ticket ledger.StepRunID
		due    time.Duration
	}
	ids := []tenants.ID{r.tenantID(), r.tenantID(), r.tenantID()}
	var line []waiting
	for i, n := range []int{120, 60, 60} {
		for range n {
			line = append(line, waiting{i, aTicket(), 0})
		}
	}
	used := make([]int64, len(ids))
	var total int64
	began, now := time.Now(), time.Duration(0)
	flowed := func() int64 { return int64(perMinute * (now + time.Since(began)).Minutes()) } // the test itself takes time, too
	asks := 0
	for now < minutes*time.Minute {
		slices.SortStableFunc(line, func(a, b waiting) int { return int(a.due - b.due) })
		next := &line[0]
		if next.due > now {
			r.passTime(next.due - now)
			now = next.due
		}
		asks++
		pass, delay := r.ask(ids[next.tenant], next.ticket, 8_000)
		if pass == nil {
			next.due = now + delay.Wait
			continue
		}
		n := 1_000 + random.Int64N(2_000)
		used[next.tenant] += n
		total += n
		r.settle(pass, ledger.RateOutcome{Used: &n, Whole: true})
		next.ticket, next.due = aTicket(), now+time.Second // the next call of its run
		require.LessOrEqual(t, total, flowed()+perMinute/6+8_000, "at %v", now)
	}
	allowed := flowed()
	t.Logf("%d of %d tokens, %v by workspace, %d asks", total, allowed, used, asks)
	require.Greater(t, total, allowed*9/10)
	for i, n := range used {
		require.Greater(t, n, allowed/3*8/10, fmt.Sprint("workspace ", i))
	}
}
