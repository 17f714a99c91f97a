package fault

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/cmd/tollgate/localdb"
)

// Postgres is a server of the test's own, as durable as one in production, that can be
// crashed. It comes back by itself, on the same address.
type Postgres struct {
	t      testing.TB
	dir    string
	server *localdb.Server
}

// StartPostgres starts a server that goes away with the test.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "tollgate-fault-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // Postgres may run as another user
	p := &Postgres{t: t, dir: filepath.Join(dir, "data")}
	p.server, err = localdb.Start(t.Context(), localdb.Options{Dir: p.dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.server.Stop(context.Background()) })
	return p
}

// URL is the login that owns an empty database and may make roles.
func (p *Postgres) URL() string { return p.server.URL() }

// SuperURL is a login on the same database that sees all rows.
func (p *Postgres) SuperURL() string {
	p.t.Helper()
	super, err := url.Parse(p.server.SuperURL())
	require.NoError(p.t, err)
	own, err := url.Parse(p.URL())
	require.NoError(p.t, err)
	super.Path = own.Path
	return super.String()
}

// Crash stops the server at once, without a checkpoint, and returns when the next one
// has recovered. All connections are cut.
func (p *Postgres) Crash() { p.t.Helper(); p.end(syscall.SIGQUIT) }

// Restart stops the server in good order, as an upgrade would, and returns when it is
// back. All connections are cut.
func (p *Postgres) Restart() { p.t.Helper(); p.end(syscall.SIGINT) }

func (p *Postgres) end(how syscall.Signal) {
	p.t.Helper()
	before := p.postmaster()
	require.NotZero(p.t, before)
	require.NoError(p.t, syscall.Kill(before, how))
	require.Eventually(p.t, func() bool {
		return p.postmaster() != before && p.answers()
	}, 60*time.Second, 20*time.Millisecond, "Postgres did not come back")
}

// postmaster is the server's process; 0 while there is none.
func (p *Postgres) postmaster() int {
	text, err := os.ReadFile(filepath.Join(p.dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

func (p *Postgres) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.server.SuperURL())
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx) == nil
}
