package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler such as pgbouncer may stand before the database. Where it lends a server
// session for one transaction only, whatever is set on a session, its role above all,
// would reach strangers, and what was prepared there is not found again. So behind any
// pooler the app's role is taken on within each transaction, and no statement is
// prepared by name. River's client, which is on the system's pool, needs sessions of its
// own; there a pooler that shares them is refused.
//
// The server tells its process at the start of a session. A pooler tells a number of its
// own instead, and that is how it is recognised, before anything is set.

// errPooler tells that the other end of a connection is a pooler.
var errPooler = errors.New("the connection goes through a pooler")

// settle sets up a session of our own, or leaves it as it is where it is a pooler's.
// Queries are not compiled: the planner thinks walks through a tree of rows dear, and
// compiling them took seconds where they take milliseconds.
const settle = `
	SELECT pg_backend_pid() = $1, CASE WHEN pg_backend_pid() = $1 OR $4
		THEN set_config('role', $2, false) || set_config('idle_in_transaction_session_timeout', $3, false) || set_config('jit', 'off', false) END`

// asRole gives connections a role for good. sessions says that a pooler, if there is
// one, is known to lend each connection a session of its own.
func asRole(role string, sessions bool) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		readTimesAsUTC(conn)
		var direct bool
		var ignored *string
		err := conn.QueryRow(ctx, settle, pgx.QueryExecModeExec, int32(conn.PgConn().PID()), role, idleLimit, sessions).Scan(&direct, &ignored)
		if err == nil && !direct && !sessions {
			return errPooler
		}
		return err
	}
}

// lazily lets what is committed outside our own transactions not wait for the disk, and
// notes the server's own setting for those that must. Outside them there is only River's
// bookkeeping of jobs: a job is never the truth, and a crash that loses a line of it
// loses all later ones of ours that would have built on it.
//
// Work across tenants looks by index, River's fetch above all. It is planned once for each
// connection, maybe while a table was all but empty, and must not go through it later.
const lazily = `
	SELECT set_config('app.synchronous_commit', current_setting('synchronous_commit'), false), set_config('synchronous_commit', 'off', false),
		set_config('enable_seqscan', 'off', false)`

// durably undoes lazily within a transaction.
const durably = `set_config('synchronous_commit', current_setting('app.synchronous_commit'), true)`

// asSystem is asRole for the system's pool.
func asSystem(sessions bool) func(context.Context, *pgx.Conn) error {
	take := asRole(systemRole, sessions)
	return func(ctx context.Context, conn *pgx.Conn) error {
		if err := take(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, lazily, pgx.QueryExecModeExec)
		return err
	}
}

// openApp opens the pool for tenants' work, and tells whether it goes through a pooler.
func openApp(ctx context.Context, url string, conns int32) (*pgxpool.Pool, bool, error) {
	config, err := poolConfig(url, appRole, conns)
	if err != nil {
		return nil, false, err
	}
	config.AfterConnect = asRole(appRole, false)
	pool, err := openPool(ctx, config)
	if !errors.Is(err, errPooler) {
		return pool, false, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		readTimesAsUTC(conn)
		return nil
	}
	pool, err = openPool(ctx, config)
	return pool, true, err
}

// openSystem opens the pool for cross-tenant work and River.
func openSystem(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	config, err := poolConfig(url, systemRole, conns)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = asSystem(false)
	pool, err := openPool(ctx, config)
	if !errors.Is(err, errPooler) {
		return pool, err
	}
	shares, err := sharesSessions(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if shares {
		return nil, errors.New("the system's connections go through a pooler that shares sessions between transactions: set TOLLGATE_SYSTEM_DATABASE_URL to an address of Postgres itself, or of a pooler in session mode")
	}
	config.AfterConnect = asSystem(true)
	return openPool(ctx, config)
}

// sharesSessions tells whether two connections at once meet the same session, or one
// meets several.
func sharesSessions(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	owners := map[int32]int{} // which of our connections met a session of the server
	var conns []*pgx.Conn
	for range 2 {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return false, fmt.Errorf("connect to the database: %w", err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		conns = append(conns, conn)
	}
	met := make([]int32, len(conns))
	for range 3 {
		for n, conn := range conns {
			var session int32
			if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&session); err != nil {
				return false, fmt.Errorf("look at the pooler: %w", err)
			}
			owner, known := owners[session]
			if known && owner != n || met[n] != 0 && met[n] != session {
				return true, nil
			}
			owners[session], met[n] = n, session
		}
	}
	return false, nil
}

// Mode says in words how the database is reached, for whoever starts the program.
func (db *DB) Mode() string {
	if db.pooled {
		return "through a pooler: roles within each transaction, no prepared statements"
	}
	return "direct: sessions of our own, prepared statements"
}
