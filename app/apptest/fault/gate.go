package fault

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Gate holds transactions before a statement that they are about to make: a test can
// let the world change between what a transaction has read and what it writes.
type Gate struct {
	t    testing.TB
	conn *pgx.Conn
	key  int64
}

var gates atomic.Int64

// NewGate puts an open gate where a trigger would stand: before is the trigger's clause,
// such as "BEFORE UPDATE ON slices FOR EACH ROW WHEN (NEW.state = 'running')", or one FOR
// EACH STATEMENT, which holds before any row is locked. super is the URL of a superuser
// on the database.
func NewGate(t testing.TB, super, before string) *Gate {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), super)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // which opens it, too
	g := &Gate{t: t, conn: conn, key: gates.Add(1)}
	name := fmt.Sprintf("fault_gate_%d", g.key)
	g.exec(fmt.Sprintf(`
		CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(%[2]d);
			RETURN coalesce(NEW, OLD);
		END $$;
		CREATE TRIGGER %[1]s %[3]s EXECUTE FUNCTION %[1]s()`, name, g.key, before))
	return g
}

// Close lets nobody through any more.
func (g *Gate) Close() {
	g.t.Helper()
	g.exec(fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, g.key))
}

// Open lets all go on who wait, and who come.
func (g *Gate) Open() {
	g.t.Helper()
	g.exec(`SELECT pg_advisory_unlock_all()`)
}

// AwaitHeld waits until so many transactions stand at the gate.
func (g *Gate) AwaitHeld(count int) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.held() >= count }, 20*time.Second, 5*time.Millisecond,
		"nobody came to the gate")
}

func (g *Gate) held() int {
	g.t.Helper()
	var count int
	err := g.conn.QueryRow(context.Background(), `
		SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = 0 AND objid = $1::bigint::oid`, g.key).Scan(&count)
	require.NoError(g.t, err)
	return count
}

func (g *Gate) exec(statement string) {
	g.t.Helper()
	_, err := g.conn.Exec(context.Background(), statement)
	require.NoError(g.t, err)
}
