package ledger_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"tollgate/cmd/tollgate/localdb"
)

// TestMain measures on a Postgres that waits for its disk at each commit, as in
// production; tests do without.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if flag.Lookup("test.bench").Value.String() == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tollgate-ledger-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // Postgres may run as another user
	}
	var server *localdb.Server
	if err == nil {
		server, err = localdb.Start(context.Background(), localdb.Options{Dir: dir})
	}
	if err == nil {
		err = os.Setenv("TEST_DATABASE_URL", server.SuperURL())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measuring needs a Postgres:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer server.Stop(context.Background())
	return m.Run()
}
