//go:build unix

package localdb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// picky makes an initdb that refuses some locales and otherwise runs then.
func picky(t *testing.T, refused, then string) binaries {
	t.Helper()
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	script := "#!/bin/sh\ncase \"$*\" in " + refused + ") echo 'initdb: error: invalid locale name' >&2; exit 1;; esac\n" + then + "\n"
	require.NoError(t, writeFile(filepath.Join(dir, "initdb"), []byte(script), 0o755))
	return binaries{dir: dir}
}

func TestInitdbFallsBackToALocaleTheSystemHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refused, ctype, says string }{
		"all known":      {"never", "C.UTF-8", ""},
		"macOS":          {"*=C.UTF-8", "UTF-8", ""},
		"plain C only":   {"*UTF-8", "C", ""},
		"none at all":    {"*", "", "initdb: error: invalid locale name"},
		"other troubles": {"never", "C.UTF-8", "initdb: error: no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			h := home{dir: dir, account: accountFor("")}
			then := `for last in "$@"; do :; done; echo "$last" >> ` + filepath.Join(filepath.Dir(dir), "asked")
			if c.says != "" {
				then += `; echo hello; echo "` + c.says + `" >&2; echo hint >&2; exit 1`
			}
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777))

			err := h.runInitdb(t.Context(), picky(t, c.refused, then), dir, "secret", true)

			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), "\n")
			}
			if c.ctype != "" {
				asked, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "asked"))
				require.NoError(t, err)
				require.Equal(t, "--lc-ctype="+c.ctype+"\n", string(asked), "asked once with what works")
			}
		})
	}
}
