package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain removes the binary that tests built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var built string

// binary builds the program once. A test that kills it kills the program itself and
// not the go command around it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tollgate-binary-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	built = filepath.Join(dir, "tollgate")
	out, err := exec.Command("go", "build", "-o", built, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return built, nil
})

// local is the program in local mode.
type local struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	done chan struct{}

	mu    sync.Mutex
	lines []string
}

// startLocal starts the local mode on a data folder and waits until it is ready.
func startLocal(t *testing.T, data string, env ...string) *local {
	t.Helper()
	l := beginLocal(t, []string{"--data", data, "--addr", "127.0.0.1:0"}, env...)
	require.Eventually(t, l.ready, 60*time.Second, 20*time.Millisecond, "not ready: %s", l.output())
	return l
}

func beginLocal(t *testing.T, args []string, env ...string) *local {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	l := &local{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	l.cmd.Env = append(cleanEnv(), env...)
	out, err := l.cmd.StdoutPipe()
	require.NoError(t, err)
	l.cmd.Stderr = l.cmd.Stdout
	require.NoError(t, l.cmd.Start())
	go l.read(bufio.NewScanner(out))
	t.Cleanup(l.stop)
	return l
}

// cleanEnv is this process's environment without what would set the program up.
func cleanEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "TOLLGATE_") && !strings.HasPrefix(name, "OPENAI_") && name != "DATABASE_URL" {
			env = append(env, entry)
		}
	}
	return env
}

func (l *local) read(lines *bufio.Scanner) {
	for lines.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, lines.Text())
		l.mu.Unlock()
	}
	_ = l.cmd.Wait()
	close(l.done)
}

func (l *local) output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *local) ready() bool {
	for line := range strings.SplitSeq(l.output(), "\n") {
		if url, ok := strings.CutPrefix(line, "Tollgate is ready: "); ok {
			l.url = url
			return true
		}
	}
	return false
}

// signal sends a signal and waits for the end.
func (l *local) signal(s syscall.Signal, within time.Duration) {
	l.t.Helper()
	require.NoError(l.t, l.cmd.Process.Signal(s))
	select {
	case <-l.done:
	case <-time.After(within):
		l.t.Fatalf("still there %v after %v: %s", within, s, l.output())
	}
}

// kill ends the program as a power cut would.
func (l *local) kill() { l.signal(syscall.SIGKILL, 5*time.Second) }

func (l *local) stop() {
	select {
	case <-l.done:
	default:
		_ = l.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-l.done:
		case <-time.After(20 * time.Second):
			_ = l.cmd.Process.Kill()
			<-l.done
		}
	}
}

// once runs the program to its end.
func once(t *testing.T, args []string, env ...string) (string, int) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cleanEnv(), env...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// dataFolder is an empty folder that Postgres may reach, whoever runs the test.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tollgate-data-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
