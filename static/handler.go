package static

import (
	"net/http"
	"strconv"
	"strings"
)

// Handler serves the assets at the addresses [URL] gives, to GET and HEAD.
// Every other path is 404: there are no listings and no addresses without a
// digest. Answers may be kept for ever, since the address changes with the
// content.
func Handler() http.Handler {
	return http.HandlerFunc(serve)
}

func serve(w http.ResponseWriter, r *http.Request) {
	a, ok := assets.byURL[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	body, etag := a.plain, a.etag
	h := w.Header()
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		// Two encodings are two representations, so their tags differ.
		body, etag = a.packed, strings.TrimSuffix(a.etag, `"`)+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", a.media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", etag)
	if sameTag(r.Header.Get("If-None-Match"), etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	// A failed write means the browser went away; there is nobody to tell.
	_, _ = w.Write(body)
}

// takesGzip reads an Accept-Encoding header: gzip or * listed, and not with
// a weight of zero.
func takesGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "*" {
			continue
		}
		weight, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !found || (err == nil && q > 0)
	}
	return false
}

func sameTag(header, etag string) bool {
	for item := range strings.SplitSeq(header, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == "*" || item == etag {
			return true
		}
	}
	return false
}
