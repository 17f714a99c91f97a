package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
)

// limit is how many codes may be asked for within any stretch of time of that length.
type limit struct {
	most   int
	within time.Duration
}

// The limits on asking for codes. The daily one of an address bounds guessing (see
// CodeTries); those of a network leave room for an office behind one address.
var (
	emailLimits   = []limit{{5, 15 * time.Minute}, {20, 24 * time.Hour}}
	networkLimits = []limit{{30, 15 * time.Minute}, {200, 24 * time.Hour}}
)

// codesKept is how long code rows are needed: the longest limit looks back that far.
const codesKept = 24 * time.Hour

// codeWait returns how long an address and a network must wait for their next code.
// Locks make requests of the same address or network queue up for the rest of the
// transaction, or several at once could all pass below a limit. Everybody locks the
// address first, so nobody waits in a circle.
func codeWait(ctx context.Context, stx SystemTx, email, network string) (time.Duration, error) {
	for _, key := range []string{"login code for " + email, "login code from " + network} {
		if _, err := stx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, key); err != nil {
			return 0, fmt.Errorf("lock login codes: %w", err)
		}
	}
	byEmail, err := emailWait(ctx, stx, email)
	if err != nil {
		return 0, err
	}
	const newest = `SELECT created_at FROM login_codes WHERE network = $1 AND created_at > $2
		ORDER BY created_at DESC OFFSET $3 LIMIT 1`
	byNetwork, err := longestWait(ctx, stx, newest, network, networkLimits)
	return max(byEmail, byNetwork), err
}

func emailWait(ctx context.Context, stx SystemTx, email string) (time.Duration, error) {
	const newest = `SELECT created_at FROM login_codes WHERE email = $1 AND created_at > $2
		ORDER BY created_at DESC OFFSET $3 LIMIT 1`
	return longestWait(ctx, stx, newest, email, emailLimits)
}

// longestWait asks for each limit when the code that fills it leaves the stretch.
func longestWait(ctx context.Context, stx SystemTx, query, key string, limits []limit) (time.Duration, error) {
	var longest time.Duration
	for _, limit := range limits {
		var filled time.Time
		err := stx.QueryRow(ctx, query, key, stx.Now.Add(-limit.within), limit.most-1).Scan(&filled)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("count login codes: %w", err)
		}
		longest = max(longest, filled.Add(limit.within).Sub(stx.Now))
	}
	return longest, nil
}

// networkOf names where a request came from: an IPv4 address, or the /64 of an IPv6
// address, since one household has that many. Whoever hides shares one name.
func networkOf(remoteAddr string) string {
	addr, err := netip.ParseAddr(remoteAddr)
	if err != nil {
		withPort, err := netip.ParseAddrPort(remoteAddr)
		if err != nil {
			return "unknown"
		}
		addr = withPort.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}
