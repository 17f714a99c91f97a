//go:build unix

package localdb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is a process of ours that is waited for from the moment it starts, so
// that it never stays a zombie.
type child struct {
	process *os.Process
	exited  chan struct{} // closed when the process has ended and was reaped
	err     error         // how it ended; read after exited is closed
}

// startChild starts the command as the account. The starting thread is kept for
// the life of the child: on Linux the death signal is tied to that thread, and a
// thread the Go runtime retires would otherwise stop the child at random.
func startChild(cmd *exec.Cmd, a account, onOurDeath syscall.Signal) (*child, error) {
	cmd.SysProcAttr = a.sysProc(onOurDeath)
	c := &child{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s as user %s: %w", cmd.Path, a, err)
	}
	return c, nil
}

// waitFor reports whether the child ended within the bound.
func (c *child) waitFor(ctx context.Context, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
	return c.hasExited()
}

func (c *child) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// runChild runs the command to its end; a cancelled ctx kills it.
func runChild(ctx context.Context, cmd *exec.Cmd, a account) error {
	c, err := startChild(cmd, a, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case <-c.exited:
		return c.err
	case <-ctx.Done():
		killGroup(c.process.Pid)
		<-c.exited
		return fmt.Errorf("%w (%w)", ctx.Err(), c.err)
	}
}

// killGroup kills a child that leads its own group, with its children.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // already gone is as good
}

// childEnv is all that children see of our environment: libpq and Postgres read
// many variables, none of which may change how this server runs. English messages
// let the reason of a failed start be found in the log.
func childEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
