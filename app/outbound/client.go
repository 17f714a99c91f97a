package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMaxBody = 32 << 20
)

// Config sets up a Client. The zero value is the strictest useful one.
type Config struct {
	// Allow names hosts with ports that may be called although they are private,
	// or over plain HTTP, or on an odd port: "127.0.0.1:8080", "models.internal:443".
	// Set by the operator only, never by a tenant.
	Allow []string
	// PlainHTTP permits http:// on port 80 for public hosts.
	PlainHTTP bool
	// Redirects is how many redirects of a GET or HEAD are followed; 0 follows none.
	Redirects int
	// MaxBody bounds an answer's body in bytes, after decompression; 0 means
	// DefaultMaxBody.
	MaxBody int64
	// Timeout bounds each hop of a call, the reading of the body included; 0 means
	// DefaultTimeout. The context's deadline counts too, over all hops.
	Timeout time.Duration
}

// Client calls addresses that users chose. It is safe for concurrent use.
type Client struct {
	http *http.Client
}

// New makes a client. The error names the entry of Allow that is not host:port.
func New(cfg Config) (*Client, error) {
	return build(cfg, net.DefaultResolver)
}

func build(cfg Config, resolver *net.Resolver) (*Client, error) {
	allow, err := parseAllow(cfg.Allow)
	if err != nil {
		return nil, err
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	rules := rules{allow: allow, plainHTTP: cfg.PlainHTTP, redirects: cfg.Redirects}
	return &Client{http: &http.Client{
		Transport: &guard{rules: rules, maxBody: cfg.MaxBody, timeout: cfg.Timeout,
			next: transport(rules, resolver)},
		CheckRedirect: rules.checkRedirect,
	}}, nil
}

// parseAllow reads the operator's list into canonical host:port keys.
func parseAllow(entries []string) (map[string]bool, error) {
	allow := map[string]bool{}
	for _, entry := range entries {
		host, port, err := net.SplitHostPort(entry)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("outbound: allowed host %q must be written host:port", entry)
		}
		allow[hostPort(host, port)] = true
	}
	return allow, nil
}

// hostPort is the key of a host in lists: lower case, without the root dot.
func hostPort(host, port string) string {
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), port)
}

// Do sends a request. The error is always an *Error; the body must be closed.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	res, err := c.http.Do(req)
	if err == nil {
		return res, nil
	}
	return nil, plain(req, err)
}

// HTTP returns the guarded client for libraries that want one. Its errors come
// wrapped in *url.Error, whose text holds the URL; find the *Error by errors.As.
func (c *Client) HTTP() *http.Client { return c.http }

// plain strips what net/http wraps around: the URL may hold a secret in its query.
func plain(req *http.Request, err error) *Error {
	var fault *Error
	if errors.As(err, &fault) {
		return fault
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return stoppedFault(err)
	case isTimeout(err):
		return timeoutFault(req.URL.Hostname(), err)
	}
	return &Error{Kind: KindBadAddress, Message: "The address cannot be called.", cause: err}
}
