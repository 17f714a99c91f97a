//go:build unix

package localdb

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// normalUser is a user without rights, as which root tries what users do.
const normalUser = nobodyID

// userDir is a data folder in a place that the user owns.
func userDir(t *testing.T, uid int) string {
	t.Helper()
	dir := newDir(t)
	require.NoError(t, os.Chown(filepath.Dir(dir), uid, uid))
	return dir
}

// users are those that the test can be: always the present one, and a normal one
// where root runs the tests.
func users() map[string]int {
	if os.Geteuid() != 0 {
		return map[string]int{"user": os.Geteuid()}
	}
	return map[string]int{"root": 0, "user": normalUser}
}

// TestKillOfTheOwner kills the owning process, with a session busy, and starts
// again at once, while its Postgres may still be running or shutting down.
func TestKillOfTheOwner(t *testing.T) {
	t.Parallel()
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := userDir(t, uid)
			if uid == 0 {
				dir = seededDir(t)
			}
			first := startHelper(t, dir, uid)
			require.Empty(t, first.Problem)
			query(t, first.URL, `create table if not exists kept as select 1 as n`)
			server := postmasterOf(t, dir)
			orphan := keepBusy(t, first.Super)
			require.NoError(t, first.process.Kill())
			<-first.exited

			began := time.Now()
			second := startHelper(t, dir, uid)
			require.Empty(t, second.Problem)
			require.Less(t, time.Since(began), 15*time.Second)
			require.Equal(t, []string{"1"}, query(t, second.URL, `select n from kept`))
			require.False(t, lives(server), "the old server is gone")
			require.False(t, lives(orphan), "its sessions are gone")
		})
	}
}

// TestKillOfEverything kills the owner and the server in one moment: what is left
// is a pid file, a busy session and, where nobody reaps, a zombie.
func TestKillOfEverything(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	orphan := leaveOrphan(t, dir)

	s := start(t, Options{Dir: dir})
	require.Equal(t, []string{"1"}, query(t, s.URL(), `select n from kept`))
	require.False(t, lives(orphan))
}

// leaveOrphan starts the database, kills its owner and its server, and returns the
// process of a session that goes on.
func leaveOrphan(t *testing.T, dir string) int {
	t.Helper()
	first := startHelper(t, dir, os.Geteuid())
	require.Empty(t, first.Problem)
	orphan := keepBusy(t, first.Super)
	server := postmasterOf(t, dir)
	require.NoError(t, syscall.Kill(first.process.Pid, syscall.SIGSTOP), "the owner must not start it again")
	require.NoError(t, syscall.Kill(server, syscall.SIGKILL))
	require.NoError(t, first.process.Kill())
	<-first.exited
	require.True(t, lives(orphan), "a session outlives its server: the test would prove nothing otherwise")
	return orphan
}

// TestServerLeftRunning covers systems where Postgres outlives us: the next start
// stops it cleanly and takes its place.
func TestServerLeftRunning(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	s := start(t, Options{Dir: dir})
	require.NoError(t, s.Stop(t.Context()))

	left, err := s.home.launch(t.Context(), s.binaries, s.port, s.settings)
	require.NoError(t, err)
	again := start(t, Options{Dir: dir})
	require.True(t, left.hasExited())
	require.NoError(t, left.err, "a fast shutdown ends without an error")
	require.Equal(t, []string{"1"}, query(t, again.URL(), `select n from kept`))
}

// TestStalePIDFile leaves a pid file that names, in turn, a living stranger and a
// zombie of the user that Postgres runs as. Postgres alone would refuse both.
func TestStalePIDFile(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	s := start(t, Options{Dir: dir})
	valid, err := os.ReadFile(s.home.pidFile())
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))

	for name, makeProcess := range map[string]func() *os.Process{
		"stranger": func() *os.Process { return startAs(t, s.home.account, "sleep", "60") },
		"zombie": func() *os.Process {
			p := startAs(t, s.home.account, "true")
			eventually(t, "it has ended", func() bool { return !lives(p.Pid) })
			return p
		},
	} {
		p := makeProcess()
		_, rest, _ := strings.Cut(string(valid), "\n")
		require.NoError(t, os.WriteFile(s.home.pidFile(), []byte(strconv.Itoa(p.Pid)+"\n"+rest), 0o600), name)
		require.NoError(t, s.home.account.take(s.home.pidFile()), name)

		again, err := Start(t.Context(), Options{Dir: dir})
		require.NoError(t, err, name)
		require.Equal(t, []string{"1"}, query(t, again.URL(), `select n from kept`), name)
		require.NoError(t, again.Stop(t.Context()), name)
		if name == "stranger" {
			require.True(t, lives(p.Pid), "a stranger is left alone")
		}
	}
}

// startAs starts a process that nobody waits for until the test ends.
func startAs(t *testing.T, a account, name string, args ...string) *os.Process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	if a.drop {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process
}

// TestInterruptedInitdb stops the first start in the middle, in two ways.
func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if begun, _ := filepath.Glob(filepath.Join(dir, stagingPrefix+"*", dataName, "base")); len(begun) > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Start(ctx, Options{Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, filepath.Join(dir, dataName))

	half := filepath.Join(dir, stagingPrefix+"killed", dataName)
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, dataName), 0o700), "an empty folder is no data")

	s := start(t, Options{Dir: dir})
	query(t, s.URL(), `select 1`)
	require.NoDirExists(t, half)
	left, err := filepath.Glob(filepath.Join(dir, stagingPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStopIsBounded has a server that ignores polite signals for a while: stopped
// by SIGSTOP it can only be ended by force.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: seededDir(t)})
	server := postmasterOf(t, s.home.dir)
	require.NoError(t, syscall.Kill(server, syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.NoError(t, s.Stop(ctx))
	require.Less(t, time.Since(began), 8*time.Second)
	require.False(t, lives(server))

	again := start(t, Options{Dir: s.home.dir})
	require.Equal(t, []string{"1"}, query(t, again.URL(), `select n from kept`))
}
