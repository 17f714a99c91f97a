package tenants_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// The whole table once more, so that nobody gains a right by a slip.
func TestRolesMayDoExactlyThis(t *testing.T) {
	t.Parallel()
	actions := []tenants.Action{
		tenants.Read, tenants.StartRuns, tenants.BuildPipelines, tenants.Decide, tenants.SeeMoney,
		tenants.SetCaps, tenants.SeeAudit, tenants.ManageMembers, tenants.ManageWorkspace, tenants.AllowSharing,
	}
	want := map[tenants.Role]string{ //     R S B D $ C A M W O
		tenants.Owner:    "x x x x x x x x x x",
		tenants.Admin:    "x x x x x x x x x .",
		tenants.Builder:  "x x x x x . . . . .",
		tenants.Reviewer: "x . . x . . . . . .",
		tenants.Finance:  "x . . x x x . . . .",
		tenants.Auditor:  "x . . . x . x . . .",
		tenants.Viewer:   "x . . . . . . . . .",
	}
	got := map[tenants.Role]string{}
	for _, role := range tenants.Roles() {
		row := ""
		for _, action := range actions {
			mark := " ."
			if role.May(action) {
				mark = " x"
			}
			row += mark
		}
		got[role] = row[1:]
		require.NotEmpty(t, role.Sentence())
	}
	require.Empty(t, cmp.Diff(want, got))
	require.False(t, tenants.Role("root").May(tenants.Read))
	require.False(t, tenants.Role("").May(tenants.Read))
	require.False(t, tenants.Owner.May("anything"))
}

func TestNobodyGrantsMoreThanSheHolds(t *testing.T) {
	t.Parallel()
	for _, given := range tenants.Roles() {
		require.True(t, tenants.Owner.MayGrant(given))
		require.Equal(t, given != tenants.Owner, tenants.Admin.MayGrant(given))
		for _, role := range []tenants.Role{tenants.Builder, tenants.Reviewer, tenants.Finance, tenants.Auditor, tenants.Viewer, "root"} {
			require.False(t, role.MayGrant(given), "%s gives %s", role, given)
		}
	}
	require.False(t, tenants.Owner.MayGrant("root"))
}

func TestRefusalSaysWhoCanHelp(t *testing.T) {
	t.Parallel()
	people := []tenants.Membership{
		{User: tenants.User{Name: "Chi"}, Role: tenants.Reviewer},
		{User: tenants.User{Name: "Ana"}, Role: tenants.Owner},
		{User: tenants.User{Name: "Leila"}, Role: tenants.Finance},
	}
	require.Equal(t, "Only an owner, an admin or a finance member can change spend caps. Ask Ana or Leila.",
		tenants.SetCaps.Refusal(people))
	require.Equal(t, "Only an owner, an admin or a builder can build and publish pipelines.",
		tenants.BuildPipelines.Refusal(people[:1]))
}

// The table's check and the code name the same roles.
func TestRolesAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	inSystem(t, db, func(ctx context.Context, stx tenants.SystemTx) {
		for _, role := range tenants.Roles() {
			user, err := stx.Exec(ctx, `WITH u AS (INSERT INTO users (id, email, name) VALUES ($1, $2, 'x') RETURNING id)
				INSERT INTO members (tenant_id, user_id, role) SELECT $3, id, $4 FROM u`,
				tenants.NewID[tenants.User](), string(role)+"@example.com", tenant, role)
			require.NoError(t, err)
			require.EqualValues(t, 1, user.RowsAffected())
			parsed, err := tenants.ParseRole(string(role))
			require.NoError(t, err)
			require.Equal(t, role, parsed)
		}
	})
	_, err := tenants.ParseRole("Owner")
	var invalid *tenants.Invalid
	require.ErrorAs(t, err, &invalid)
}

// inSystem runs fn in a committed system transaction.
func inSystem(t *testing.T, db *dbtest.Database, fn func(context.Context, tenants.SystemTx)) {
	t.Helper()
	require.NoError(t, db.InSystemTx(t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		fn(ctx, stx)
		return nil
	}))
}

// inTenant runs fn in a committed transaction of the tenant.
func inTenant(t *testing.T, db *dbtest.Database, tenant tenants.ID, fn func(context.Context, tenants.Tx)) {
	t.Helper()
	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		fn(ctx, tx)
		return nil
	}))
}
