package fault

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// StartBouncer puts a pgbouncer before a database and returns the URL that leads through
// it. mode is "transaction" or "session". The test is skipped where no pgbouncer is
// installed, unless TOLLGATE_NO_SKIP is 1.
func StartBouncer(t testing.TB, target, mode string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil && os.Getenv("TOLLGATE_NO_SKIP") != "1" {
		t.Skip("pgbouncer is not installed")
	}
	require.NoError(t, err)
	config, err := pgx.ParseConfig(target)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "tollgate-bouncer-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // pgbouncer refuses to run as root
	port := freePort(t)
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 4
max_client_conn = 200
`, config.Host, config.Port, config.User, config.Password, port, mode), 0o644))
	args := []string{file}
	if os.Geteuid() == 0 {
		args = []string{"-u", "nobody", file}
	}
	bouncer := Start(t, path, args, nil)
	parsed, err := url.Parse(target)
	require.NoError(t, err)
	parsed.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", parsed.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "pgbouncer did not start: %s", bouncer.Output())
	t.Cleanup(func() { bouncer.Signal(syscall.SIGQUIT, 10*time.Second) })
	return parsed.String()
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
