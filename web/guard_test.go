package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// Every form of every page refuses what other sites send.
func TestChangesComeFromOurOwnPagesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ours := things(s, s.home)
	cases := []struct {
		name    string
		site    string // Sec-Fetch-Site
		origin  string
		refused bool
	}{
		{"our page", "same-origin", "", false},
		{"our page with its origin", "same-origin", siteURL, false},
		{"an address typed by hand", "none", "", false},
		{"an older browser on our page", "", siteURL, false},
		{"another site", "cross-site", "", true},
		{"another site with its origin", "cross-site", "https://evil.example", true},
		{"another host of our domain", "same-site", "https://evil.tollgate.test", true},
		{"an older browser on another site", "", "https://evil.example", true},
		{"our name by another scheme", "", "https://tollgate.test", true},
		{"our name on another port", "", siteURL + ":81", true},
		{"an origin that hides", "", "null", true},
		{"nothing at all", "", "", true},
	}
	for _, r := range s.web.table {
		if r.Method == http.MethodGet {
			continue
		}
		path := address(t, r, ours)
		for _, c := range cases {
			if r.bearer() && c.origin == "null" {
				continue // the forms of links carry a key instead, see TestDecidingByPlainHTTP
			}
			if r.machine && c.site == "" && c.origin == "" {
				continue // programs come from no page
			}
			b := s.in(tenants.Viewer)
			request := b.request(http.MethodPost, path, strings.NewReader(""))
			request.Header.Del("Sec-Fetch-Site")
			for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
				if value != "" {
					request.Header.Set(name, value)
				}
			}
			p := b.do(request)
			wasRefused := p.status == http.StatusForbidden && strings.Contains(p.text(), "We did not do this")
			require.Equal(t, c.refused, wasRefused, "%s: %s: %d", r.Name, c.name, p.status)
		}
	}
}

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.BaseURL, c.Secure = "https://tollgate.test", true })
	ours := things(s, s.home)
	owner, paths := s.in(tenants.Owner), []string{"/nothing", "/r/" + ours["token"]}
	for _, r := range s.web.table {
		if !r.stream && !strings.HasPrefix(r.Path, "/static") {
			paths = append(paths, address(t, r, ours))
		}
	}
	for _, path := range paths {
		h := owner.get(path).header
		require.True(t, strings.HasPrefix(h.Get("Content-Security-Policy"), contentPolicy), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.Equal(t, "DENY", h.Get("X-Frame-Options"), path)
		require.Equal(t, "max-age=31536000; includeSubDomains", h.Get("Strict-Transport-Security"), path)
		require.Contains(t, h.Get("Cache-Control"), "no-store", path)
		require.NotEmpty(t, h.Get("X-Request-Id"), path)
		require.Empty(t, h.Get("Server"), path)
		require.Contains(t, []string{"same-origin", "no-referrer"}, h.Get("Referrer-Policy"), path)
	}
	require.NotContains(t, contentPolicy, "unsafe")
	asset := owner.get("/static/nothing.css").is(http.StatusNotFound)
	require.NotContains(t, asset.header.Get("Cache-Control"), "immutable", "only what is there may be kept")
	plain := newSite(t).visitor().get("/signin")
	require.Empty(t, plain.header.Get("Strict-Transport-Security"))
}

// No page has a script or a style of its own, which the policy would block.
func TestPagesHaveNothingInline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ours := things(s, s.home)
	for _, r := range s.web.table {
		if r.Method != http.MethodGet || r.stream {
			continue
		}
		p := s.in(tenants.Owner).get(address(t, r, ours))
		for _, script := range p.all("script", "", "") {
			require.NotEmpty(t, attr(script, "src"), "%s: a script of its own", r.Path)
		}
		require.Empty(t, p.all("style", "", ""), r.Path)
		for _, node := range p.all("", "", "") {
			for _, a := range node.Attr {
				require.NotEqual(t, "style", a.Key, "%s: <%s style>", r.Path, node.Data)
				require.False(t, strings.HasPrefix(a.Key, "on"), "%s: <%s %s>", r.Path, node.Data, a.Key)
				require.False(t, (a.Key == "src" || a.Key == "href") && strings.HasPrefix(a.Val, "javascript:"), r.Path)
			}
		}
	}
}

// HEAD is GET without the page, and neither changes anything.
func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Owner)
	p := b.do(b.request(http.MethodHead, s.at(), nil))
	p.is(http.StatusOK)
	require.Equal(t, contentPolicy, p.header.Get("Content-Security-Policy"))
	b.do(b.request(http.MethodHead, s.at("nothing"), nil)).is(http.StatusNotFound)
	b.do(b.request(http.MethodDelete, s.at(), nil)).is(http.StatusMethodNotAllowed)
}

func TestLocalModeAnswersUnderItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode, func(c *Config) { c.Local.Hosts = []string{"box.internal:8080"} })
	for host, right := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, "localhost": true, "[::1]:8080": true, "127.1.2.3": true, "box.internal:8080": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8080": false,
		"10.0.0.1": false, "": false, "box.internal": false, "0.0.0.0:8080": false,
	} {
		b := s.visitor()
		r := b.request(http.MethodGet, "/signin", nil)
		r.Host = host
		p := b.do(r)
		require.Equal(t, right, p.status == http.StatusOK, "%q: %d", host, p.status)
		if !right {
			p.is(http.StatusForbidden).hides("as-owner")
		}
	}
}

// The doors of local mode are not there for anybody else.
func TestLocalDoorsAreForThisComputerOnly(t *testing.T) {
	t.Parallel()
	local, hosted := newSite(t, inLocalMode, breaksAll), newSite(t)
	local.seedDemo()
	hosted.seedDemo()
	ours := things(local, local.workspace("Other house"))
	for _, r := range local.web.table {
		if !r.Who.local {
			continue
		}
		path := address(t, r, ours)
		send(hosted.visitor(), r, path).is(http.StatusNotFound)
		b := local.visitor()
		request := b.request(r.Method, path, nil)
		request.RemoteAddr = "192.168.1.20:4000"
		b.do(request).is(http.StatusNotFound)
	}
	hosted.visitor().get("/signin").hides("Continue", "as-owner", "mailbox")
	b := local.visitor()
	request := b.request(http.MethodGet, "/signin", nil)
	request.RemoteAddr = "192.168.1.20:4000"
	b.do(request).is(http.StatusOK).hides("as-owner", "mailbox")
}

func TestBodiesHaveALimit(t *testing.T) {
	t.Parallel()
	read := func(v *visit) error {
		if err := v.Request().ParseForm(); err != nil {
			return err
		}
		return v.String(http.StatusOK, v.FormValue("text")[:3])
	}
	s := siteWith(t, post("/small", "test.small", anybody, read), post("/large", "test.large", anybody, read).uploads())
	cases := []struct {
		path   string
		size   int
		status int
		words  string
	}{
		{"/small", 900 << 10, 200, "aaa"},
		{"/small", 1<<20 + 1, 413, "up to 1 MB"},
		{"/large", 1<<20 + 1, 200, "aaa"},
		{"/large", 99 << 17, 413, "A file can have up to 10 MB"},
	}
	for _, c := range cases {
		for _, told := range []bool{true, false} {
			b := s.visitor()
			r := b.request(http.MethodPost, c.path, strings.NewReader("text="+strings.Repeat("a", c.size-5)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if r.ContentLength = -1; told {
				r.ContentLength = int64(c.size)
			}
			// Go's own parser of forms stops at 10 MB; what is larger is a file.
			b.do(r).is(c.status).says(c.words)
		}
	}
}

// Whoever announces too much is answered before sending it; a browser reads that only
// after it has sent everything, and still finds it.
func TestATooLargeUploadIsAnswered(t *testing.T) {
	t.Parallel()
	read := func(v *visit) error { return v.Request().ParseForm() }
	s := siteWith(t, post("/upload", "test.upload", anybody, read).uploads())
	server := httptest.NewServer(s.web.Handler())
	t.Cleanup(server.Close)
	for _, size := range []int64{uploadBytes + 1, 40 << 20} {
		for _, sent := range []int64{0, 1000, size} {
			connection, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = connection.Close() })
			_, err = fmt.Fprintf(connection, "POST /upload HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n"+
				"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", size)
			require.NoError(t, err)
			_, err = io.Copy(connection, io.LimitReader(zeros{}, sent))
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
			for page, part := "", make([]byte, 4<<10); !strings.Contains(page, "A file can have up to 10 MB"); {
				n, err := answer.Body.Read(part)
				require.NoError(t, err, page)
				page += string(part[:n])
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBrokenFormsAreBadRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for media, body := range map[string]string{
		"application/x-www-form-urlencoded": "email=%zz&x=%",
		"multipart/form-data; boundary=x":   "--x\r\nbroken",
		"multipart/form-data":               "no boundary",
		"text/plain":                        "email=a@example.com",
		"":                                  "\x00\xff",
	} {
		b := s.visitor()
		r := b.request(http.MethodPost, "/signin", strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		p := b.do(r)
		require.Contains(t, []int{400, 422}, p.status, "%s: %s", media, p.text())
	}
}

// Neither cookies nor tokens nor what people type get into the log.
func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ours := things(s, s.home)
	b := s.in(tenants.Owner)
	secrets := []string{ours["token"], b.cookies["tollgate"].Value, "typed-secret@example.com", "query-secret", url.QueryEscape("next=/w")}
	b.get("/r/" + ours["token"])
	b.get("/r/" + ours["token"] + "/nothing?query-secret")
	b.get(s.at() + "?q=query-secret")
	b.get("/signin?next=/w/query-secret")
	b.post("/signin", "email", "typed-secret@example.com")
	b.post("/signin/code", "code", "typed-secret@example.com")
	b.post("/r/"+ours["token"], "comment", "query-secret")
	secrets = append(secrets, b.cookies["tollgate"].Value)
	log := s.log.String()
	require.Contains(t, log, `"route":"signin.ask_code"`)
	for _, secret := range secrets {
		require.NotContains(t, log, secret)
	}
	require.Contains(t, log, s.home.people[tenants.Owner].User.ID.String(), "who did it is in the log")
}

// A browser that left gets no answer, and nobody is called because of it.
func TestABrowserThatLeftIsNoFault(t *testing.T) {
	t.Parallel()
	s := siteWith(t, get("/waits", "test.waits", anybody, func(v *visit) error { <-v.ctx().Done(); return v.ctx().Err() }))
	b := s.visitor()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	b.do(b.request(http.MethodGet, "/waits", nil).WithContext(ctx)).is(http.StatusRequestTimeout)
	require.NotContains(t, s.log.String(), "ERROR")
}

func TestASlowAnswerEnds(t *testing.T) {
	t.Parallel()
	stuck := get("/stuck", "test.stuck", anybody, func(v *visit) error {
		<-v.ctx().Done()
		return v.ctx().Err()
	})
	stuck.patience = 20 * time.Millisecond
	s := siteWith(t, stuck)
	p := s.visitor().get("/stuck").is(http.StatusServiceUnavailable).says("This took too long")
	require.NotEmpty(t, p.header.Get("Retry-After"))
}

func TestHtmxGetsThePartWithoutItsFrame(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Owner)
	whole := b.get("/workspaces").is(200)
	require.Contains(t, whole.header.Values("Vary"), "HX-Request")
	ask := func(extra string) *page {
		r := b.request(http.MethodGet, "/workspaces", nil)
		r.Header.Set("HX-Request", "true")
		if extra != "" {
			r.Header.Set(extra, "true")
		}
		return b.do(r).is(200)
	}
	part := ask("")
	require.NotContains(t, part.body, "<html")
	require.Contains(t, whole.body, part.body, "the part is the same markup")
	for _, standIn := range []string{"HX-Boosted", "HX-History-Restore-Request"} {
		require.Contains(t, ask(standIn).body, "<html")
	}
}

func TestPagesArePacked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Owner)
	r := b.request(http.MethodGet, s.at(), nil)
	r.Header.Set("Accept-Encoding", "gzip")
	p := b.do(r).is(200)
	require.Equal(t, "gzip", p.header.Get("Content-Encoding"))
	require.True(t, bytes.HasPrefix([]byte(p.body), []byte{0x1f, 0x8b}))
	require.Less(t, len(p.body), 20<<10)
}
