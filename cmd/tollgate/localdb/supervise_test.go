//go:build unix

package localdb

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// notes collects a log that several goroutines write.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) contains(s string) func() bool {
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return bytes.Contains(n.text.Bytes(), []byte(s))
	}
}

// TestServerComesBackWhenItsPortIsFreeAgain takes the port in the moment the server
// dies: the supervisor must keep the port, say what is wrong, and go on trying.
func TestServerComesBackWhenItsPortIsFreeAgain(t *testing.T) {
	t.Parallel()
	var log notes
	s := start(t, Options{Dir: seededDir(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
	var thief net.Listener
	eventually(t, "the port is taken", func() bool {
		if pid, err := s.home.readPIDFile(); err == nil && pid.ready { // again, should it have been quicker
			_ = syscall.Kill(pid.pid, syscall.SIGKILL)
		}
		for i := 0; i < 1000 && thief == nil; i++ {
			thief, _ = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", s.port))
		}
		return thief != nil
	})
	eventually(t, "the trouble is told", log.contains(fmt.Sprintf("another program took port %d", s.port)))

	require.NoError(t, thief.Close())
	eventually(t, "the server is back", func() bool {
		conn, err := pgx.Connect(t.Context(), s.URL())
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

// TestStopWhileStartingAgain stops a server that cannot come back.
func TestStopWhileStartingAgain(t *testing.T) {
	t.Parallel()
	var log notes
	bin := newDir(t)
	require.NoError(t, os.Mkdir(bin, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		real := look(t.Context(), installedPlaces(), accountFor("")).usable[0].dir
		require.NoError(t, os.Symlink(filepath.Join(real, name), filepath.Join(bin, name)))
	}
	s := start(t, Options{Dir: seededDir(t), places: places(bin), Log: slog.New(slog.NewTextHandler(&log, nil))})
	broken := fakePostgres(t, "15.0") // says its version and ends, whatever it is asked
	require.NoError(t, os.Rename(filepath.Join(broken, "postgres"), filepath.Join(bin, "postgres")))
	require.NoError(t, syscall.Kill(postmasterOf(t, s.home.dir), syscall.SIGKILL))
	eventually(t, "a start has failed", log.contains("could not be started again"))

	require.NoError(t, s.Stop(t.Context()))
	start(t, Options{Dir: s.home.dir}) // the folder was given back
}
