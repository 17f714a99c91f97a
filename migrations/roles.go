package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// roleStatements creates the three roles, lets the login role take each of them on,
// and lets the owner create in the database. Each part is skipped where it is done
// already, so a login role without the right to create roles can migrate later on.
const roleStatements = `
DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['tollgate_owner', 'tollgate_app', 'tollgate_system'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = role_name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', role_name);
        END IF;
        IF NOT pg_has_role(current_user, role_name, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', role_name, current_user);
        END IF;
    END LOOP;
    IF NOT has_database_privilege('tollgate_owner', current_database(), 'CREATE') THEN
        EXECUTE format('GRANT CREATE ON DATABASE %I TO tollgate_owner', current_database());
    END IF;
    IF NOT has_schema_privilege('tollgate_owner', 'public', 'CREATE') THEN
        GRANT USAGE, CREATE ON SCHEMA public TO tollgate_owner;
    END IF;
    IF NOT has_schema_privilege('tollgate_app', 'public', 'USAGE') THEN
        GRANT USAGE ON SCHEMA public TO tollgate_app, tollgate_system;
    END IF;
END $$`

// EnsureRoles makes the roles of the server. Roles belong to all databases of a
// server, so two databases may be set up at once; the loser of that race tries again.
func EnsureRoles(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for range 5 {
		if _, err = conn.Exec(ctx, roleStatements); err == nil || !isRoleRace(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("create the database roles (the login role needs CREATEROLE and must own the database): %w", err)
	}
	return nil
}

func isRoleRace(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	const duplicateObject, uniqueViolation, internalError = "42710", "23505", "XX000"
	return pg.Code == duplicateObject || pg.Code == uniqueViolation || pg.Code == internalError
}
