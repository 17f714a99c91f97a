package ui_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/web/ui"
)

// TestIconsAndSpriteMatch: every icon has a symbol, and the sprite carries no
// symbol that nothing can use.
func TestIconsAndSpriteMatch(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "icon.go", nil, 0)
	require.NoError(t, err)
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Icon" {
			name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			named[name] = true
		}
		return true
	})
	sprite, err := os.ReadFile("../../static/icons.svg")
	require.NoError(t, err)
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`<symbol id="([a-z-]+)" viewBox="0 0 24 24">`).FindAllStringSubmatch(string(sprite), -1) {
		require.False(t, drawn[m[1]], "symbol %q stands twice", m[1])
		drawn[m[1]] = true
	}
	require.NotEmpty(t, named)
	require.Equal(t, named, drawn)
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ai", "review", "branch", "repeat", "each", "parallel", "wait", "event", "http", "email", "set", "pipeline", "emit", "stop"} {
		require.NotEqual(t, kind, ui.KindOf(kind).Words, kind)
	}
	require.Equal(t, ui.Kind{Icon: ui.IconQueued, Words: "dance"}, ui.KindOf("dance"))
}
