package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrNoUser means that nobody has the identity or the address.
var ErrNoUser = errors.New("there is no such person")

const userColumns = `id, email, name, zone, created_at FROM users`

// People finds persons of the tenant by identity. Whoever is not a member, or is none
// any more, is missing from the result.
func People(ctx context.Context, tx Tx, ids []UserID) (map[UserID]User, error) {
	rows, _ := tx.Query(ctx, `SELECT `+userColumns+` WHERE id = ANY($1)`, ids)
	users, err := pgx.CollectRows(rows, scanUser)
	if err != nil {
		return nil, fmt.Errorf("read people: %w", err)
	}
	found := make(map[UserID]User, len(users))
	for _, user := range users {
		found[user.ID] = user
	}
	return found, nil
}

// FormerMember is how somebody is called who left the workspace.
const FormerMember = "a former member"

// Names gives what to call each of the persons on a page.
func Names(ctx context.Context, tx Tx, ids []UserID) (map[UserID]string, error) {
	people, err := People(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[UserID]string, len(ids))
	for _, id := range ids {
		names[id] = FormerMember
		if user, ok := people[id]; ok {
			names[id] = user.Name
		}
	}
	return names, nil
}

// UserByID finds the person of a session.
func UserByID(ctx context.Context, stx SystemTx, id UserID) (User, error) {
	rows, _ := stx.Query(ctx, `SELECT `+userColumns+` WHERE id = $1`, id)
	return oneUser(rows)
}

// LockUser finds a person and keeps other transactions that lock her waiting until this
// one ends, so that one form sent twice at once is handled one after the other.
func LockUser(ctx context.Context, stx SystemTx, id UserID) (User, error) {
	rows, _ := stx.Query(ctx, `SELECT `+userColumns+` WHERE id = $1 FOR UPDATE`, id)
	return oneUser(rows)
}

// RenameUser sets what a person is called, everywhere. A name that cannot be taken is
// an *Invalid.
func RenameUser(ctx context.Context, stx SystemTx, id UserID, name string) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	tag, err := stx.Exec(ctx, `UPDATE users SET name = $2 WHERE id = $1`, id, name)
	if err != nil {
		return fmt.Errorf("rename a person: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNoUser
	}
	return nil
}

// ensureUser finds the person with an address or makes her, and tells which.
func ensureUser(ctx context.Context, stx SystemTx, email, name, zone string) (User, bool, error) {
	tag, err := stx.Exec(ctx, `INSERT INTO users (id, email, name, zone, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (email) DO NOTHING`, NewID[User](), email, stripped(name, maxNameLength), zone, stx.Now)
	if err != nil {
		return User{}, false, fmt.Errorf("make a user: %w", err)
	}
	rows, _ := stx.Query(ctx, `SELECT `+userColumns+` WHERE email = $1`, email)
	user, err := oneUser(rows)
	return user, tag.RowsAffected() == 1, err
}

func oneUser(rows pgx.Rows) (User, error) {
	user, err := pgx.CollectExactlyOneRow(rows, scanUser)
	if errors.Is(err, pgx.ErrNoRows) {
		return User{}, ErrNoUser
	}
	if err != nil {
		return User{}, fmt.Errorf("read a person: %w", err)
	}
	return user, nil
}

func scanUser(row pgx.CollectableRow) (User, error) {
	var user User
	err := row.Scan(&user.ID, &user.Email, &user.Name, &user.Zone, &user.CreatedAt)
	return user, err
}
