//go:build unix

package localdb

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestRestartKeepsDataAndLogins(t *testing.T) {
	t.Parallel()
	dir := seededDir(t) // started once already
	first := start(t, Options{Dir: dir})
	require.Equal(t, []string{"1"}, query(t, first.URL(), `select n from kept`))
	query(t, first.URL(), `create table words as select lower('STRASSE Ä') as word`)
	require.NoError(t, first.Stop(t.Context()))
	require.NoFileExists(t, first.home.pidFile(), "a clean shutdown leaves no pid file")

	second := start(t, Options{Dir: dir})
	require.Equal(t, []string{"strasse ä"}, query(t, second.URL(), `select word from words`))
	require.Equal(t, first.passwords, second.passwords)
}

// TestServerIsClosedToOthers checks what keeps other users of the machine out.
func TestServerIsClosedToOthers(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: seededDir(t)})
	require.Equal(t, []string{"127.0.0.1", "", "on", "on", "UTF8"}, query(t, s.SuperURL(),
		`select current_setting('listen_addresses'), current_setting('unix_socket_directories'),
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('server_encoding')`))
	require.Equal(t, []string{"scram-sha-256"}, query(t, s.SuperURL(),
		`select string_agg(distinct auth_method, ',') from pg_hba_file_rules`))
	require.Equal(t, []string{"0"}, query(t, s.SuperURL(),
		`select count(*) from pg_authid where rolcanlogin and rolpassword not like 'SCRAM-SHA-256$%'`))

	for _, role := range []string{superuser, ownerRole} {
		_, err := pgx.Connect(t.Context(), address(s.port, role, "guess", "postgres"))
		require.ErrorContains(t, err, "password authentication failed")
	}
	for path, mode := range map[string]os.FileMode{s.home.passwords(): 0o600, s.home.log(): 0o600, s.home.data(): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}

	group, err := syscall.Getpgid(postmasterOf(t, s.home.dir))
	require.NoError(t, err)
	require.NotEqual(t, syscall.Getpgrp(), group, "a terminal's signals do not reach it")
}

// TestRolesAreRepaired starts on data whose owner role was tampered with.
func TestRolesAreRepaired(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	first := start(t, Options{Dir: dir})
	query(t, first.SuperURL(), `alter role tollgate superuser nologin password 'other'`)
	require.NoError(t, first.Stop(t.Context()))

	second := start(t, Options{Dir: dir})
	require.Equal(t, []string{"f"}, query(t, second.URL(), `select rolsuper from pg_roles where rolname = current_user`))
}

func TestFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	owner := start(t, Options{Dir: seededDir(t)})
	before := postmasterOf(t, owner.home.dir)

	problem := refusal(t, Options{Dir: owner.home.dir})

	require.Contains(t, problem, fmt.Sprintf("in use by another tollgate (process %d)", os.Getpid()))
	require.Contains(t, problem, "--data")
	require.Equal(t, before, postmasterOf(t, owner.home.dir))
	query(t, owner.URL(), `select 1`)
}

func TestBusyPortIsPassedOver(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	tries := 0
	s := start(t, Options{Dir: seededDir(t), pickPort: func() (int, error) {
		if tries++; tries == 1 {
			return busy, nil
		}
		return freePort()
	}})
	require.Equal(t, 2, tries)
	require.NotEqual(t, busy, s.port)
	require.NoError(t, s.Stop(t.Context()))

	problem := refusal(t, Options{Dir: s.home.dir, pickPort: func() (int, error) { return busy, nil }})
	require.Contains(t, problem, "no free port")
}

// TestPoolsReconnectAfterThePostmasterIsKilled also leaves a busy session behind,
// which outlives its server and must be gone before the next one starts.
func TestPoolsReconnectAfterThePostmasterIsKilled(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: seededDir(t)})
	orphan := keepBusy(t, s.SuperURL())
	killed := postmasterOf(t, s.home.dir)
	require.NoError(t, syscall.Kill(killed, syscall.SIGKILL))

	eventually(t, "the server is back on its port", func() bool {
		conn, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			return false
		}
		defer conn.Close(context.Background())
		return queryOn(t, conn, `select n from kept`)[0] == "1"
	})
	require.NotEqual(t, killed, postmasterOf(t, s.home.dir))
	require.False(t, lives(orphan), "the busy session of the dead server is gone")
}

// keepBusy runs a query in a session of its own that goes on when its server dies,
// and returns the session's process: it waits for a program, not for the server's
// signals as pg_sleep would. The program lives in the data folder too.
func keepBusy(t *testing.T, url string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	pid := int(conn.PgConn().PID())
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_, _ = conn.Exec(ctx, `copy (select 1) to program 'sleep 300'`)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = conn.Close(context.Background())
	})
	eventually(t, "the query runs", func() bool {
		return query(t, url, fmt.Sprintf(`select count(*) from pg_stat_activity where pid = %d and state = 'active'`, pid))[0] == "1"
	})
	return pid
}

func TestLostOrDamagedPasswordsAreTold(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	s := start(t, Options{Dir: dir})
	require.NoError(t, s.Stop(t.Context()))
	before := fingerprint(t, s.home.data())

	require.NoError(t, os.WriteFile(s.home.passwords(), []byte(`{"super":`), 0o600))
	require.Contains(t, refusal(t, Options{Dir: dir}), "is damaged")
	require.NoError(t, os.WriteFile(s.home.passwords(), []byte(strings.Repeat(" ", 1<<20)), 0o600))
	require.Contains(t, refusal(t, Options{Dir: dir}), "longer than expected")
	require.NoError(t, os.Remove(s.home.passwords()))
	require.Contains(t, refusal(t, Options{Dir: dir}), "is missing")

	require.NoFileExists(t, s.home.passwords(), "no new passwords that do not fit the data")
	require.Equal(t, before, fingerprint(t, s.home.data()))
}

func TestPasswordsAreRandom(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		path := filepath.Join(t.TempDir(), passwordsName)
		p, err := loadPasswords(path, false)
		require.NoError(t, err)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var stored passwords
		require.NoError(t, json.Unmarshal(raw, &stored))
		require.Equal(t, p, stored)
		seen[p.Super], seen[p.Owner] = true, true
		require.Len(t, p.Super, 48)
	}
	require.Len(t, seen, 4)
}

func TestAddressQuotesItsParts(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(address(5433, "a@b", "p:/?#", "d"))
	require.NoError(t, err)
	password, _ := u.User.Password()
	require.Equal(t, []string{"a@b", "p:/?#", "127.0.0.1:5433", "/d"}, []string{u.User.Username(), password, u.Host, u.Path})
}
