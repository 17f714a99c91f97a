//go:build unix

package localdb

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakePostgres makes a folder with programs that only tell a version.
func fakePostgres(t *testing.T, version string) string {
	t.Helper()
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		require.NoError(t, writeFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func places(dirs ...string) func() []string { return func() []string { return dirs } }

func TestNothingInstalledIsExplained(t *testing.T) {
	t.Parallel()
	empty := newDir(t)
	for name, c := range map[string]struct {
		places []string
		says   string
	}{
		"nothing":   {[]string{empty, "/nonexistent"}, "no Postgres was found: "},
		"too old":   {[]string{fakePostgres(t, "12.3")}, "only Postgres 12 was found ("},
		"no answer": {[]string{fakePostgres(t, "devel")}, "no Postgres was found: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			problem := refusal(t, Options{Dir: dir, places: places(c.places...), cache: empty})
			require.Contains(t, problem, c.says)
			for _, way := range []string{"apt-get install postgresql", "brew install postgresql", "--download-postgres", "DATABASE_URL"} {
				require.Contains(t, problem, way)
			}
			require.NoFileExists(t, filepath.Join(dir, passwordsName))
		})
	}
}

func TestChoiceOfBinaries(t *testing.T) {
	t.Parallel()
	old, newer, newest := fakePostgres(t, "14.9"), fakePostgres(t, "16.4 (Debian 16.4-1)"), fakePostgres(t, "17beta1")
	broken := fakePostgres(t, "16.1")
	require.NoError(t, os.Remove(filepath.Join(broken, "initdb")))
	for name, c := range map[string]struct {
		places []string
		want   int
		dir    string
		says   string
	}{
		"first usable":         {[]string{broken, old, newest, newer}, 0, newest, ""},
		"the data's major":     {[]string{newest, newer}, 16, newer, ""},
		"data of no other":     {[]string{newest, newer}, 18, "", "was made by Postgres 18, but only Postgres 17 was found"},
		"data older than ours": {[]string{old, newer}, 14, "", "was made by Postgres 14, but only Postgres 16 was found"},
		"nothing for the data": {[]string{broken}, 16, "", "install Postgres 16 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pick := chooser{
				opts:    Options{places: places(c.places...), cache: t.TempDir()},
				account: accountFor(""), data: "/data",
			}
			got, err := pick.choose(t.Context(), c.want)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.dir, got.dir)
		})
	}
}

func TestNamedFolderIsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	pick := chooser{account: accountFor(""), data: "/data"}
	good := fakePostgres(t, "16.4")
	got, err := pick.named(t.Context(), good, 0)
	require.NoError(t, err)
	require.Equal(t, binaries{dir: good, major: 16}, got)

	for says, c := range map[string]struct {
		dir  string
		want int
	}{
		"name the folder that holds initdb and postgres": {"/nonexistent", 0},
		"which is too old":         {fakePostgres(t, "9.6.24"), 0},
		"was made by Postgres 15,": {good, 15},
	} {
		_, err := pick.named(t.Context(), c.dir, c.want)
		require.ErrorContains(t, err, says)
	}
}

func TestNewestFirstSortsByNumber(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"9.6", "15", "8.4", "17"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "pg-"+version, "bin"), 0o755))
	}
	var got []string
	for _, dir := range newestFirst(filepath.Join(root, "pg-*", "bin")) {
		got = append(got, filepath.Base(filepath.Dir(dir)))
	}
	require.Equal(t, []string{"pg-17", "pg-15", "pg-9.6", "pg-8.4"}, got)
}

func TestInstalledPlacesFindThisMachinesPostgres(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, look(t.Context(), installedPlaces(), accountFor("")).usable)
}
