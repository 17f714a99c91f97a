package fault

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Querier is what finds workers in the database: a connection or pool whose role sees
// the tables "workers" and "river_leader".
type Querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// LeaderPID is the process that leads River's clients just now; 0 where none does. It
// must run on this machine.
func LeaderPID(t testing.TB, db Querier) int {
	t.Helper()
	var name string
	err := db.QueryRow(context.Background(), `
		SELECT coalesce((SELECT w.name FROM river.river_leader l JOIN workers w ON w.id::text = l.leader_id
			WHERE l.expires_at > now()), '')`).Scan(&name)
	require.NoError(t, err)
	if name == "" {
		return 0
	}
	return pidOf(t, name)
}

// WorkerID is the id under which a process works, as text; "" before its first beat.
func WorkerID(t testing.TB, db Querier, process *Process) string {
	t.Helper()
	var id string
	err := db.QueryRow(context.Background(), `
		SELECT coalesce((SELECT id::text FROM workers WHERE name LIKE '% ' || $1::text ORDER BY started_at DESC LIMIT 1), '')`,
		strconv.Itoa(process.PID())).Scan(&id)
	require.NoError(t, err)
	return id
}

// pidOf reads the process's number from a worker's name, whose last word it is.
func pidOf(t testing.TB, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(name[strings.LastIndexByte(name, ' ')+1:])
	require.NoError(t, err, "the name of worker %q", name)
	return pid
}
