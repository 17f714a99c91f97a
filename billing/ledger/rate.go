package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tollgate/tenants"
)

// RateBucket is a limit that a model call has to fit under, for all calls that name it. A
// limit of 0 is none.
type RateBucket struct {
	Name   string // see KeyBucket, SharedBucket, TenantBucket
	Limits tenants.RateLimit
}

// KeyBucket is that of a workspace's own key and a model, in the provider's id for it.
func KeyBucket(key tenants.ProviderKeyID, model string, limits tenants.RateLimit) RateBucket {
	return RateBucket{"key " + key.String() + " " + model, limits}
}

// SharedBucket is that of the installation's key at a provider and a model.
func SharedBucket(provider, model string, limits tenants.RateLimit) RateBucket {
	return RateBucket{"shared " + provider + " " + model, limits}
}

// TenantBucket is that of a workspace, over all its calls.
func TenantBucket(tenant tenants.ID, limits tenants.RateLimit) RateBucket {
	return RateBucket{"workspace " + tenant.String(), limits}
}

// RateAsk is a call that is about to be made.
type RateAsk struct {
	Tenant tenants.ID
	// Ticket keeps the call's place in the line while it waits; the same each time it asks.
	Ticket StepRunID
	Bound  int64 // the most tokens that the call can use
	// Key is the bucket of the key that the call is made under: the provider's word about
	// its limits counts there.
	Key  RateBucket
	More []RateBucket // others that it has to fit under
}

// Limited tells whether anything limits the call.
func (a RateAsk) Limited() bool { return len(a.buckets()) > 0 }

// buckets are all that the ask names with any limit, in the order in which they are locked.
func (a RateAsk) buckets() []RateBucket {
	var list []RateBucket
	for _, bucket := range append([]RateBucket{a.Key}, a.More...) {
		if !bucket.Limits.IsZero() {
			list = append(list, bucket)
		}
	}
	slices.SortFunc(list, func(a, b RateBucket) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// RatePass is what a call reserved. It must be settled once.
type RatePass struct {
	key      string
	names    []string
	requests []int64
	tokens   []int64
	reserved []int64
	bound    int64
}

// RateDelay says that a call may not begin yet.
type RateDelay struct {
	Wait     time.Duration // before asking again
	BarredBy string        // the name of the bucket that is in the way
}

// AskRate reserves room for a call under all its limits, or says how long to wait before
// asking again. A call that waits keeps its place: first come, first served within a
// workspace, and turns between workspaces. The pass is nil where there is a delay, and
// where nothing is limited.
func AskRate(ctx context.Context, stx tenants.SystemTx, ask RateAsk) (*RatePass, RateDelay, error) {
	pass := &RatePass{key: ask.Key.Name, bound: ask.Bound}
	for _, bucket := range ask.buckets() {
		pass.names = append(pass.names, bucket.Name)
		pass.requests = append(pass.requests, bucket.Limits.Requests)
		pass.tokens = append(pass.tokens, bucket.Limits.Tokens)
	}
	if len(pass.names) == 0 {
		return nil, RateDelay{}, nil
	}
	var wait int64
	var barredBy *string
	err := stx.QueryRow(ctx, `SELECT wait, reserved, barred_by FROM rate_ask($1, $2, $3, $4, $5, $6)`,
		ask.Tenant, ask.Ticket, ask.Bound, pass.names, pass.requests, pass.tokens).Scan(&wait, &pass.reserved, &barredBy)
	if err != nil {
		return nil, RateDelay{}, fmt.Errorf("ask for room under a rate limit: %w", err)
	}
	if wait > 0 {
		return nil, RateDelay{time.Duration(wait) * time.Microsecond, *barredBy}, nil
	}
	return pass, RateDelay{}, nil
}

// RateOutcome is what a call came to.
type RateOutcome struct {
	Used  *int64 // tokens; nil where nobody knows, which leaves what was reserved
	Whole bool   // the call was answered in full, so that what it used tells of others to come
	// What the provider said of its limits a minute and of what is left of them; nil: nothing.
	// They lower ours and never raise them.
	Requests, RequestsLeft, Tokens, TokensLeft *int64
	Took                                       time.Duration // from the call's begin to now
	Pause                                      time.Duration // how long the provider wants to be left alone
}

// longestPause bounds what a provider may ask for, and what it can tell.
const (
	longestPause = 10 * time.Minute
	mostTold     = 1_000_000_000
)

// SettleRate corrects what a call reserved by what it used.
func SettleRate(ctx context.Context, stx tenants.SystemTx, pass *RatePass, out RateOutcome) error {
	_, err := stx.Exec(ctx, `SELECT rate_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		pass.names, pass.requests, pass.tokens, pass.reserved, pass.bound, bounded(out.Used), out.Whole, pass.key,
		positive(bounded(out.Requests)), positive(bounded(out.Tokens)), bounded(out.RequestsLeft), bounded(out.TokensLeft),
		min(max(out.Took, 0), longestPause).Microseconds(), min(max(out.Pause, 0), longestPause).Microseconds())
	if err != nil {
		return fmt.Errorf("settle a rate limit: %w", err)
	}
	return nil
}

// bounded keeps what another side told within what can be counted with.
func bounded(n *int64) *int64 {
	if n == nil {
		return nil
	}
	kept := min(max(*n, 0), mostTold)
	return &kept
}

// positive drops a limit of 0: a provider that allows nothing refuses the call itself.
func positive(n *int64) *int64 {
	if n == nil || *n == 0 {
		return nil
	}
	return n
}

// SweepRates forgets buckets that nothing used for an hour, and calls that left the line.
func SweepRates(ctx context.Context, stx tenants.SystemTx) error {
	for _, statement := range []string{
		`DELETE FROM rate_tickets WHERE due_at < now() - interval '10 minutes'`,
		`DELETE FROM rate_buckets b WHERE filled_at < now() - interval '1 hour' AND paused_until < now()
			AND NOT EXISTS (SELECT 1 FROM rate_tickets t WHERE t.bucket = b.name)`,
	} {
		if _, err := stx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("tidy rate limits: %w", err)
		}
	}
	return nil
}
