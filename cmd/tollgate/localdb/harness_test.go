//go:build unix

package localdb

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// helperDir makes this binary own a database in the named folder instead of
// running tests: a process that tests can kill.
const helperDir = "LOCALDB_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(helperDir); ok {
		os.Exit(ownDatabase(dir))
	}
	code := m.Run()
	if scratchMade.Load() {
		_ = os.RemoveAll(scratch())
	}
	os.Exit(code)
}

// report is what the helper says when it has started or failed.
type report struct{ URL, Super, Dir, Problem string }

// ownDatabase runs until its standard input is closed; no folder means an ephemeral
// database.
func ownDatabase(dir string) int {
	s, err := Start(context.Background(), Options{Dir: dir, Ephemeral: dir == ""})
	say := json.NewEncoder(os.Stdout)
	if err != nil {
		_ = say.Encode(report{Problem: err.Error()})
		return 1
	}
	_ = say.Encode(report{URL: s.URL(), Super: s.SuperURL(), Dir: s.home.dir})
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

type helper struct {
	report
	process *os.Process
	stdin   io.Closer
	exited  chan struct{}
}

// startHelper runs a process that owns the database in dir, as the user uid, and
// waits for its report.
func startHelper(t *testing.T, dir string, uid int) *helper {
	t.Helper()
	return startHelperBy(t, dir, uid, (*exec.Cmd).Start)
}

func startHelperBy(t *testing.T, dir string, uid int, start func(*exec.Cmd) error) *helper {
	t.Helper()
	cmd := exec.Command(binaryFor(t, uid))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), helperDir + "=" + dir}
	if uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, start(cmd))
	h := &helper{process: cmd.Process, stdin: stdin, exited: make(chan struct{})}
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		_ = cmd.Wait()
		close(h.exited)
	}()
	t.Cleanup(func() { h.end(t) })
	require.NoError(t, readErr)
	require.NoError(t, json.Unmarshal(line, &h.report))
	return h
}

// end lets the helper stop its database and waits for it.
func (h *helper) end(t *testing.T) {
	t.Helper()
	_ = h.stdin.Close()
	select {
	case <-h.exited:
	case <-time.After(20 * time.Second):
		_ = h.process.Kill()
		t.Error("the helper did not stop its database in time")
	}
}

// scratch is a folder for what tests share, made at the first use.
var (
	scratchMade atomic.Bool
	scratch     = sync.OnceValue(func() string {
		dir, err := os.MkdirTemp(tempRoot(), "localdb-test-")
		if err != nil {
			panic(err)
		}
		scratchMade.Store(true)
		if err := os.Chmod(dir, 0o755); err != nil {
			panic(err)
		}
		return dir
	})
)

// binaryFor is this test binary, as a copy where another user could not enter the
// folder it was built in.
func binaryFor(t *testing.T, uid int) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if uid == os.Geteuid() {
		return self
	}
	path, err := copyOfBinary()
	require.NoError(t, err)
	return path
}

var copyOfBinary = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch(), "localdb.test")
	return path, copyFile(self, path, 0o755)
})

// seed is a database made once, with a table that holds the number 1. Making one
// takes most of a test's time, so tests about something else copy this one.
var seed = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch(), "seed")
	s, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(context.Background(), s.URL())
	if err == nil {
		_, err = conn.Exec(context.Background(), `create table kept as select 1 as n`)
		_ = conn.Close(context.Background())
	}
	return dir, errors.Join(err, s.Stop(context.Background()))
})

// seededDir is a data folder of its own with a copy of the seed.
func seededDir(t *testing.T) string {
	t.Helper()
	from, err := seed()
	require.NoError(t, err)
	dir := newDir(t)
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		to := dir + strings.TrimPrefix(path, from)
		if d.IsDir() {
			err = os.Mkdir(to, info.Mode().Perm())
		} else {
			err = copyFile(path, to, info.Mode().Perm())
		}
		uid, gid, _ := owner(path)
		return errors.Join(err, os.Chown(to, uid, gid))
	}))
	return dir
}

func copyFile(from, to string, mode os.FileMode) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, raw, mode)
}

// writeFile writes a file that may be run at once: see writeEntry.
func writeFile(path string, raw []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return errors.Join(os.WriteFile(path, raw, mode), os.Chmod(path, mode))
}

// newDir names a folder that the database may make, whoever runs the test. It is
// not the testing package's: that one is closed to other users, and on disk.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(tempRoot(), "localdb-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "data")
}

// start starts a database that ends with the test.
func start(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// refusal starts a database that must not start and returns the one sentence.
func refusal(t *testing.T, opts Options) string {
	t.Helper()
	s, err := Start(t.Context(), opts)
	if err == nil {
		_ = s.Stop(context.Background())
	}
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n", "the error is one line")
	return err.Error()
}

// query returns the columns of one row as text.
func query(t *testing.T, url, sql string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	return queryOn(t, conn, sql)
}

func queryOn(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	result, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err)
	last := result[len(result)-1]
	require.NoError(t, last.Err)
	if len(last.Rows) == 0 {
		return nil
	}
	texts := make([]string, len(last.Rows[0]))
	for i, column := range last.Rows[0] {
		texts[i] = string(column)
	}
	return texts
}

// eventually polls until the check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !check() {
		require.True(t, time.Now().Before(deadline), "waited in vain: %s", what)
		time.Sleep(20 * time.Millisecond)
	}
}

// fingerprint is a digest of all names, modes and contents below dir.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode())
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			sum.Write(raw)
			return err
		}
		return nil
	}))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// postmasterOf reads which process serves the data in dir.
func postmasterOf(t *testing.T, dir string) int {
	t.Helper()
	h := home{dir: dir}
	pid, err := h.readPIDFile()
	require.NoError(t, err)
	return pid.pid
}

// lives reports whether the process runs. One that has ended but was not reaped by
// whoever inherited it does not.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(after, "Z")
}
