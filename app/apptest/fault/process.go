package fault

import (
	"bufio"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Process is a real process under test, with the lines that it wrote.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended and was reaped

	mu    sync.Mutex
	lines []string
}

// Start starts a program with exactly this environment. It is stopped with the test.
func Start(t testing.TB, path string, args, env []string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = env
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p.cmd.Stdout
	require.NoError(t, p.cmd.Start())
	go p.read(bufio.NewScanner(out))
	t.Cleanup(p.Stop)
	return p
}

func (p *Process) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 16<<20) // a log line may tell of a large value
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
	close(p.done)
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode is the code that it ended with, -1 where a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Output is all that the process has written so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// AwaitLine waits until a line holds text, and returns that line.
func (p *Process) AwaitLine(text string, within time.Duration) string {
	p.t.Helper()
	var found string
	require.Eventually(p.t, func() bool {
		for line := range strings.SplitSeq(p.Output(), "\n") {
			if strings.Contains(line, text) {
				found = line
				return true
			}
		}
		return p.Ended()
	}, within, 10*time.Millisecond, "waiting for %q", text)
	require.NotEmpty(p.t, found, "ended without %q: %s", text, p.Output())
	return found
}

// Ended tells whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal that ends the process, and waits for the end.
func (p *Process) Signal(s syscall.Signal, within time.Duration) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("still there %v after %v: %s", within, s, p.Output())
	}
}

// Kill ends the process as a power cut would.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL, 5*time.Second)
}

// Freeze stops the process where it is; its connections stay open.
func (p *Process) Freeze() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
}

// Thaw lets a frozen process go on, as if no time had passed for it.
func (p *Process) Thaw() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// Stop ends the process in good order, or by force where it takes too long. One that has
// ended stays as it is.
func (p *Process) Stop() {
	if p.Ended() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a frozen one could not hear it
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
