package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// roomImports is the map of the house: what each room may import of ours. The README
// prints the same table.
var roomImports = map[string][]string{
	"app/apptest/fakellm":  {},
	"app/engine":           {"app/expr", "app/pipeline", "app/review", "billing/ledger", "tenants"},
	"app/expr":             {},
	"app/llm":              {"app/llm/fields", "app/outbound"},
	"app/llm/fields":       {},
	"app/mail":             {"tenants"},
	"app/notice":           {"app/mail", "app/pipeline", "tenants"},
	"app/outbound":         {},
	"app/pipeline":         {"app/expr", "tenants"},
	"app/review":           {"tenants"},
	"app/trigger":          {"app/engine", "app/pipeline", "tenants"},
	"billing/ledger":       {"tenants"},
	"cmd/tollgate":         {"*"},
	"cmd/tollgate/localdb": {},
	"jobs":                 {"app/engine", "app/expr", "app/llm", "app/mail", "app/notice", "app/outbound", "app/pipeline", "app/review", "billing/ledger", "migrations", "tenants"},
	"migrations":           {},
	"static":               {},
	"tenants":              {},
	"web":                  {"app/engine", "app/expr", "app/mail", "app/notice", "app/pipeline", "app/review", "app/trigger", "billing/ledger", "static", "tenants", "web/ui"},
	"web/ui":               {"static"},
}

// testRooms may be imported by tests only.
var testRooms = []string{"app/apptest/fakeerp", "app/apptest/fault", "jobs/bench", "migrations/dbtest", "web/browsertest", "web/ui/gallery"}

// goPackage is what go list tells about one package.
type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestRoomsKeepTheirBorders(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, "tollgate/")
		if slices.Contains(testRooms, room) {
			continue
		}
		allowed, known := roomImports[room]
		require.True(t, known, "%s is a room that the map does not show", room)
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, "tollgate/")
			if !ours {
				continue
			}
			require.NotContains(t, testRooms, imported, "%s imports %s outside a test", room, imported)
			if !slices.Contains(allowed, "*") {
				require.Contains(t, allowed, imported, "%s must not import %s", room, imported)
			}
		}
	}
}

// Some rooms stay free of whole kinds of packages, so that they can do no harm there.
func TestRoomsStayFreeOfWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	forbidden := map[string][]string{
		"app/expr":     {"net/http", "github.com/jackc/pgx/v5", "os"},
		"app/llm":      {"github.com/jackc/pgx/v5"},
		"app/engine":   {"net/http"},
		"app/pipeline": {"net/http"},
		"jobs":         {"github.com/labstack/echo/v4"},
		"web":          {"github.com/jackc/pgx/v5", "github.com/riverqueue/river"},
		"web/ui":       {"net/http", "github.com/jackc/pgx/v5"},
	}
	for _, p := range packages(t) {
		for _, path := range forbidden[strings.TrimPrefix(p.ImportPath, "tollgate/")] {
			require.NotContains(t, p.Imports, path, "%s", p.ImportPath)
		}
	}
}

func TestMapNamesOnlyRoomsThatExist(t *testing.T) {
	t.Parallel()
	var rooms []string
	for _, p := range packages(t) {
		rooms = append(rooms, strings.TrimPrefix(p.ImportPath, "tollgate/"))
	}
	for room := range roomImports {
		require.Contains(t, rooms, room)
	}
	for _, room := range testRooms {
		require.Contains(t, rooms, room)
	}
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "tollgate/...").Output()
	require.NoError(t, err)
	var all []goPackage
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}
