package web

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpendAllowsABurstThenAPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var full time.Time
	for range 5 {
		var wait time.Duration
		full, wait = spend(full, now, time.Second, 5)
		require.Zero(t, wait)
	}
	same, wait := spend(full, now, time.Second, 5)
	require.Equal(t, time.Second, wait)
	require.Equal(t, full, same, "a refused try costs nothing")
	full, wait = spend(full, now.Add(time.Second), time.Second, 5)
	require.Zero(t, wait)
	_, wait = spend(full, now.Add(1500*time.Millisecond), time.Second, 5)
	require.Equal(t, 500*time.Millisecond, wait)
	_, wait = spend(full, now.Add(time.Hour), time.Second, 5)
	require.Zero(t, wait)
}

func TestPaceForgetsTheIdle(t *testing.T) {
	t.Parallel()
	p, now := newPace(time.Second, 1), time.Now()
	for i := range maxPaced {
		p.wait(strconv.Itoa(i), now)
	}
	require.Len(t, p.next, maxPaced)
	require.Zero(t, p.wait("new", now.Add(time.Minute)))
	require.Len(t, p.next, 1)
}

func TestNetworksOfAddresses(t *testing.T) {
	t.Parallel()
	for remote, network := range map[string]string{
		"192.0.2.7:1234": "192.0.2.7", "192.0.2.7": "192.0.2.7", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"2001:db8:1:2::9": "2001:db8:1:2::/64", "::ffff:192.0.2.7": "192.0.2.7", "nonsense": "unknown", "": "unknown",
	} {
		require.Equal(t, network, networkOf(remote), remote)
	}
}

// Whoever tries links or forms faster than people do is told when to go on.
func TestTooManyTriesOfLinksAndForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.ClientIP = "Fly-Client-IP" })
	from := func(ip string) *page {
		b := s.visitor()
		r := b.request(http.MethodPost, "/signout", nil)
		r.Header.Set("Fly-Client-IP", ip)
		return b.do(r)
	}
	s.web.paces = paceOfForms()
	now := time.Now()
	s.web.clock = func() time.Time { return now }
	for range 60 {
		from("192.0.2.7").is(http.StatusSeeOther)
	}
	p := from("192.0.2.7").is(http.StatusTooManyRequests).says("Too many tries", "again in 1 s")
	require.Equal(t, "1", p.header.Get("Retry-After"))
	from("192.0.2.8").is(http.StatusSeeOther)
	s.visitor().get("/signin").is(200)
	now = now.Add(time.Second)
	from("192.0.2.7").is(http.StatusSeeOther)
}
