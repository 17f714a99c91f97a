package localdb

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// superuser is the set-up login; the program itself signs in as ownerRole, who
// owns the database of the same name.
const (
	superuser = "postgres"
	ownerRole = "tollgate"
)

// address is the URL of one login on the local server. Sign-in is by scram over
// loopback, so there is nothing TLS would add.
func address(port int, user, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// prepareRoles makes the owner's login and database where they are missing and
// sets its rights and password anew, so that any earlier state ends up the same.
func prepareRoles(ctx context.Context, superURL, ownerPassword string) error {
	conn, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return fmt.Errorf("sign in to set up the local Postgres: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	owner := pgx.Identifier{ownerRole}.Sanitize()
	var role, database bool
	err = conn.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1),
		exists (select from pg_database where datname = $1)`, ownerRole).Scan(&role, &database)
	if err != nil {
		return fmt.Errorf("look for role %s: %w", ownerRole, err)
	}
	var statements []string
	if !role {
		statements = append(statements, "create role "+owner)
	}
	// The password is hexadecimal, so quoting it is safe.
	statements = append(statements, "alter role "+owner+
		" login nosuperuser createrole nocreatedb noreplication nobypassrls password '"+ownerPassword+"'")
	if !database {
		statements = append(statements, "create database "+owner+" owner "+owner)
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("set up role %s: %w", ownerRole, err)
		}
	}
	return nil
}
