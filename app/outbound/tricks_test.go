package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// tricks are ways to reach the inside, by name. Each is refused directly, by the
// dialer alone, and as a redirect's target.
var tricks = []struct{ name, url string }{
	{"loopback", "http://127.0.0.1/"},
	{"loopback, other number", "http://127.127.127.127/"},
	{"loopback by name", "http://localhost/"},
	{"loopback by a name below localhost", "http://x.localhost/"},
	{"loopback v6", "http://[::1]/"},
	{"loopback v6 in full", "http://[0:0:0:0:0:0:0:1]/"},
	{"unspecified", "http://0.0.0.0/"},
	{"unspecified v6", "http://[::]/"},
	{"this network", "http://0.1.2.3/"},
	{"metadata", "http://169.254.169.254/latest/meta-data/"},
	{"metadata v6", "http://[fd00:ec2::254]/latest/"},
	{"private 10", "http://10.0.0.1/"},
	{"private 172", "http://172.16.5.4/"},
	{"private 192", "http://192.168.0.1/"},
	{"carrier NAT", "http://100.64.0.1/"},
	{"protocol assignments", "http://192.0.0.192/"},
	{"benchmark range", "http://198.18.0.1/"},
	{"multicast", "http://224.0.0.251/"},
	{"reserved", "http://240.0.0.1/"},
	{"broadcast", "http://255.255.255.255/"},
	{"mapped", "http://[::ffff:10.0.0.1]/"},
	{"mapped in hex", "http://[::ffff:7f00:1]/"},
	{"mapped metadata", "http://[::ffff:169.254.169.254]/"},
	{"compatible", "http://[::127.0.0.1]/"},
	{"translated", "http://[::ffff:0:127.0.0.1]/"},
	{"NAT64", "http://[64:ff9b::a9fe:a9fe]/"},
	{"local NAT64", "http://[64:ff9b:1::a9fe:a9fe]/"},
	{"6to4", "http://[2002:7f00:1::]/"},
	{"Teredo", "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/"},
	{"unique local", "http://[fc00::1]/"},
	{"Fly's private network", "http://[fdaa:0:1::3]/"},
	{"link-local with zone", "http://[fe80::1%25lo]/"},
	{"loopback with zone", "http://[::1%25lo]/"},
	{"site-local", "http://[fec0::1]/"},
	{"multicast v6", "http://[ff02::1]/"},
	{"hexadecimal", "http://0x7f000001/"},
	{"hexadecimal parts", "http://0x7f.0.0.0x1/"},
	{"octal", "http://0177.0.0.1/"},
	{"one number", "http://2130706433/"},
	{"short form", "http://127.1/"},
	{"root dot after a number", "http://127.0.0.1./"},
	{"full-width digits", "http://１２７.０.０.１/"},
	{"ideographic dots", "http://127。0。0。1/"},
	{"name to loopback", "http://loopback.test/"},
	{"name to loopback v6", "http://loopback6.test/"},
	{"name to metadata", "http://meta.test/"},
	{"name to mapped", "http://mapped.test/"},
	{"name to several private", "http://several.test/"},
	{"name in capitals with root dot", "http://LOOPBACK.test./"},
	{"name rebound after a look", "http://rebound.test/"},
	{"name and password", "http://example.com@127.0.0.1/"},
	{"backslash as path", "http://127.0.0.1%5C@example.com/"},
}

func trickDNS() *fakeDNS {
	return &fakeDNS{rounds: map[string][]string{
		"loopback.test":  {"127.0.0.1"},
		"LOOPBACK.test":  {"127.0.0.1"},
		"loopback6.test": {"::1"},
		"meta.test":      {"169.254.169.254"},
		"mapped.test":    {"::ffff:127.0.0.1"},
		"several.test":   {"10.0.0.1 192.168.7.7 fdaa::3"},
		"rebound.test":   {"93.184.216.34", "169.254.169.254"},
	}}
}

// TestTricks is case S63: refused when connecting, at each hop, and the answer's
// text does not tell what is inside.
func TestTricks(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(tricks), 30)
	for _, trick := range tricks {
		t.Run(trick.name, func(t *testing.T) {
			t.Parallel()
			dns := trickDNS()
			resolver := dns.resolver(t)
			if strings.Contains(trick.url, "rebound") {
				// What a check of the name beforehand would see.
				found, err := resolver.LookupNetIP(t.Context(), "ip4", "rebound.test")
				require.NoError(t, err)
				require.True(t, Public(found[0]))
			}
			refusedByDialer(t, resolver, trick.url)
			refusedDirectly(t, resolver, trick.url)
			refusedAsRedirect(t, resolver, trick.url)
		})
	}
}

// refusedByDialer leaves out every check of the URL: what is left must refuse too.
func refusedByDialer(t *testing.T, resolver *net.Resolver, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		return // such a URL never gets as far as a dialer
	}
	for _, port := range []string{"80", "443", "5432"} {
		conn, err := dialer(rules{}, resolver)(t.Context(), "tcp", net.JoinHostPort(u.Hostname(), port))
		require.Error(t, err)
		require.Nil(t, conn)
		var notFound *net.DNSError
		var refused *refusal
		var odd *net.AddrError
		require.True(t, errors.As(err, &refused) || errors.As(err, &notFound) || errors.As(err, &odd), "%v", err)
	}
}

func refusedDirectly(t *testing.T, resolver *net.Resolver, target string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		return // never becomes a request
	}
	for _, cfg := range []Config{{PlainHTTP: true, Redirects: 3}, {}} {
		client, err := build(cfg, resolver)
		require.NoError(t, err)
		_, err = client.Do(req)
		requireRefused(t, err, false)
	}
}

// refusedAsRedirect meets the trick on the second and on the third hop.
func refusedAsRedirect(t *testing.T, resolver *net.Resolver, target string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := target
		if r.URL.Path == "/two" {
			next = "/one"
		}
		w.Header().Set("Location", next)
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	client, err := build(Config{Allow: []string{server.Listener.Addr().String()}, PlainHTTP: true, Redirects: 3}, resolver)
	require.NoError(t, err)
	for _, path := range []string{"/one", "/two"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		_, err = client.Do(req)
		requireRefused(t, err, true)
	}
}

// requireRefused checks kind and words of a refusal. The host a user wrote may be
// repeated to the user, an address that was looked up may not.
func requireRefused(t *testing.T, err error, redirected bool) {
	t.Helper()
	var fault *Error
	require.ErrorAs(t, err, &fault)
	kinds := []Kind{KindBadAddress, KindRefused, KindUnreachable}
	if redirected {
		kinds = append(kinds, KindRedirect)
	}
	require.Contains(t, kinds, fault.Kind, "%v", fault.Cause())
	if strings.Contains(fault.Message, ".test") {
		for _, inner := range []string{"127.0.0.1", "169.254", "10.0.0.1", "192.168", "::1", "fdaa", "dial", "tcp", "refused"} {
			require.NotContains(t, fault.Message, inner)
		}
	}
}

// TestListeningInside: a server does listen at the address, and is never connected.
func TestListeningInside(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	inside.Config.ConnState = func(net.Conn, http.ConnState) { hits.Add(1) }
	inside.Start()
	defer inside.Close()
	port := inside.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	resolver := trickDNS().resolver(t)
	for _, host := range []string{"127.0.0.1", "loopback.test", "localhost", "mapped.test"} {
		address := net.JoinHostPort(host, netip.AddrPortFrom(netip.IPv4Unspecified(), port).String()[len("0.0.0.0:"):])
		_, err := dialer(rules{}, resolver)(t.Context(), "tcp", address)
		require.Error(t, err)
	}
	require.Zero(t, hits.Load())
	conn, err := dialer(rules{allow: map[string]bool{inside.Listener.Addr().String(): true}}, resolver)(
		context.Background(), "tcp", inside.Listener.Addr().String())
	require.NoError(t, err, "the same dialer connects where the operator allows it")
	require.NoError(t, conn.Close())
}

// TestSameWords: a name that points inside and one that does not exist read alike.
func TestSameWords(t *testing.T) {
	t.Parallel()
	client, err := build(Config{}, trickDNS().resolver(t))
	require.NoError(t, err)
	words := func(host string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
		require.NoError(t, err)
		_, err = client.Do(req)
		require.Error(t, err)
		return strings.ReplaceAll(err.Error(), host, "HOST")
	}
	require.Equal(t, words("nowhere.test"), words("meta.test"))
	require.Equal(t, words("nowhere.test"), words("several.test"))
}
