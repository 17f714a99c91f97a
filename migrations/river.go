package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

// riverVersion is the version of River's own tables that this build needs. A newer
// River gets a further numbered migration; this one stays.
const riverVersion = 8

// RiverSchema is where River's tables live, apart from ours.
const RiverSchema = "river"

// riverMigration makes River's tables as migration 1. It runs outside a transaction:
// one of River's steps uses an enum value that an earlier one added, which Postgres
// refuses within the same transaction. Each step is recorded by River, so a broken
// run goes on where it stopped.
func riverMigration() *goose.Migration {
	return goose.NewGoMigration(1, &goose.GoFunc{RunDB: migrateRiver}, nil)
}

func migrateRiver(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS `+RiverSchema); err != nil {
		return fmt.Errorf("create River's schema: %w", err)
	}
	migrator, err := rivermigrate.New(riverdatabasesql.New(db), &rivermigrate.Config{Schema: RiverSchema})
	if err != nil {
		return fmt.Errorf("prepare River's migrations: %w", err)
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverVersion})
	if err != nil {
		return fmt.Errorf("migrate River's tables: %w", err)
	}
	return nil
}
