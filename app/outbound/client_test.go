package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// setup starts a server that the operator allows.
func setup(t *testing.T, cfg Config, handler http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg.Allow = append(cfg.Allow, server.Listener.Addr().String())
	client, err := New(cfg)
	require.NoError(t, err)
	return client, server
}

func get(t *testing.T, client *Client, address string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	return client.Do(req)
}

func requireKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	var fault *Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, kind, fault.Kind, "%v", fault.Cause())
	require.NotEmpty(t, fault.Message)
	return fault
}

func TestAllowedHost(t *testing.T) {
	t.Parallel()
	client, server := setup(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	res, err := get(t, client, server.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "hello", string(body))

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = get(t, client, "http://localhost:"+port+"/")
	requireKind(t, err, KindBadAddress) // only the name as the operator wrote it
}

func TestAllowIsChecked(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"127.0.0.1", "http://x:80", ":80", "x:", ""} {
		_, err := New(Config{Allow: []string{entry}})
		require.ErrorContains(t, err, "host:port")
	}
}

func TestURLRules(t *testing.T) {
	t.Parallel()
	client, err := New(Config{})
	require.NoError(t, err)
	for _, address := range []string{
		"http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "https://",
		"https:example.com", "https://user:pw@example.com/", "https://example.com:8443/", "https://example.com:5432/",
		"https://example.com:22/", "https://a:b@[::1]/", "https://999.999.999.999/", "https://1.2.3/", "https://x.0x10/",
	} {
		_, err := get(t, client, address)
		requireKind(t, err, KindBadAddress)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", nil)
	require.NoError(t, err)
	req.Host = "internal.example"
	_, err = client.Do(req)
	requireKind(t, err, KindBadAddress)
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	zipped := new(bytes.Buffer)
	w := gzip.NewWriter(zipped)
	_, err := w.Write(bytes.Repeat([]byte("a"), 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	client, server := setup(t, Config{MaxBody: 1000}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			_, _ = w.Write(make([]byte, 1000))
		case "/announced":
			_, _ = w.Write(make([]byte, 1001))
		case "/streamed":
			for range 3 {
				_, _ = w.Write(make([]byte, 400))
				_ = http.NewResponseController(w).Flush()
			}
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		}
	})
	res, err := get(t, client, server.URL+"/exact")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Len(t, body, 1000)
	_, err = get(t, client, server.URL+"/announced")
	requireKind(t, err, KindTooLarge)
	for _, path := range []string{"/streamed", "/zipped"} {
		res, err := get(t, client, server.URL+path)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		requireKind(t, err, KindTooLarge)
		require.Len(t, body, 1000)
		require.NoError(t, res.Body.Close())
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	client, server := setup(t, Config{Timeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	_, err := get(t, client, server.URL+"/head")
	fault := requireKind(t, err, KindTimeout)
	require.True(t, fault.Sent)
	res, err := get(t, client, server.URL+"/body")
	require.NoError(t, err)
	_, err = io.ReadAll(res.Body)
	requireKind(t, err, KindTimeout)
	require.NoError(t, res.Body.Close())
}

// TestOtherProtocol: an answer that leaves HTTP would give its caller the bare line.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	client, server := setup(t, Config{Timeout: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
	})
	res, err := get(t, client, server.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Empty(t, body)
	require.NoError(t, res.Body.Close())
}

func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	client, server := setup(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	_, err = client.Do(req)
	fault := requireKind(t, err, KindStopped)
	require.ErrorIs(t, fault, context.Canceled)
	require.True(t, fault.Sent)
}

func TestBrokenLine(t *testing.T) {
	t.Parallel()
	client, server := setup(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	_, err := get(t, client, server.URL+"/head")
	require.True(t, requireKind(t, err, KindBroken).Sent)
	res, err := get(t, client, server.URL+"/body")
	require.NoError(t, err)
	_, err = io.ReadAll(res.Body)
	requireKind(t, err, KindBroken)
	require.NoError(t, res.Body.Close())
}

// TestSentOnce: net/http repeats a request with an idempotency key by itself when a
// kept connection dies under it. Whether to repeat is the step author's choice.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{"with body": strings.NewReader("data"), "without body": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			client, server := setup(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posts.Add(1)
					if r.Header.Get("Idempotency-Key") == "k" {
						panic(http.ErrAbortHandler)
					}
				}
			})
			res, err := get(t, client, server.URL)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
			require.NoError(t, err)
			req.Header.Set("Idempotency-Key", "k")
			_, err = client.Do(req)
			require.True(t, requireKind(t, err, KindBroken).Sent)
			require.EqualValues(t, 1, posts.Load())
			require.Equal(t, "k", req.Header.Get("Idempotency-Key"), "the caller's request is left as it was")
		})
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	client, err := New(Config{Allow: []string{address}})
	require.NoError(t, err)
	_, err = get(t, client, "http://"+address+"/?token=secret")
	fault := requireKind(t, err, KindUnreachable)
	require.False(t, fault.Sent)
	require.NotContains(t, fault.Error(), "secret")
	require.Nil(t, errors.Unwrap(fault), "causes name addresses and stay inside")
	require.Error(t, fault.Cause())
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	client, err := New(Config{Allow: []string{server.Listener.Addr().String()}})
	require.NoError(t, err)
	_, err = get(t, client, server.URL)
	require.False(t, requireKind(t, err, KindInsecure).Sent)
}

func TestProxyFromEnvironmentIsIgnored(t *testing.T) {
	t.Parallel()
	client, err := New(Config{})
	require.NoError(t, err)
	require.Nil(t, client.HTTP().Transport.(*guard).next.(*http.Transport).Proxy)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var other *httptest.Server
	headers := make(chan http.Header, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/end":
			headers <- r.Header.Clone()
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, other.URL+"/end", http.StatusFound)
		default:
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		}
	}
	other = httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(other.Close)
	none, server := setup(t, Config{}, handler)
	_, err := get(t, none, server.URL+"/start")
	requireKind(t, err, KindRedirect)

	client, server := setup(t, Config{Redirects: 3, Allow: []string{other.Listener.Addr().String()}}, handler)
	res, err := get(t, client, server.URL+"/start")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Empty(t, (<-headers).Get("Referer"))
	_, err = get(t, client, server.URL+"/loop")
	requireKind(t, err, KindRedirect)
	_, err = get(t, client, server.URL+"/inside")
	requireKind(t, err, KindRedirect) // allowed as a first address, never as a redirect's target

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/start", strings.NewReader("data"))
	require.NoError(t, err)
	_, err = client.Do(req)
	requireKind(t, err, KindRedirect)
}

// TestRedirectToAnotherHost checks the rule itself, since a test has no two public
// hosts: secrets do not travel, and https is not left.
func TestRedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	request := func(address string) *http.Request {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{
			"Accept": {"a/b"}, "Authorization": {"Bearer s"}, "X-Api-Key": {"s"}, "Idempotency-Key": {"s"}, "Cookie": {"s"}, "Referer": {"s"}}}
	}
	r := rules{redirects: 3}
	next := request("https://other.example/")
	require.NoError(t, r.checkRedirect(next, []*http.Request{request("https://one.example/")}))
	require.Equal(t, http.Header{"Accept": {"a/b"}}, next.Header)
	same := request("https://one.example/path")
	require.NoError(t, r.checkRedirect(same, []*http.Request{request("https://one.example/")}))
	require.Equal(t, "s", same.Header.Get("X-Api-Key"))
	require.Error(t, r.checkRedirect(request("http://one.example/"), []*http.Request{request("https://one.example/")}))
}

// FuzzURL: whatever a user writes as an address, nothing panics, and only https on
// its usual port to a host that is not private passes the rules.
func FuzzURL(f *testing.F) {
	for _, trick := range tricks {
		f.Add(trick.url)
	}
	f.Add("https://example.com/")
	f.Add("https://[fe80::1%25lo]:443/")
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		fault := rules{}.checkRequest(&http.Request{URL: u})
		if fault == nil {
			require.Equal(t, "https", u.Scheme)
			require.Contains(t, []string{"", "443"}, strings.TrimLeft(u.Port(), "0"))
			require.Nil(t, u.User)
		}
		_ = Authority(u)
	})
}
