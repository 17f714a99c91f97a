package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Membership is a person in a tenant, with her role there.
type Membership struct {
	Tenant Tenant
	User   User
	Role   Role
	Since  time.Time
}

var (
	// ErrNotMember means that the person is not in the tenant. Pages answer it like a
	// tenant that does not exist.
	ErrNotMember = errors.New("not a member of this workspace")
	// ErrAlreadyMember means that the person to be added is in the tenant already.
	ErrAlreadyMember = errors.New("already a member of this workspace")
)

// Require returns a *Forbidden unless the member may do the action.
func (m Membership) Require(action Action) error {
	if m.Role.May(action) {
		return nil
	}
	return &Forbidden{Action: action, Role: m.Role}
}

// CreateTenant makes a workspace and its first owner, and puts both on record. The
// errors for a name or zone that cannot be taken are *Invalid.
func CreateTenant(ctx context.Context, stx SystemTx, name, zone string, owner User) (Membership, error) {
	name, err := cleanName(name)
	if err != nil {
		return Membership{}, err
	}
	if err := checkZone(zone); err != nil {
		return Membership{}, err
	}
	tenant := Tenant{ID: NewID[Tenant](), Name: name, Zone: zone, CreatedAt: stx.Now}
	if err := insertTenant(ctx, stx, tenant); err != nil {
		return Membership{}, err
	}
	first := Membership{Tenant: tenant, User: owner, Role: Owner, Since: stx.Now}
	if err := insertMember(ctx, stx, first); err != nil {
		return Membership{}, err
	}
	return first, AuditSystem(ctx, stx, tenant.ID, Entry{
		Actor:  ByMember(first),
		Action: "workspace.created",
		Target: Target{Kind: "workspace", ID: tenant.ID},
	})
}

// AddMember puts a person into the tenant that by is a member of, and on record. by
// may give only what she may grant (*Forbidden); the person must not be in yet
// (ErrAlreadyMember).
func AddMember(ctx context.Context, tx Tx, by Membership, user UserID, role Role) error {
	if _, err := ParseRole(string(role)); err != nil {
		return err
	}
	if by.Tenant.ID != tx.Tenant || !by.Role.May(ManageMembers) || !by.Role.MayGrant(role) {
		return &Forbidden{Action: ManageMembers, Role: by.Role}
	}
	added := Membership{Tenant: by.Tenant, User: User{ID: user}, Role: role, Since: tx.Now}
	if err := insertMember(ctx, tx, added); err != nil {
		return err
	}
	return Audit(ctx, tx, Entry{
		Actor:  ByMember(by),
		Action: "member.added",
		Target: Target{Kind: "member", ID: user},
		Detail: map[string]any{"role": role},
	})
}

const membershipColumns = `m.role, m.created_at,
	u.id, u.email, u.name, u.zone, u.created_at,
	t.id, t.name, t.zone, t.demo, t.created_at
	FROM members m JOIN users u ON u.id = m.user_id JOIN tenants t ON t.id = m.tenant_id`

// Members lists everybody in the tenant by name.
func Members(ctx context.Context, tx Tx) ([]Membership, error) {
	rows, _ := tx.Query(ctx, `SELECT `+membershipColumns+`
		WHERE m.tenant_id = $1 ORDER BY u.name, u.id`, tx.Tenant)
	return collectMemberships(rows)
}

// MemberByUser finds one person in the tenant, or returns ErrNotMember.
func MemberByUser(ctx context.Context, tx Tx, user UserID) (Membership, error) {
	rows, _ := tx.Query(ctx, `SELECT `+membershipColumns+`
		WHERE m.tenant_id = $1 AND m.user_id = $2`, tx.Tenant, user)
	found, err := collectMemberships(rows)
	if err == nil && len(found) == 0 {
		return Membership{}, ErrNotMember
	}
	if err != nil {
		return Membership{}, err
	}
	return found[0], nil
}

// MembershipsOf lists the workspaces of a person by name.
func MembershipsOf(ctx context.Context, stx SystemTx, user UserID) ([]Membership, error) {
	rows, _ := stx.Query(ctx, `SELECT `+membershipColumns+`
		WHERE m.user_id = $1 ORDER BY t.name, t.id`, user)
	return collectMemberships(rows)
}

func collectMemberships(rows pgx.Rows) ([]Membership, error) {
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Membership, error) {
		var m Membership
		err := row.Scan(&m.Role, &m.Since,
			&m.User.ID, &m.User.Email, &m.User.Name, &m.User.Zone, &m.User.CreatedAt,
			&m.Tenant.ID, &m.Tenant.Name, &m.Tenant.Zone, &m.Tenant.Demo, &m.Tenant.CreatedAt)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read members: %w", err)
	}
	return found, nil
}

func insertTenant(ctx context.Context, stx SystemTx, tenant Tenant) error {
	_, err := stx.Exec(ctx, `INSERT INTO tenants (id, name, zone, demo, created_at) VALUES ($1, $2, $3, $4, $5)`,
		tenant.ID, tenant.Name, tenant.Zone, tenant.Demo, tenant.CreatedAt)
	if err != nil {
		return fmt.Errorf("create a workspace: %w", err)
	}
	return nil
}

func insertMember(ctx context.Context, tx pgx.Tx, m Membership) error {
	_, err := tx.Exec(ctx, `INSERT INTO members (tenant_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)`,
		m.Tenant.ID, m.User.ID, m.Role, m.Since)
	if _, duplicate := IsDuplicate(err); duplicate {
		return ErrAlreadyMember
	}
	if err != nil {
		return fmt.Errorf("add a member: %w", err)
	}
	return nil
}
