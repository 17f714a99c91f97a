package tenants

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Roles that the pools take on. They are made by package migrations.
const (
	appRole    = "tollgate_app"
	systemRole = "tollgate_system"
	ownerRole  = "tollgate_owner"
)

// Config says where the database is and how many connections may be used.
type Config struct {
	URL       string // of the app role's login, or of a login that may take on both roles
	SystemURL string // of the system role's login; empty means URL
	AppConns  int32  // connections for tenants' work; 0 means 16
	SysConns  int32  // connections for cross-tenant work and River; 0 means 8
}

// DB is the database, reached only by transactions that name a tenant, or by those
// that say they are the system's.
type DB struct {
	app    *pgxpool.Pool
	system *pgxpool.Pool
}

// Open connects both pools and checks that neither works as a role that row-level
// security does not bind.
func Open(ctx context.Context, config Config) (*DB, error) {
	app, err := openPool(ctx, config.URL, appRole, defaulted(config.AppConns, 16))
	if err != nil {
		return nil, err
	}
	url := config.SystemURL
	if url == "" {
		url = config.URL
	}
	system, err := openPool(ctx, url, systemRole, defaulted(config.SysConns, 8))
	if err != nil {
		app.Close()
		return nil, err
	}
	db := &DB{app: app, system: system}
	if err := db.checkRoles(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close waits for running transactions and closes all connections.
func (db *DB) Close() {
	db.app.Close()
	db.system.Close()
}

// System is the pool for River's client, which runs its own queries across tenants.
// Nothing else may use it: work of ours goes through InSystemTx.
func (db *DB) System() *pgxpool.Pool { return db.system }

// Ping tells whether both pools reach the database.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.app.Ping(ctx); err != nil {
		return err
	}
	return db.system.Ping(ctx)
}

func openPool(ctx context.Context, url, role string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	config.MaxConns = conns
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	config.ConnConfig.RuntimeParams["application_name"] = "tollgate " + role
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		readTimesAsUTC(conn)
		_, err := conn.Exec(ctx, "SET ROLE "+role)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return pool, nil
}

// readTimesAsUTC spares every reader a conversion: pgx would give times in the zone of
// the machine.
func readTimesAsUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

func defaulted(value, fallback int32) int32 {
	if value <= 0 {
		return fallback
	}
	return value
}
