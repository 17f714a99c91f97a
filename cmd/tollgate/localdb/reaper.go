//go:build unix

package localdb

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// reapScript waits for the end of its input, stops the server of folder $1 at once
// and removes the folder. Its arguments carry the path, so it needs no quoting.
const reapScript = `read -r _
pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	n=0
	while [ $n -lt 50 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; n=$((n+1)); done
fi
rm -rf "$1"`

// startReaper starts a shell that cleans up after an ephemeral server when we end
// without Stop: a test process has no hook for its end, and may be killed. The shell
// reads a pipe that only we hold open, so that any end of ours wakes it. Closing the
// returned writer ends the shell too.
func startReaper(dir string) (io.Closer, error) {
	cmd := exec.Command("/bin/sh", "-c", reapScript, "tollgate-reaper", dir)
	cmd.Dir, cmd.Env = "/", childEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C must not end it before us
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("watch over the temporary database: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("watch over the temporary database: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return pipe, nil
}
