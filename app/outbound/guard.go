package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// refusal is returned by the dialer for an address that is not public.
type refusal struct{}

func (*refusal) Error() string { return "address not allowed" }

// transport is the HTTP machinery behind the guard.
func transport(r rules, resolver *net.Resolver) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // a proxy would dial for us, past the guard
		DialContext:            dialer(r, resolver),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true, // off by default once DialContext is set
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// dialer connects, and judges the number it is about to connect to. The list of
// allowed hosts is keyed by the name as written in the URL: a public name that
// points at an allowed host's number is still refused.
func dialer(r rules, resolver *net.Resolver) func(context.Context, string, string) (net.Conn, error) {
	guarded := &net.Dialer{Timeout: 10 * time.Second, Resolver: resolver, Control: control}
	trusted := &net.Dialer{Timeout: 10 * time.Second, Resolver: resolver}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err == nil && r.allow[hostPort(host, port)] {
			return trusted.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
}

// control runs on the resolved address, after the socket was made and before it
// connects: once for each address that is tried.
func control(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !Public(target.Addr()) {
		return &refusal{}
	}
	return nil
}

// guard checks each hop's URL, explains failures and bounds the body.
type guard struct {
	rules   rules
	maxBody int64
	timeout time.Duration
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It is called once per hop.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if fault := g.rules.checkRequest(req); fault != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close it, also when it fails
		}
		return nil, fault
	}
	host := req.URL.Hostname()
	// The limit lives here and not in http.Client, which would replace our error.
	ctx, cancel := context.WithTimeout(req.Context(), g.timeout)
	ctx, wire := TraceSent(ctx)
	req = req.Clone(ctx) // a RoundTripper leaves the caller's request as it was
	SendOnce(req.Header)
	res, err := g.next.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, explain(host, err, wire.Sent())
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		_ = res.Body.Close() // it is the bare line, which no limit of time ends
		res.Body = http.NoBody
	}
	if res.ContentLength > g.maxBody {
		_ = res.Body.Close()
		cancel()
		return nil, tooLarge(host)
	}
	res.Body = &boundedBody{ReadCloser: res.Body, host: host, left: g.maxBody, cancel: cancel}
	return res, nil
}

// SendOnce hides idempotency keys from net/http, which would take one as leave to
// repeat the request by itself when a kept connection dies. It looks for the usual
// spelling only; on the wire the spelling of a header makes no difference.
func SendOnce(header http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := header[name]; ok {
			delete(header, name)
			header[strings.ToLower(name)] = values
		}
	}
}

// explain turns the machinery's error into one for people.
func explain(host string, err error, sent bool) *Error {
	fault := dialFault(host, err)
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate) || errors.As(err, &unknownCA):
		fault = &Error{Kind: KindInsecure, cause: err,
			Message: "The certificate of " + host + " is not in order, so nothing was sent."}
	case sent:
		fault = exchangeFault(host, err)
	}
	fault.Sent = sent
	return fault
}

// Wire tells how far a request got.
type Wire struct{ sent atomic.Bool }

// Sent is true when the request's head was written, so that the other side may
// have received it.
func (w *Wire) Sent() bool { return w.sent.Load() }

// TraceSent returns a context that watches the requests made with it.
func TraceSent(ctx context.Context) (context.Context, *Wire) {
	wire := &Wire{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { wire.sent.Store(true) },
	}), wire
}

// boundedBody stops reading at the limit and explains a broken line.
type boundedBody struct {
	io.ReadCloser
	host   string
	left   int64
	cancel context.CancelFunc // ends the time limit of the hop
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more than allowed tells "full" from "too much"
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		return int(b.left), tooLarge(b.host)
	}
	b.left -= int64(n)
	if !endOfBody(err) {
		fault := exchangeFault(b.host, err)
		fault.Sent = true
		return n, fault
	}
	return n, err
}

func tooLarge(host string) *Error {
	return &Error{Kind: KindTooLarge, Sent: true, Message: "The answer of " + host + " is larger than allowed."}
}
