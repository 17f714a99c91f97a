//go:build unix

package localdb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherMajorIsRefusedAndUntouched is the trap that costs people their data.
func TestOtherMajorIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	for _, major := range []string{"9", "14", "99"} {
		t.Run(major, func(t *testing.T) {
			t.Parallel()
			h := foreignData(t, map[string]string{"PG_VERSION": major + "\n", "base/1/1259": "precious"})
			before := fingerprint(t, h.data())

			problem := refusal(t, Options{Dir: h.dir, Download: true})

			require.Contains(t, problem, "was made by Postgres "+major)
			require.Contains(t, problem, "--data")
			require.Equal(t, before, fingerprint(t, h.data()))
		})
	}
}

func TestFilesThatAreNoDatabaseAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no version":    {map[string]string{"base/1/1259": "half"}, "not a Postgres database"},
		"other files":   {map[string]string{"letter.txt": "Dear Ann"}, "not a Postgres database"},
		"empty version": {map[string]string{"PG_VERSION": ""}, "does not say which Postgres"},
		"words":         {map[string]string{"PG_VERSION": "fifteen"}, "does not say which Postgres"},
		"negative":      {map[string]string{"PG_VERSION": "-15"}, "does not say which Postgres"},
		"huge":          {map[string]string{"PG_VERSION": strings.Repeat("1", 1<<16)}, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := foreignData(t, c.files)
			before := fingerprint(t, h.data())
			require.Contains(t, refusal(t, Options{Dir: h.dir}), c.says)
			require.Equal(t, before, fingerprint(t, h.data()))
		})
	}
}

// foreignData lays files where the data would be.
func foreignData(t *testing.T, files map[string]string) home {
	t.Helper()
	h := home{dir: newDir(t), account: accountFor("")}
	for name, content := range files {
		path := filepath.Join(h.data(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	require.NoError(t, os.Chmod(h.dir, 0o711))
	require.NoError(t, h.account.take(h.data()))
	return h
}

func TestUnsuitableFoldersAreExplained(t *testing.T) {
	t.Parallel()
	file := filepath.Join(filepath.Dir(newDir(t)), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Contains(t, refusal(t, Options{Dir: file}), "is a file, not a folder")
	require.Contains(t, refusal(t, Options{Dir: filepath.Join(file, "below")}), "(not a directory)")

	raw := newDir(t)
	require.NoError(t, os.MkdirAll(raw, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(raw, "PG_VERSION"), []byte("15"), 0o600))
	require.Contains(t, refusal(t, Options{Dir: raw}), "is itself a Postgres data folder")
}

func TestUnreadableFolderIsExplained(t *testing.T) {
	t.Parallel()
	uid := os.Geteuid()
	if uid == 0 {
		uid = normalUser
	}
	for name, closed := range map[string]func(dir string) string{
		"folder": func(dir string) string { return dir },
		"parent": func(dir string) string { return filepath.Join(dir, "below", "data") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := userDir(t, uid)
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chown(dir, uid, uid))
			require.NoError(t, os.Chmod(dir, 0))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })

			h := startHelper(t, closed(dir), uid)

			require.Contains(t, h.Problem, "cannot be used (permission denied)")
			require.Contains(t, h.Problem, "--data")
			require.NotContains(t, h.Problem, "\n")
		})
	}
}

// TestDataOfAnotherUserIsExplained has a normal user point at root's data.
func TestDataOfAnotherUserIsExplained(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make the data of another user")
	}
	dir := userDir(t, normalUser)
	data := filepath.Join(dir, dataName)
	require.NoError(t, os.MkdirAll(data, 0o755))
	require.NoError(t, os.Chown(dir, normalUser, normalUser))
	require.NoError(t, os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("15\n"), 0o644))

	require.Contains(t, startHelper(t, dir, normalUser).Problem, "belongs to another user")
	require.Contains(t, refusal(t, Options{Dir: dir}), "belongs to another user")
}

// TestRootIsToldWherePostgresCannotGo covers folders below root's closed home.
func TestRootIsToldWherePostgresCannotGo(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a normal user's Postgres goes wherever the user goes")
	}
	closed := filepath.Join(filepath.Dir(newDir(t)), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	problem := refusal(t, Options{Dir: filepath.Join(closed, "data")})
	require.Contains(t, problem, "may not enter "+closed+":")
	require.Contains(t, problem, "--data")
	require.NoDirExists(t, filepath.Join(closed, "data"), "nothing is made where nothing can work")
}
