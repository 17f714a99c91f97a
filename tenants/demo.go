package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The demo workspace of local mode, and its invented people.
const (
	demoName = "Nordlicht Handel"
	demoZone = "Europe/Berlin"
)

// DemoOwner is the address of the one who owns the demo workspace.
const DemoOwner = "ana.berger@nordlicht.example"

var demoPeople = []struct {
	email, name string
	role        Role
}{
	{DemoOwner, "Ana Berger", Owner},
	{"katharina.vogt@nordlicht.example", "Katharina Vogt", Admin},
	{"ben.okonkwo@nordlicht.example", "Ben Okonkwo", Builder},
	{"chi.nguyen@nordlicht.example", "Chi Nguyen", Reviewer},
	{"leila.haddad@nordlicht.example", "Leila Haddad", Finance},
	{"jonas.lindqvist@nordlicht.example", "Jonas Lindqvist", Auditor},
	{"mia.sato@nordlicht.example", "Mia Satō", Viewer},
}

// SeedDemo makes the demo workspace with its people, or finds the one that is there,
// and returns its owner. It can be called at every start, by several processes at once.
func SeedDemo(ctx context.Context, stx SystemTx) (Membership, error) {
	if _, err := stx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('demo workspace', 0))`); err != nil {
		return Membership{}, fmt.Errorf("lock the demo workspace: %w", err)
	}
	tenant, err := demoTenant(ctx, stx)
	if err != nil {
		return Membership{}, err
	}
	for _, person := range demoPeople {
		user, _, err := ensureUser(ctx, stx, person.email, person.name, demoZone)
		if err != nil {
			return Membership{}, err
		}
		_, err = stx.Exec(ctx, `INSERT INTO members (tenant_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant_id, user_id) DO NOTHING`, tenant.ID, user.ID, person.role, stx.Now)
		if err != nil {
			return Membership{}, fmt.Errorf("add %s to the demo workspace: %w", person.name, err)
		}
	}
	people, err := DemoPeople(ctx, stx)
	if err != nil {
		return Membership{}, err
	}
	return people[0], nil
}

// DemoPeople lists those one can continue as in local mode, the owner first. Only the
// invented people are among them, whoever else joined the workspace.
func DemoPeople(ctx context.Context, stx SystemTx) ([]Membership, error) {
	emails := make([]string, len(demoPeople))
	for i, person := range demoPeople {
		emails[i] = person.email
	}
	rows, _ := stx.Query(ctx, `SELECT `+membershipColumns+`
		WHERE t.demo AND u.email = ANY($1) ORDER BY array_position($1, u.email)`, emails)
	return collectMemberships(rows)
}

func demoTenant(ctx context.Context, stx SystemTx) (Tenant, error) {
	tenant := Tenant{ID: NewID[Tenant](), Name: demoName, Zone: demoZone, Demo: true, CreatedAt: stx.Now}
	err := stx.QueryRow(ctx, `SELECT id FROM tenants WHERE demo ORDER BY id LIMIT 1`).Scan(&tenant.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant, insertTenant(ctx, stx, tenant)
	}
	if err != nil {
		return Tenant{}, fmt.Errorf("look for the demo workspace: %w", err)
	}
	return tenant, nil
}
