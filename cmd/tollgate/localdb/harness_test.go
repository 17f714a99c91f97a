//go:build unix

package localdb

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	if sharedBinary.dir != "" {
		_ = os.RemoveAll(sharedBinary.dir)
	}
	os.Exit(code)
}

// report is what the helper says when it has started or failed.
type report struct{ URL, Super, Problem string }

// ownDatabase runs until its standard input is closed.
func ownDatabase(dir string) int {
	s, err := Start(context.Background(), Options{Dir: dir})
	say := json.NewEncoder(os.Stdout)
	if err != nil {
		_ = say.Encode(report{Problem: err.Error()})
		return 1
	}
	_ = say.Encode(report{URL: s.URL(), Super: s.SuperURL()})
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
	require.NoError(t, cmd.Start())
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

var sharedBinary struct {
	sync.Mutex
	dir string
}

// binaryFor is this test binary, as a copy where another user could not enter the
// folder it was built in.
func binaryFor(t *testing.T, uid int) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if uid == os.Geteuid() {
		return self
	}
	sharedBinary.Lock()
	defer sharedBinary.Unlock()
	path := filepath.Join(sharedBinary.dir, "localdb.test")
	if sharedBinary.dir == "" {
		dir, err := os.MkdirTemp("", "localdb-test-")
		require.NoError(t, err)
		require.NoError(t, os.Chmod(dir, 0o755))
		sharedBinary.dir, path = dir, filepath.Join(dir, "localdb.test")
		raw, err := os.ReadFile(self)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, raw, 0o755))
		require.NoError(t, os.Chmod(path, 0o755))
	}
	return path
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
