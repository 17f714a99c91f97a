package tenants

import (
	"context"
	"errors"

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
	pooled bool // the app's connections go through a pooler; see pooler.go
}

// Open connects both pools and checks that neither works as a role that row-level
// security does not bind.
func Open(ctx context.Context, config Config) (*DB, error) {
	app, pooled, err := openApp(ctx, config.URL, defaulted(config.AppConns, 16))
	if err != nil {
		return nil, err
	}
	url := config.SystemURL
	if url == "" {
		url = config.URL
	}
	system, err := openSystem(ctx, url, defaulted(config.SysConns, 8))
	if err != nil {
		app.Close()
		return nil, err
	}
	db := &DB{app: app, system: system, pooled: pooled}
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

// CutOff closes all connections without waiting for anybody: whoever asks for one from now on
// gets an error, and what is under way ends by itself.
func (db *DB) CutOff() {
	go db.app.Close()
	go db.system.Close()
}

// System is the pool for River's client, which runs its own queries across tenants.
// Nothing else may use it: work of ours goes through InSystemTx.
func (db *DB) System() *pgxpool.Pool { return db.system }

// Ping tells whether both pools reach a database that takes changes.
func (db *DB) Ping(ctx context.Context) error {
	for _, pool := range []*pgxpool.Pool{db.app, db.system} {
		var readOnly string
		if err := pool.QueryRow(ctx, `SHOW transaction_read_only`).Scan(&readOnly); err != nil {
			return err
		}
		if readOnly == "on" {
			return errors.New("the database takes no changes just now")
		}
	}
	return nil
}

func defaulted(value, fallback int32) int32 {
	if value <= 0 {
		return fallback
	}
	return value
}
