package bench

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/cmd/tollgate/localdb"
)

// durableServer is a Postgres that waits for its disk at each commit, as the URL of a
// superuser: the one of BENCH_DATABASE_URL, or one that is started for the test.
func durableServer(t *testing.T) string {
	t.Helper()
	if url := os.Getenv("BENCH_DATABASE_URL"); url != "" {
		return url
	}
	dir, err := os.MkdirTemp("", "tollgate-bench-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711)) // the server's user must get through it
	server, err := localdb.Start(t.Context(), localdb.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = server.Stop(context.Background())
		_ = os.RemoveAll(dir)
	})
	return server.SuperURL()
}
