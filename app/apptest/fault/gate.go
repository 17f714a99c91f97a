package fault

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Gate holds one transaction before a statement that it is about to make: a test can let
// the world change between what it has read and what it writes. While one is held, others
// pass.
type Gate struct {
	t    testing.TB
	key  int32
	mu   sync.Mutex // guards conn
	conn *pgx.Conn
}

var gates atomic.Int32

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
			IF pg_try_advisory_xact_lock(%[2]d, 1) THEN
				PERFORM pg_advisory_xact_lock_shared(%[2]d, 0);
			END IF;
			RETURN coalesce(NEW, OLD);
		END $$;
		CREATE TRIGGER %[1]s %[3]s EXECUTE FUNCTION %[1]s()`, name, g.key, before))
	return g
}

// Close holds the next transaction that comes.
func (g *Gate) Close() {
	g.t.Helper()
	g.exec(fmt.Sprintf(`SELECT pg_advisory_lock(%d, 0)`, g.key))
}

// Open lets the one that is held go on, and everybody who comes.
func (g *Gate) Open() {
	g.t.Helper()
	g.exec(`SELECT pg_advisory_unlock_all()`)
}

// AwaitHeld waits until a transaction stands at the gate.
func (g *Gate) AwaitHeld() {
	g.t.Helper()
	require.Eventually(g.t, g.holds, 20*time.Second, 5*time.Millisecond, "nobody came to the gate")
}

func (g *Gate) holds() bool {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	var holds bool
	err := g.conn.QueryRow(context.Background(), `
		SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = $1::integer::oid AND objid = 0 AND objsubid = 2)`, g.key).Scan(&holds)
	require.NoError(g.t, err)
	return holds
}

func (g *Gate) exec(statement string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.conn.Exec(context.Background(), statement)
	require.NoError(g.t, err)
}
