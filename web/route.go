package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"tollgate/tenants"
)

// handler answers one visit. What it returns as an error becomes a page by the table
// in problem.go.
type handler func(*visit) error

// route is one line of the map.
type route struct {
	Method string
	Path   string // as Echo writes it; the access log has this and never the address itself
	Name   string // noun and verb, for the log and the tests
	Who    access

	handle   handler
	maxBody  int64         // most bytes that the body of a request may have
	patience time.Duration // for reading the request and for answering it
	stream   bool          // the answer goes on until the browser leaves
	machine  bool          // programs send it, which have no page that they come from
}

// access is who may use a route.
type access struct {
	signedIn bool
	action   tenants.Action // what a member of the route's workspace must be allowed
	local    bool           // in local mode, from this computer
	operator bool           // runs the installation
}

// The kinds of access.
var (
	anybody       = access{}
	signedIn      = access{signedIn: true}
	onlyLocal     = access{local: true}
	onlyOperators = access{signedIn: true, operator: true}
)

// may is access for members of the workspace in the address whose role allows an
// action.
func may(action tenants.Action) access { return access{signedIn: true, action: action} }

// Limits of ordinary requests and of those that carry a file. A file may have 10 MB;
// the rest is room for the other fields, so that a file that is a little too large
// still gets the answer that names its field.
const (
	formBytes      = 1 << 20
	uploadBytes    = 11 << 20
	formPatience   = 30 * time.Second
	uploadPatience = 5 * time.Minute
)

func get(path, name string, who access, handle handler) route {
	return route{Method: http.MethodGet, Path: path, Name: name, Who: who, handle: handle, maxBody: formBytes, patience: formPatience}
}

func post(path, name string, who access, handle handler) route {
	r := get(path, name, who, handle)
	r.Method = http.MethodPost
	return r
}

// uploads makes room for a file in the form.
func (r route) uploads() route {
	r.maxBody, r.patience = uploadBytes, uploadPatience
	return r
}

// machines lets programs send so many bytes. They come from no page and say so by saying
// nothing about one.
func (r route) machines(most int64) route {
	r.machine, r.maxBody = true, most
	return r
}

// streams lets the answer take as long as the browser stays.
func (r route) streams() route {
	r.stream = true
	return r
}

// takesLong gives the answer the time that an upload has.
func (r route) takesLong() route {
	r.patience = uploadPatience
	return r
}

// inWorkspace tells whether the route belongs to one workspace.
func (r route) inWorkspace() bool { return strings.HasPrefix(r.Path, workspacePath) }

// bearer tells whether the address itself lets its holder in.
func (r route) bearer() bool {
	return strings.HasPrefix(r.Path, linkPath) || r.Path == callbackPath || r.Path == sharedPath
}

// mount gives the map to the router. HEAD is GET without a body.
func (s *Server) mount() {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		// No route fits; the answer passes the same guards as any other.
		lost := get("", "none", anybody, func(*visit) error { return err })
		_ = s.serve(lost)(c)
	}
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1 << 10, Skipper: alreadyPacked}))
	for _, r := range s.table {
		e.Add(r.Method, r.Path, s.serve(r))
		if r.Method == http.MethodGet && !r.stream {
			e.Add(http.MethodHead, r.Path, s.serve(r))
		}
	}
	s.echo = e
}

// alreadyPacked leaves out what packs itself, and streams, which must not be held
// back.
func alreadyPacked(c echo.Context) bool {
	return strings.HasPrefix(c.Path(), "/static/") || strings.HasSuffix(c.Path(), "/live")
}
