package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// waitOf asks for a code and returns the wait, 0 when it was given.
func (d *door) waitOf(email, remote string) time.Duration {
	d.t.Helper()
	_, err := d.request(email, remote)
	var tooMany *tenants.TooManyTries
	if errors.As(err, &tooMany) {
		require.Positive(d.t, tooMany.Wait)
		return tooMany.Wait
	}
	require.NoError(d.t, err)
	return 0
}

func TestAddressMayAskFiveTimesAQuarterHour(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	start := d.now
	for i := range 5 {
		d.now = start.Add(time.Duration(i) * time.Minute)
		require.Zero(t, d.waitOf("ana@example.com", fmt.Sprintf("192.0.2.%d", i)))
	}
	require.Equal(t, 11*time.Minute, d.waitOf("ANA@example.com", "192.0.2.99"), "until the first leaves the quarter hour")
	require.Zero(t, d.waitOf("ben@example.com", "192.0.2.1"))
	d.now = start.Add(15*time.Minute - time.Second)
	require.Equal(t, time.Second, d.waitOf("ana@example.com", anywhere))
	d.now = start.Add(15 * time.Minute)
	require.Zero(t, d.waitOf("ana@example.com", anywhere))
	require.Equal(t, time.Minute, d.waitOf("ana@example.com", anywhere))
}

func TestAddressMayAskTwentyTimesADay(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	start := d.now
	for i := range 20 {
		d.now = start.Add(time.Duration(i) * 16 * time.Minute)
		require.Zero(t, d.waitOf("ana@example.com", anywhere))
	}
	d.now = start.Add(20 * 16 * time.Minute)
	require.Equal(t, 24*time.Hour-20*16*time.Minute, d.waitOf("ana@example.com", anywhere))
}

func TestNetworkMayAskThirtyTimesAQuarterHour(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for i := range 30 {
		require.Zero(t, d.waitOf(fmt.Sprintf("p%d@example.com", i), fmt.Sprintf("[2001:db8::%x]:80", i)))
	}
	require.Equal(t, 15*time.Minute, d.waitOf("next@example.com", "2001:db8::ffff"))
	require.Zero(t, d.waitOf("next@example.com", "2001:db8:0:1::1"), "the next household")
}

// Fifty requests at once pass no limit together, and refused ones leave nothing.
func TestLimitsHoldForRequestsAtOnce(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { _, _ = d.request("ana@example.com", fmt.Sprintf("192.0.2.%d", i%3)) })
	}
	all.Wait()
	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		var codes int
		require.NoError(t, stx.QueryRow(ctx, `SELECT count(*) FROM login_codes`).Scan(&codes))
		require.Equal(t, 5, codes)
	})
}

func TestSpentCodeTellsTheWaitForTheNext(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	var digits string
	for range 5 {
		digits = d.digits("ana@example.com")
	}
	for range tenants.CodeTries {
		d.verify("ana@example.com", wrong(digits))
	}
	d.now = d.now.Add(time.Minute)
	var spent *tenants.TooManyTries
	require.ErrorAs(t, d.verify("ana@example.com", digits).Refused, &spent)
	require.Equal(t, 14*time.Minute, spent.Wait)
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7":                "192.0.2.7",
		"192.0.2.7:4711":           "192.0.2.7",
		"::ffff:192.0.2.7":         "192.0.2.7",
		"[::ffff:192.0.2.7]:80":    "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":     "2001:db8:1:2::/64",
		"[2001:db8:1:2::9%eth0]:1": "2001:db8:1:2::/64",
		"fe80::1%eth0":             "fe80::/64",
		"":                         "unknown",
		"@":                        "unknown",
		"192.0.2.7, 10.0.0.1":      "unknown",
		"192.0.2.7\x00":            "unknown",
	} {
		require.Equal(t, want, tenants.NetworkOf(remote), "%q", remote)
	}
}
