package web

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// serve puts a route's handler behind everything that a request passes first. This is
// the order: a request id; the log line and the page of an error, whatever happens
// inside; headers; the host; limits of time and size; where a change comes from; how
// often; who it is; and whether she may.
func (s *Server) serve(r route) echo.HandlerFunc {
	checks := []func(*visit) error{
		(*visit).setHeaders,
		(*visit).checkHost,
		(*visit).boundBody,
		(*visit).checkOrigin,
		(*visit).checkPace,
		(*visit).loadSession,
		(*visit).admit,
	}
	return func(c echo.Context) error {
		v := &visit{Context: c, s: s, route: r, ref: newReference()}
		began := s.clock()
		cancel := v.boundTime(began)
		defer cancel()
		err := v.recovered(func() error {
			for _, check := range checks {
				if err := check(v); err != nil {
					return err
				}
			}
			return r.handle(v)
		})
		if err != nil {
			v.fail(err)
		}
		v.log(began, err)
		return nil
	}
}

// newReference is ten characters that people can read out.
func newReference() string {
	var random [7]byte
	_, _ = rand.Read(random[:]) // never fails: the program ends if there is no randomness
	return strings.ToLower(base32.StdEncoding.EncodeToString(random[:])[:10])
}

// recovered turns a panic into an error with its stack, so that one broken page does
// not take the others down.
func (v *visit) recovered(fn func() error) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if thrown == http.ErrAbortHandler {
				panic(thrown)
			}
			err = fmt.Errorf("panic: %v\n%s", thrown, debug.Stack())
		}
	}()
	return fn()
}

// log writes the one line about the visit. It has the route's pattern in place of the
// address, which may hold a token.
func (v *visit) log(began time.Time, err error) {
	attrs := []any{
		"ref", v.ref, "method", v.Request().Method, "route", v.route.Name, "pattern", v.route.Path,
		"status", v.Response().Status, "bytes", v.Response().Size, "took_ms", v.s.clock().Sub(began).Milliseconds(),
	}
	if !v.user.IsZero() {
		attrs = append(attrs, "user", v.user)
	}
	if !v.me.Tenant.ID.IsZero() {
		attrs = append(attrs, "tenant", v.me.Tenant.ID)
	}
	if err != nil && problemOf(err).logged {
		v.s.Log.ErrorContext(v.ctx(), "request failed", append(attrs, "error", err)...)
		return
	}
	v.s.Log.InfoContext(v.ctx(), "request", attrs...)
}

// contentPolicy allows our own scripts, styles and images, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// setHeaders tells the browser what the page may do, and that it is for this person
// only. Where the address is the secret no address goes out at all; elsewhere a browser
// that does not send Sec-Fetch-Site needs its Origin, which no-referrer would take away.
func (v *visit) setHeaders() error {
	h := v.Response().Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Request-Id", v.ref)
	if v.route.bearer() {
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Robots-Tag", "noindex, nofollow")
	}
	if v.s.Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	return nil
}

// checkHost keeps another site's name that was pointed at this computer from being
// taken for ours. In production the proxy in front decides about names.
func (v *visit) checkHost() error {
	if v.s.Local == nil {
		return nil
	}
	host := v.Request().Host
	if host == v.s.host || slices.Contains(v.s.Local.Hosts, host) || isLoopback(host) {
		return nil
	}
	return errHost
}

// isLoopback tells whether a host, with or without a port, names this computer.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// isLocal tells whether the browser runs on this computer, in local mode.
func (v *visit) isLocal() bool {
	return v.s.Local != nil && isLoopback(v.Request().RemoteAddr)
}

// boundBody refuses a body that says it is too large before reading it, and stops
// reading one that does not say.
func (v *visit) boundBody() error {
	r := v.Request()
	v.whole = r.Body
	if r.ContentLength > v.route.maxBody {
		v.Response().Header().Set("Connection", "close")
		return &http.MaxBytesError{Limit: v.route.maxBody}
	}
	r.Body = http.MaxBytesReader(v.Response(), r.Body, v.route.maxBody)
	return nil
}

// How much of a body that was refused is still taken, and for how long.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// drain takes what a browser still sends after it was told that its body is too large,
// and throws it away. Browsers read the answer only after they have sent everything; a
// connection that is closed before shows them an error of their own and not our page.
func (v *visit) drain() {
	connection := http.NewResponseController(v.Response())
	_ = connection.Flush()
	_ = connection.SetReadDeadline(v.s.clock().Add(drainTime))
	_, _ = io.CopyN(io.Discard, v.whole, drainBytes)
}

// boundTime gives the visit its time. The deadlines of the connection are what stops a
// browser that sends or takes a byte a minute; a test's recorder has none.
func (v *visit) boundTime(began time.Time) context.CancelFunc {
	connection := http.NewResponseController(v.Response())
	if v.route.stream {
		_ = connection.SetReadDeadline(time.Time{})
		_ = connection.SetWriteDeadline(time.Time{})
		return func() {}
	}
	_ = connection.SetReadDeadline(began.Add(v.route.patience))
	_ = connection.SetWriteDeadline(began.Add(2 * v.route.patience))
	ctx, cancel := context.WithTimeout(v.ctx(), v.route.patience)
	v.SetRequest(v.Request().WithContext(ctx))
	return cancel
}

// reads tells whether the request may change nothing.
func (v *visit) reads() bool {
	method := v.Request().Method
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// checkOrigin lets a change pass only from our own pages: the browser says so itself,
// or names our origin. One that says neither is refused, since every browser of the
// last years says it and a form of another site must not slip through.
func (v *visit) checkOrigin() error {
	if v.reads() {
		return nil
	}
	r := v.Request()
	if v.route.machine && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return nil // a program, which says neither; browsers do
	}
	if v.route.bearer() && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null" {
		// By plain http, and to older browsers, a page without a referrer has no origin
		// either. The forms of links carry a key of their own instead.
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && !v.isOwnOrigin(r.Header.Get("Origin")) {
		return errForeign
	}
	if v.s.origins.Check(r) != nil {
		return errForeign
	}
	return nil
}

// isOwnOrigin compares whole origins, scheme and port included. In local mode the
// computer has several names.
func (v *visit) isOwnOrigin(origin string) bool {
	return origin == v.s.origin || v.s.Local != nil && origin == "http://"+v.Request().Host
}
