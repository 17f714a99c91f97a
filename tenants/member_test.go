package tenants_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// signedUp is a person who signed in by code.
func signedUp(t *testing.T, d *door, email string) tenants.User {
	t.Helper()
	outcome := d.verify(email, d.digits(email))
	require.NoError(t, outcome.Refused)
	return outcome.User
}

func create(t *testing.T, db *dbtest.Database, name string, owner tenants.User) tenants.Membership {
	t.Helper()
	var made tenants.Membership
	inSystem(t, db, func(ctx context.Context, stx tenants.SystemTx) {
		var err error
		made, err = tenants.CreateTenant(ctx, stx, name, "Europe/Berlin", owner)
		require.NoError(t, err)
	})
	return made
}

func TestCreateTenantMakesItsOwner(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	ana := signedUp(t, d, "ana@example.com")
	first, second := create(t, d.db, "  Zeta  ", ana), create(t, d.db, "Alpha", ana)
	require.Equal(t, "Zeta", first.Tenant.Name)

	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		all, err := tenants.MembershipsOf(ctx, stx, ana.ID)
		require.NoError(t, err)
		require.Equal(t, []tenants.Membership{second, first}, all, "by name")
	})
	inTenant(t, d.db, first.Tenant.ID, func(ctx context.Context, tx tenants.Tx) {
		members, err := tenants.Members(ctx, tx)
		require.NoError(t, err)
		require.Equal(t, []tenants.Membership{first}, members)
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "workspace", ID: first.Tenant.ID}, tenants.AuditID{})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, "workspace.created", entries[0].Action)
		require.Equal(t, tenants.ByMember(first), entries[0].Actor)
	})
}

func TestNamesAndZonesAreChecked(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	ana := signedUp(t, d, "ana@example.com")
	for _, test := range []struct{ name, zone, field string }{
		{"", "UTC", "name"},
		{" \t ", "UTC", "name"},
		{strings.Repeat("ä", 201), "UTC", "name"},
		{"Hi\r\nBcc: x@example.com", "UTC", "name"},
		{"a\x00b", "UTC", "name"},
		{"a\xffb", "UTC", "name"},
		{"a\u202eb", "UTC", "name"},
		{"\u200b", "UTC", "name"},
		{"Acme", "", "zone"},
		{"Acme", "Local", "zone"},
		{"Acme", "Mars/Olympus", "zone"},
		{"Acme", "../../etc/passwd", "zone"},
		{strings.Repeat("ä", 200), "Asia/Kolkata", ""},
		{"عبد الرحمن 👩‍💻", "UTC", ""},
		{"<a href=//evil.example>", "UTC", ""},
	} {
		err := d.db.InSystemTx(t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
			made, err := tenants.CreateTenant(ctx, stx, test.name, test.zone, ana)
			require.Equal(t, test.field != "", made.Tenant.ID.IsZero(), "%q %q", test.name, test.zone)
			return err
		})
		if test.field == "" {
			require.NoError(t, err, "%q %q", test.name, test.zone)
			continue
		}
		var invalid *tenants.Invalid
		require.ErrorAs(t, err, &invalid, "%q %q", test.name, test.zone)
		require.Equal(t, test.field, invalid.Field)
	}
}

func TestAddMemberKeepsToTheGrant(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	ana, ben, chi := signedUp(t, d, "ana@example.com"), signedUp(t, d, "ben@example.com"), signedUp(t, d, "chi@example.com")
	owner := create(t, d.db, "Acme", ana)
	elsewhere := create(t, d.db, "Elsewhere", ana)
	add := func(by tenants.Membership, user tenants.User, role tenants.Role) error {
		return d.db.InTx(t.Context(), owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
			return tenants.AddMember(ctx, tx, by, user.ID, role)
		})
	}
	var forbidden *tenants.Forbidden
	var invalid *tenants.Invalid
	require.ErrorAs(t, add(elsewhere, ben, tenants.Admin), &forbidden, "an owner of another workspace")
	require.ErrorAs(t, add(owner, ben, "root"), &invalid)
	require.NoError(t, add(owner, ben, tenants.Admin))
	require.ErrorIs(t, add(owner, ben, tenants.Viewer), tenants.ErrAlreadyMember)

	admin := tenants.Membership{Tenant: owner.Tenant, User: ben, Role: tenants.Admin}
	require.ErrorAs(t, add(admin, chi, tenants.Owner), &forbidden, "more than she holds")
	require.ErrorAs(t, add(tenants.Membership{Tenant: owner.Tenant, User: ben, Role: tenants.Builder}, chi, tenants.Viewer), &forbidden)
	require.NoError(t, add(admin, chi, tenants.Reviewer))

	inTenant(t, d.db, owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) {
		found, err := tenants.MemberByUser(ctx, tx, chi.ID)
		require.NoError(t, err)
		require.Equal(t, tenants.Reviewer, found.Role)
		require.NoError(t, found.Require(tenants.Decide))
		require.ErrorAs(t, found.Require(tenants.SetCaps), &forbidden)
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "member", ID: chi.ID}, tenants.AuditID{})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, map[string]any{"role": "reviewer"}, entries[0].Detail)
	})
	inTenant(t, d.db, elsewhere.Tenant.ID, func(ctx context.Context, tx tenants.Tx) {
		_, err := tenants.MemberByUser(ctx, tx, chi.ID)
		require.ErrorIs(t, err, tenants.ErrNotMember)
	})
}

func TestPeopleAreOnlyThoseOfTheTenant(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	ana, ben := signedUp(t, d, "ana@example.com"), signedUp(t, d, "ben@example.com")
	owner := create(t, d.db, "Acme", ana)
	create(t, d.db, "Other", ben)
	inTenant(t, d.db, owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) {
		people, err := tenants.People(ctx, tx, []tenants.UserID{ana.ID, ben.ID})
		require.NoError(t, err)
		require.Len(t, people, 1)
		require.Equal(t, "ana@example.com", people[ana.ID].Email)
		names, err := tenants.Names(ctx, tx, []tenants.UserID{ana.ID, ben.ID})
		require.NoError(t, err)
		require.Equal(t, map[tenants.UserID]string{ana.ID: "Ana", ben.ID: tenants.FormerMember}, names)
		names, err = tenants.Names(ctx, tx, nil)
		require.NoError(t, err)
		require.Empty(t, names)
	})
	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		found, err := tenants.UserByID(ctx, stx, ben.ID)
		require.NoError(t, err)
		require.Equal(t, "Ben", found.Name)
		_, err = tenants.UserByID(ctx, stx, tenants.NewID[tenants.User]())
		require.ErrorIs(t, err, tenants.ErrNoUser)
		require.ErrorIs(t, tenants.RenameUser(ctx, stx, tenants.NewID[tenants.User](), "X"), tenants.ErrNoUser)
		var invalid *tenants.Invalid
		require.ErrorAs(t, tenants.RenameUser(ctx, stx, ben.ID, "a\nb"), &invalid)
	})
}
