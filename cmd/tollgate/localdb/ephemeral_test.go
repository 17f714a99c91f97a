//go:build unix

package localdb

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestEphemeralServerServesBothLoginsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Ephemeral: true})

	require.Equal(t, []string{"tollgate", "f", "t", "t"}, query(t, s.URL(),
		`select current_user, rolsuper, rolcreaterole, rolcanlogin from pg_roles where rolname = current_user`))
	require.Equal(t, []string{"tollgate", "tollgate"}, query(t, s.URL(),
		`select current_database(), pg_get_userbyid(datdba) from pg_database where datname = current_database()`))
	require.Equal(t, []string{"postgres", "off", "200"}, query(t, s.SuperURL(),
		`select current_user, current_setting('fsync'), current_setting('max_connections')`))

	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "a second Stop is harmless")
	require.NoDirExists(t, s.home.dir)
	_, err := pgx.Connect(t.Context(), s.URL())
	require.ErrorContains(t, err, "refused")
}

// TestEphemeralServerEndsWithItsProcess kills a process that never calls Stop, as
// test processes do not when they panic or run out of time.
func TestEphemeralServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	h := startHelper(t, "", os.Geteuid())
	require.Empty(t, h.Problem)
	server := postmasterOf(t, h.Dir)
	require.NoError(t, h.process.Kill())
	<-h.exited
	eventually(t, "server and folder are gone", func() bool {
		_, err := os.Stat(h.Dir)
		return os.IsNotExist(err) && !lives(server)
	})
}

func TestSweepRemovesOnlyAbandonedFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := func(name string, age time.Duration) string {
		dir := filepath.Join(root, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		when := time.Now().Add(-age)
		require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), nil, 0o600))
		require.NoError(t, os.Chtimes(dir, when, when))
		return dir
	}
	abandoned := folder(ephemeralPrefix+"abandoned", time.Hour)
	fresh := folder(ephemeralPrefix+"fresh", 0)
	strange := folder("something-else", time.Hour)
	owned := folder(ephemeralPrefix+"owned", time.Hour)
	lock, err := lockFile(filepath.Join(owned, lockName), owned)
	require.NoError(t, err)
	defer lock.Close()

	sweepEphemeral(root)

	require.NoDirExists(t, abandoned)
	for _, dir := range []string{fresh, strange, owned} {
		require.DirExists(t, dir)
	}
}
