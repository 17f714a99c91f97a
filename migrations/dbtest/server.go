package dbtest

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/peterldowns/pgtestdb"
	"github.com/stretchr/testify/require"

	"tollgate/cmd/tollgate/localdb"
)

// login is the role that tests connect as: it may make roles, as a fresh installation
// must, and is no superuser. Its name and password are used on test servers only.
var login = &pgtestdb.Role{
	Username:     "tollgate_test",
	Password:     "tollgate_test",
	Capabilities: "NOSUPERUSER CREATEROLE NOBYPASSRLS",
}

// ServerURL is the superuser's URL of the server that this process tests on.
func ServerURL(t testing.TB) string {
	t.Helper()
	url, err := serverURL()
	require.NoError(t, err, "tests need Postgres")
	return url
}

var serverURL = sync.OnceValues(func() (string, error) {
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		return url, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := localdb.Start(ctx, localdb.Options{Ephemeral: true})
	if err != nil {
		return "", err
	}
	return server.SuperURL(), nil
})

func serverConfig(t testing.TB) pgtestdb.Config {
	t.Helper()
	url, err := pgx.ParseConfig(ServerURL(t))
	require.NoError(t, err)
	return pgtestdb.Config{
		DriverName: "pgx",
		Host:       url.Host,
		Port:       strconv.Itoa(int(url.Port)),
		User:       url.User,
		Password:   url.Password,
		Database:   url.Database,
		Options:    "sslmode=disable",
		TestRole:   login,

		ForceTerminateConnections: true,
	}
}

// FreeAddr is a loopback address that nobody listens on right now.
func FreeAddr(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
