package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

// rooms are the packages whose errors can reach a page. app/llm and app/outbound are
// not: pages never call them.
var rooms = []string{
	"../app/engine", "../app/expr", "../app/mail", "../app/pipeline", "../app/review", "../app/trigger", "../billing/ledger", "../tenants",
}

// elsewhere are typed errors that their pages show in place, beside the field or step
// they are about, or that never leave their room. Each has a reason.
var elsewhere = map[string]string{
	"ledger.ErrBadCorrection": "tells whoever books a provider's late figures that they cannot be; no page does",
	"expr.Problem":            "is found when a pipeline is checked, and listed there",
	"mail.SendError":          "tells the worker of a mail how its sending went",
	"review.Settled":          "is ErrAlreadyDecided or ErrNotOpen for the table; review pages show its details",
}

// A new error of a room must get its words before it can surprise anybody.
func TestEveryErrorOfTheRoomsHasWords(t *testing.T) {
	t.Parallel()
	known := mentioned(t, "problem.go")
	for _, room := range rooms {
		name := filepath.Base(room)
		for _, exported := range exportedErrors(t, room) {
			full := name + "." + exported
			if elsewhere[full] != "" {
				continue
			}
			require.True(t, known[full], "problem.go says nothing about %s", full)
		}
	}
}

// mentioned lists the names of other packages that a file of ours uses.
func mentioned(t *testing.T, file string) map[string]bool {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	found := map[string]bool{}
	ast.Inspect(tree, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if left, ok := selector.X.(*ast.Ident); ok {
				found[left.Name+"."+selector.Sel.Name] = true
			}
		}
		return true
	})
	return found
}

// exportedErrors lists the sentinels (Err…) and the types with an Error method of a
// package.
func exportedErrors(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if node.Recv != nil && node.Name.Name == "Error" {
					found = append(found, receiver(node))
				}
				return false
			case *ast.ValueSpec:
				for _, name := range node.Names {
					if strings.HasPrefix(name.Name, "Err") {
						found = append(found, name.Name)
					}
				}
			}
			return true
		})
	}
	return exportedOnly(found)
}

func receiver(method *ast.FuncDecl) string {
	kind := method.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	return kind.(*ast.Ident).Name
}

func exportedOnly(names []string) []string {
	var out []string
	for _, name := range names {
		if ast.IsExported(name) {
			out = append(out, name)
		}
	}
	return out
}

func TestEveryProblemIsWholeAndPlain(t *testing.T) {
	t.Parallel()
	all := []problem{lost, broken, away, overtaken}
	for _, known := range problems {
		all = append(all, known.problem)
	}
	for _, p := range all {
		require.GreaterOrEqual(t, p.status, 400)
		require.NotEmpty(t, http.StatusText(p.status))
		require.NotEmpty(t, p.heading)
		require.Equal(t, p.status >= 500, p.logged, "%s: what is our fault is looked into", p.heading)
		for sentence := range strings.SplitSeq(strings.TrimSuffix(p.sentence, "."), ". ") {
			require.LessOrEqual(t, len(strings.Fields(sentence)), 25, sentence)
		}
	}
}

func TestErrorsBecomeTheRightStatus(t *testing.T) {
	t.Parallel()
	cases := map[int][]error{
		400: {echo.ErrBadRequest},
		401: {errSignedOut},
		403: {&tenants.Forbidden{Action: tenants.SetCaps, Role: tenants.Viewer}, errForeign},
		404: {tenants.ErrNotMember, echo.ErrNotFound, errNotFound},
		405: {echo.ErrMethodNotAllowed},
		409: {&review.Settled{Own: true}, &review.Settled{Outcome: review.OutcomeTimeout}, &pgconn.PgError{Code: "TG001"}},
		413: {&http.MaxBytesError{Limit: uploadBytes}},
		422: {&tenants.Invalid{Field: "name", Message: "Please give a name."}},
		429: {&tenants.TooManyTries{Wait: time.Minute}, &tooOften{wait: time.Second}},
		500: {errors.New("never seen"), &pgconn.PgError{Code: "42P01"}, &pgconn.PgError{}},
		503: {context.DeadlineExceeded, &pgconn.PgError{Code: "57P01"}, &pgconn.PgError{Code: "53300"}},
	}
	for status, list := range cases {
		for _, err := range list {
			require.Equal(t, status, problemOf(fmt.Errorf("do something: %w", err)).status, "%v", err)
		}
	}
	require.Contains(t, problemOf(&http.MaxBytesError{Limit: uploadBytes}).sentence, "10 MB")
	require.Contains(t, problemOf(&tenants.TooManyTries{Wait: 12 * time.Minute}).sentence, "12 min")
}

// siteWith adds routes of a test's own to a site.
func siteWith(t *testing.T, own ...route) *site {
	t.Helper()
	s := newSite(t)
	s.web.table = append(s.web.table, own...)
	s.web.mount()
	return s
}

const insides = `password authentication failed for "tollgate" at /srv/db.go:12`

func TestInsidesOfErrorsNeverReachAPage(t *testing.T) {
	t.Parallel()
	fails := func(*visit) error { return errors.New(insides) }
	panics := func(*visit) error { panic(insides) }
	s := siteWith(t, get("/fails", "test.fails", anybody, fails), post("/fails", "test.fails.post", anybody, fails),
		get("/panics", "test.panics", anybody, panics), get("/w/:tenant/fails", "test.fails.inside", may(tenants.Read), fails))
	for _, path := range []string{"/fails", "/panics", s.at("fails")} {
		p := s.in(tenants.Viewer).get(path).is(http.StatusInternalServerError).hides("password", "db.go", "goroutine")
		ref := p.header.Get("X-Request-Id")
		p.says("it is our fault", ref)
		require.Contains(t, s.log.String(), ref, "the reference finds the log line")
	}
	require.Contains(t, s.log.String(), "password", "the log has what happened")
	s.visitor().post("/fails").is(500).says("What you did was not saved.")
	cut := siteWith(t, post("/cut", "test.cut", anybody, func(*visit) error { return io.ErrUnexpectedEOF }))
	cut.visitor().post("/cut").is(503).says("It may or may not be saved").hides("EOF")
}

func TestAFailureAfterTheCommitSaysThatItIsSaved(t *testing.T) {
	t.Parallel()
	s := siteWith(t, post("/w/:tenant/late", "test.late", may(tenants.Read), func(v *visit) error {
		if err := v.inTx(func(context.Context, tenants.Tx) error { return nil }); err != nil {
			return err
		}
		return errors.New(insides)
	}))
	s.in(tenants.Viewer).post(s.at("late")).is(500).says("What you did was saved")
}

func TestRefusalsNameWhoCanHelp(t *testing.T) {
	t.Parallel()
	s := siteWith(t, get("/w/:tenant/money", "test.money", may(tenants.SetCaps), func(v *visit) error { return v.NoContent(204) }))
	s.in(tenants.Viewer).get(s.at("money")).is(http.StatusForbidden).
		says("Only an owner, an admin or a finance member can change spend caps.", "Ask Admin")
	s.in(tenants.Finance).get(s.at("money")).is(http.StatusNoContent)
}

// What is not in the map gets a whole page too, with the way back.
func TestUnknownAddressesAndMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/nothing", "/w/", "/static/", "/%00", "/r"} {
		p := s.visitor().get(path).is(http.StatusNotFound)
		if p.doc != nil {
			p.says("There is nothing at this address")
			require.Equal(t, "/", attr(p.byTestID("home"), "href"))
		}
	}
	owner := s.in(tenants.Owner)
	require.Equal(t, s.at(), attr(owner.get(s.at("nothing", "at", "all")).is(http.StatusNotFound).byTestID("home"), "href"), "inside a workspace it stays around")
	owner.get("/w/" + tenants.NewID[int]().String() + "/nothing").is(http.StatusNotFound)
	p := s.visitor().post("/healthz").is(http.StatusMethodNotAllowed)
	require.Contains(t, p.header.Get("Allow"), "GET")
}

// A page that cannot be drawn is a whole error page, never half a page.
func TestNothingIsSentBeforeThePageIsDrawn(t *testing.T) {
	t.Parallel()
	s := siteWith(t, get("/half", "test.half", anybody, func(v *visit) error {
		return v.render(http.StatusOK, brokenHalfway{})
	}))
	s.visitor().get("/half").is(500).hides("first half").says("it is our fault")
}

type brokenHalfway struct{}

func (brokenHalfway) Render(_ context.Context, w io.Writer) error {
	_, _ = w.Write(bytes.Repeat([]byte("first half"), 10_000))
	return errors.New(insides)
}
