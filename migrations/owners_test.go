package migrations_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/migrations"
	"tollgate/migrations/dbtest"
)

func TestEveryTableHasAnOwner(t *testing.T) {
	t.Parallel()
	rows, _ := dbtest.Open(t).Super(t).Query(t.Context(), `
		SELECT relname FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY relname`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, tables, slices.Collect(maps.Keys(migrations.Owners)), "Owners must list the database's tables")
}

// testOnly are folders whose code is in no program: they may make rows of any kind.
var testOnly = []string{"migrations/dbtest", "app/apptest"}

func TestOnlyTheOwnerWritesATable(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	files := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		place, _ := filepath.Rel(root, path)
		place = filepath.ToSlash(place)
		if entry.IsDir() && (slices.Contains(testOnly, place) || strings.HasPrefix(entry.Name(), ".") && place != "." || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(place, ".go") || strings.HasSuffix(place, "_test.go") {
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, trespass := range trespasses(set, file, filepath.ToSlash(filepath.Dir(place))) {
			t.Error(trespass)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 20, "the walk must meet the module's code")
}

func TestTrespassesAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		room, statement string
		want            string
	}{
		"insert":             {"web", "`INSERT INTO runs (id) VALUES ($1)`", "runs"},
		"lower case":         {"web", "`insert  into\n\tpublic.runs (id) VALUES ($1)`", "runs"},
		"update only":        {"app/review", "`UPDATE ONLY runs SET state = 'x'`", "runs"},
		"update with a name": {"app/review", `"UPDATE runs AS r SET state = 'x'"`, "runs"},
		"delete":             {"app/engine", "`WITH gone AS (DELETE FROM seats RETURNING 1) SELECT 1`", "seats"},
		"in pieces":          {"jobs", "`INSERT INTO ` + \"members\" + ` (tenant_id)`", "members"},
		"truncate":           {"jobs", "`TRUNCATE TABLE members`", "members"},
		"merge":              {"jobs", "`MERGE INTO members m USING x ON true`", "members"},
		"copy":               {"jobs", "pgx.Identifier{\"members\"}", "members"},
		"ledger's function":  {"app/engine", "`SELECT ledger_release($1)`", "ledger_release"},
		"any table":          {"jobs", "`INSERT INTO ` + name + ` (id) VALUES ($1)`", "?"},
		"formatted table":    {"jobs", "fmt.Sprintf(`DELETE FROM %s`, name)", "%"},
		"inside a call":      {"jobs", "`a` + f(`UPDATE members SET role = 'owner'`)", "members"},
		"unknown table":      {"tenants", "`INSERT INTO gadgets (id) VALUES ($1)`", "gadgets"},
		"River's table":      {"jobs", "`UPDATE river.river_job SET state = 'x'`", "river_job"},
		"own table":          {"app/engine", "`INSERT INTO runs (id) VALUES ($1)`", ""},
		"inside its room":    {"app/engine/clean", "`INSERT INTO runs (id) VALUES ($1)`", ""},
		"a lock":             {"tenants", "`SELECT 1 FROM users FOR UPDATE OF users`", ""},
		"a skipping lock":    {"web", "`SELECT 1 FROM runs FOR NO KEY UPDATE SKIP LOCKED`", ""},
		"on conflict":        {"tenants", "`INSERT INTO users (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET name = 'x'`", ""},
		"a read":             {"web", "`SELECT 1 FROM runs`", ""},
		"a sentence":         {"web", "`We could not update your settings.`", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, "x.go", "package x\n\nvar x = "+test.statement, 0)
			require.NoError(t, err)
			found := trespasses(set, file, test.room)
			if test.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0], strconv.Quote(test.want))
		})
	}
}

var (
	change     = regexp.MustCompile(`(?i)\b(insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?)\s+(?:only\s+)?(?:public\.|river\.)?"?([a-z_]+|[?%])`)
	lock       = regexp.MustCompile(`(?i)\b(for|key|do)\s+update\b`)
	ledgerCall = regexp.MustCompile(`\bledger_[a-z]+\b`)
	statement  = regexp.MustCompile(`\b(INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE|UPDATE\s+\S+(\s+\S+)?\s+SET)\b`)
)

// trespasses lists the changes of other rooms' tables in a file's strings.
func trespasses(set *token.FileSet, file *ast.File, room string) []string {
	var found []string
	report := func(node ast.Node, table, why string) {
		found = append(found, fmt.Sprintf("%s: %s changes %q, %s", set.Position(node.Pos()), room, table, why))
	}
	judge := func(node ast.Node, table string, certain bool) {
		owner, known := migrations.Owners[table]
		switch {
		case strings.HasPrefix(table, "river_"):
			report(node, table, "which is changed through River's own functions only")
		case !known && certain:
			report(node, table, "which migrations.Owners does not list")
		case known && room != owner && !strings.HasPrefix(room, owner+"/"):
			report(node, table, "which "+owner+" owns: call that room instead")
		}
	}
	read := map[ast.Node]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if selector, ok := node.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Identifier" && len(node.Elts) > 0 {
				judge(node, textOf(node.Elts[len(node.Elts)-1]), false)
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			if read[node] {
				return true
			}
			text := textOf(node.(ast.Expr))
			markRead(node, read)
			for _, match := range change.FindAllStringSubmatch(lock.ReplaceAllString(text, ""), -1) {
				judge(node, strings.ToLower(match[2]), statement.MatchString(text))
			}
			if call := ledgerCall.FindString(text); call != "" && room != "billing/ledger" {
				report(node, call, "which billing/ledger owns: call that room instead")
			}
		case *ast.ImportSpec:
			return false
		}
		return true
	})
	return found
}

// markRead marks the pieces of a string expression, so that each is judged once and
// together with its neighbours.
func markRead(node ast.Node, read map[ast.Node]bool) {
	read[node] = true
	switch node := node.(type) {
	case *ast.BinaryExpr:
		markRead(node.X, read)
		markRead(node.Y, read)
	case *ast.ParenExpr:
		markRead(node.X, read)
	}
}

// textOf joins the pieces of a string expression; what is no literal becomes "?".
func textOf(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(expr.Value); err == nil && expr.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(expr.X) + textOf(expr.Y)
	case *ast.ParenExpr:
		return textOf(expr.X)
	}
	return "?"
}
