package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/static"
	"tollgate/tenants"
)

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for base, secure := range map[string]bool{
		"": false, "tollgate.example.com": false, "ftp://tollgate.example.com": false, "https://": false, "https://t.example/path": false,
		"http://t.example": true, "https://t.example/\x00": false, "https://user@": false,
	} {
		config := s.web.Config
		config.BaseURL, config.Secure = base, secure
		_, err := New(config)
		require.ErrorContains(t, err, "base URL", "%q", base)
	}
	config := s.web.Config
	config.Outbox = nil
	_, err := New(config)
	require.ErrorContains(t, err, "outbox")
	config = s.web.Config
	config.BaseURL = "https://tollgate.example.com/"
	_, err = New(config)
	require.NoError(t, err)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	outdated, failing := false, error(nil)
	s := newSite(t, func(c *Config) {
		c.Outdated = func(context.Context) (bool, error) { return outdated, failing }
	})
	b := s.visitor()
	b.get("/healthz").is(200)
	b.get("/readyz").is(200).says("ready")
	outdated = true
	b.get("/readyz").is(503).says("waits for migrations")
	outdated, failing = false, errors.New(insides)
	b.get("/readyz").is(503).hides("password")
	failing = nil
	s.db.Close()
	b.get("/healthz").is(200)
	b.get("/readyz").is(503).says("database does not answer")
}

// Without its database the product says so, in words, and not that it is its fault.
func TestPagesWithoutADatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, visitor := s.in(tenants.Owner), s.visitor()
	s.db.Close()
	for _, p := range []*page{b.get(s.at()), b.get("/signin"), visitor.post("/signin", "email", "a@example.com")} {
		require.GreaterOrEqual(t, p.status, 500)
		p.hides("pool", "closed", "goroutine")
	}
	visitor.get("/signin").is(200)
}

func TestAssets(t *testing.T) {
	t.Parallel()
	b := newSite(t).visitor()
	p := b.get(static.URL("app.css")).is(200)
	require.Contains(t, p.header.Get("Cache-Control"), "immutable")
	require.True(t, strings.HasPrefix(p.header.Get("Content-Type"), "text/css"))
	require.Empty(t, p.header.Values("Set-Cookie"))
	b.do(b.request(http.MethodHead, static.URL("app.css"), nil)).is(200)
}
