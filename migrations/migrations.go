package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Up brings the database at url to the newest version and returns how many
// migrations it applied. The login role of url needs the right to create roles the
// first time, and must own the database. Several processes may call Up at once: an
// advisory lock lets one work while the others wait.
func Up(ctx context.Context, url string) (int, error) {
	if err := EnsureRoles(ctx, url); err != nil {
		return 0, err
	}
	pool, err := ownerPool(ctx, url)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	provider, err := newProvider(db)
	if err != nil {
		return 0, err
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return len(applied), fmt.Errorf("migrate the database: %w", err)
	}
	return len(applied), nil
}

// Pending reports how many migrations the database at url still needs. A process
// that serves asks it at start and refuses to run ahead of its tables.
func Pending(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	var have int64
	err := pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&have)
	if err != nil {
		return 0, fmt.Errorf("read the database's version: %w", err)
	}
	newest, err := newestVersion()
	if err != nil {
		return 0, err
	}
	return int(max(newest-have, 0)), nil
}

// Hash tells the database's shape: it changes whenever a migration does.
func Hash() (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(body))
		sum.Write(body)
	}
	fmt.Fprintf(sum, "river %d roles %s", riverVersion, roleStatements)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func newestVersion() (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	var newest int64
	_, err = fmt.Sscanf(names[len(names)-1], "%d_", &newest)
	return newest, err
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker),
		goose.WithGoMigrations(riverMigration()),
		goose.WithLogger(goose.NopLogger()),
	)
}

// ownerPool connects as the login role and works as the owner of all tables. A lock
// that is not had within five seconds gives up, so that a migration never queues
// behind a long transaction with every request behind it.
func ownerPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	config.MaxConns = 4
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SET ROLE tollgate_owner; SET lock_timeout = '5s'`)
		return err
	}
	return pgxpool.NewWithConfig(ctx, config)
}
