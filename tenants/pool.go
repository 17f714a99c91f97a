package tenants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Bounds of connections.
const (
	connectLimit = 5 * time.Second
	// acquireLimit is how long a transaction waits for a free connection. Whoever asks
	// for a second one while holding a first could otherwise empty the pool for good.
	acquireLimit = 10 * time.Second
	// idleLimit is how long a transaction may do nothing before the server ends it. A
	// process that froze in the middle of one gives its locks back within a lease.
	idleLimit = "10s"
)

// poolConfig is what all pools have in common.
func poolConfig(url, role string, conns int32) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	config.MaxConns = conns
	config.ConnConfig.ConnectTimeout = connectLimit
	config.ConnConfig.RuntimeParams["application_name"] = "tollgate " + role
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.ConnConfig.OnPgError = keepsConnection
	return config, nil
}

// keepsConnection tells whether a connection is of use after an error. One to a server
// that takes no changes is not: after a fail-over the pool would stay there for ever.
func keepsConnection(_ *pgconn.PgConn, err *pgconn.PgError) bool {
	return !strings.EqualFold(err.Severity, "FATAL") && err.Code != readOnlyServer
}

const readOnlyServer = "25006"

// openPool connects and tries one connection.
func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		if err = pool.Ping(ctx); err == nil {
			return pool, nil
		}
		pool.Close()
	}
	return nil, fmt.Errorf("connect to the database: %w", err)
}

// acquired is a connection from the pool, within the limit.
func acquired(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	conn, err := pool.Acquire(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("no connection to the database came free within %v: %w", acquireLimit, err)
	}
	return conn, err
}

// readTimesAsUTC spares every reader a conversion: pgx would give times in the zone of
// the machine.
func readTimesAsUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}
