package static_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/static"
)

var names = []string{"app.css", "app.js", "favicon.svg", "icons.svg", "vendor/htmx.min.js", "vendor/hx-sse.min.js"}

func ask(t *testing.T, method, path string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	static.Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestEveryAssetIsServedForEver(t *testing.T) {
	t.Parallel()
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, name := range names {
		url := static.URL(name)
		require.Regexp(t, regexp.MustCompile(`^/static/[a-z/.-]+\.[0-9a-f]{12}\.(css|js|svg)$`), url)
		plain := ask(t, http.MethodGet, url, nil)
		require.Equal(t, http.StatusOK, plain.StatusCode, name)
		require.Equal(t, media[filepath.Ext(name)], plain.Header.Get("Content-Type"))
		require.Equal(t, "public, max-age=31536000, immutable", plain.Header.Get("Cache-Control"))
		require.Equal(t, "Accept-Encoding", plain.Header.Get("Vary"))
		require.Equal(t, "nosniff", plain.Header.Get("X-Content-Type-Options"))
		body, err := io.ReadAll(plain.Body)
		require.NoError(t, err)
		require.NotEmpty(t, body)
		sum := sha256.Sum256(body)
		require.Contains(t, url, hex.EncodeToString(sum[:6]), "the address names the content")

		packed := ask(t, http.MethodGet, url, map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
		require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
		require.NotEqual(t, plain.Header.Get("ETag"), packed.Header.Get("ETag"))
		unpacker, err := gzip.NewReader(packed.Body)
		require.NoError(t, err)
		unpacked, err := io.ReadAll(unpacker)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, unpacked), "%s: packed and plain differ", name)
	}
}

func TestConditionalAndHead(t *testing.T) {
	t.Parallel()
	url := static.URL("app.css")
	tag := ask(t, http.MethodGet, url, nil).Header.Get("ETag")
	cases := []struct {
		name, method string
		header       map[string]string
		status       int
		body         bool
	}{
		{"same tag", http.MethodGet, map[string]string{"If-None-Match": tag}, http.StatusNotModified, false},
		{"one of several tags", http.MethodGet, map[string]string{"If-None-Match": `"x", W/` + tag}, http.StatusNotModified, false},
		{"any tag", http.MethodGet, map[string]string{"If-None-Match": "*"}, http.StatusNotModified, false},
		{"other tag", http.MethodGet, map[string]string{"If-None-Match": `"x"`}, http.StatusOK, true},
		{"tag of the other encoding", http.MethodGet, map[string]string{"If-None-Match": tag, "Accept-Encoding": "gzip"}, http.StatusOK, true},
		{"gzip refused", http.MethodGet, map[string]string{"Accept-Encoding": "gzip;q=0"}, http.StatusOK, true},
		{"head", http.MethodHead, nil, http.StatusOK, false},
		{"post", http.MethodPost, nil, http.StatusMethodNotAllowed, true},
		{"delete", http.MethodDelete, nil, http.StatusMethodNotAllowed, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := ask(t, c.method, url, c.header)
			require.Equal(t, c.status, answer.StatusCode)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, len(body) > 0)
			if c.name == "gzip refused" {
				require.Empty(t, answer.Header.Get("Content-Encoding"))
			}
		})
	}
}

func TestNothingElseIsServed(t *testing.T) {
	t.Parallel()
	paths := []string{
		"/static/", "/static", "/", "/static/app.css", "/static/vendor/", "/static/vendor/htmx.LICENSE",
		"/static/css/00-tokens.css", "/static/static.go", "/static/../static.go", "/static/app.000000000000.css",
		"/static/%2e%2e/go.mod", strings.TrimPrefix(static.URL("app.css"), "/static"), static.URL("app.css") + "/", "/favicon.ico",
	}
	for _, p := range paths {
		require.Equal(t, http.StatusNotFound, ask(t, http.MethodGet, p, nil).StatusCode, p)
	}
	require.Panics(t, func() { static.URL("nothing.css") })
}

// TestVendorIsUntouched pins what others wrote to what they published.
func TestVendorIsUntouched(t *testing.T) {
	t.Parallel()
	sums := map[string]string{
		"vendor/htmx.min.js":         "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130", // htmx.org 4.0.1, dist/htmx.min.js
		"vendor/hx-sse.min.js":       "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103", // htmx.org 4.0.1, dist/ext/hx-sse.min.js
		"vendor/htmx.LICENSE":        "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38", // htmx.org 4.0.1
		"vendor/lucide.LICENSE":      "b495047bd93a9b06913511076f504daba17d5bbeb3e0650f3bb53a4220329c57", // lucide-static 1.62.0
		"../web/testdata/axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c", // axe-core 4.14.1
	}
	for name, want := range sums {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
	entries, err := os.ReadDir("vendor")
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, sums, "vendor/"+e.Name(), "a file under vendor/ without a checksum")
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"app.css": 20 << 10, "app.js": 5 << 10, "icons.svg": 6 << 10}
	for name, limit := range limits {
		require.LessOrEqual(t, static.PackedSize(name), limit, name)
	}
	script := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".js") {
			script += static.PackedSize(name)
		}
	}
	require.LessOrEqual(t, script, 30<<10, "all scripts together")
}

// TestStylesheetStandsAlone: no import, no address, no font of its own, and
// every rule in a layer, so that the order of files cannot decide by accident.
func TestStylesheetStandsAlone(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("css/*.css")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		sheet := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(data), "")
		require.NotRegexp(t, `@import|url\(|@font-face`, sheet, name)
		outside, depth := "", 0
		for _, r := range sheet {
			switch r {
			case '{':
				depth++
			case '}':
				depth--
			default:
				if depth == 0 {
					outside += string(r)
				}
			}
		}
		require.Zero(t, depth, "%s: braces do not match", name)
		for rule := range strings.SplitSeq(strings.TrimSpace(outside), "\n") {
			require.Regexp(t, `^\s*(@layer .*)?$`, rule, name)
		}
	}
}
