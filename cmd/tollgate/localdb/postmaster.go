//go:build unix

package localdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	pollEvery = 20 * time.Millisecond
	// recoveryBound is how long a start may take: after a crash Postgres replays
	// its log first, which on a slow disk is minutes at worst.
	recoveryBound = 3 * time.Minute
)

// errPortTaken means that somebody else listens on the port we wanted.
var errPortTaken = errors.New("the port is taken")

// launch starts Postgres on the port and waits until it takes connections.
func (h *home) launch(ctx context.Context, b binaries, port int, settings []string) (*child, error) {
	log, from, err := h.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"-D", h.data(), "-p", strconv.Itoa(port)}
	for _, setting := range append(h.fixedSettings(), settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(b.postgres(), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.data(), childEnv(), log, log
	// SIGINT is Postgres's fast shutdown: sessions end, nothing is lost.
	pm, err := startChild(cmd, h.account, syscall.SIGINT)
	if err != nil {
		return nil, err
	}
	if err := h.awaitReady(ctx, pm); err != nil {
		endChild(ctx, pm, patience{fast: time.Second, quit: time.Second})
		return nil, h.explain(err, from)
	}
	return pm, nil
}

// fixedSettings hold for every local database. They stand on the command line,
// where neither postgresql.conf nor ALTER SYSTEM can undo them.
func (h *home) fixedSettings() []string {
	return []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=", // the default folder is often not writable
		"cluster_name=" + h.clusterName(),
		"logging_collector=off",
		"log_timezone=UTC",
	}
}

// clusterName shows in the process titles of the server's sessions, by which they
// are told from those of other servers where there is no /proc.
func (h *home) clusterName() string {
	sum := sha256.Sum256([]byte(h.data()))
	return "tollgate-" + hex.EncodeToString(sum[:6])
}

var errExited = errors.New("it ended at once")

// awaitReady reads the server's own status file rather than knocking at the port,
// where a stranger might answer.
func (h *home) awaitReady(ctx context.Context, pm *child) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryBound)
	defer cancel()
	for {
		pid, err := h.readPIDFile()
		if err == nil && pid.pid == pm.process.Pid && pid.ready {
			return nil
		}
		if pm.waitFor(ctx, pollEvery) {
			return errExited
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// freePort asks the system for a port nobody listens on. It may be taken again
// before Postgres binds it, so a start is tried with several.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port on 127.0.0.1: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// patience bounds each step of a shutdown.
type patience struct{ fast, quit time.Duration }

// endChild stops Postgres: fast first, then at once without a checkpoint (the next
// start replays the log), then by force. It reports whether fast was enough.
func endChild(ctx context.Context, pm *child, p patience) bool {
	_ = pm.process.Signal(syscall.SIGINT)
	if pm.waitFor(ctx, p.fast) {
		return true
	}
	_ = pm.process.Signal(syscall.SIGQUIT)
	if pm.waitFor(context.WithoutCancel(ctx), p.quit) {
		return false
	}
	_ = pm.process.Kill()
	<-pm.exited
	return false
}
