package tenants_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestDemoIsSeededOnceByAnyNumberOfStarts(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	owners := make([]tenants.Membership, 8)
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			inSystem(t, db, func(ctx context.Context, stx tenants.SystemTx) {
				var err error
				owners[i], err = tenants.SeedDemo(ctx, stx)
				require.NoError(t, err)
			})
		})
	}
	all.Wait()
	for _, owner := range owners {
		require.Equal(t, owners[0].Tenant.ID, owner.Tenant.ID)
		require.Equal(t, tenants.Owner, owner.Role)
	}
	inSystem(t, db, func(ctx context.Context, stx tenants.SystemTx) {
		people, err := tenants.DemoPeople(ctx, stx)
		require.NoError(t, err)
		require.Len(t, people, 7)
		roles := map[tenants.Role]bool{}
		for _, person := range people {
			require.True(t, person.Tenant.Demo)
			require.Regexp(t, `@nordlicht\.example$`, person.User.Email)
			roles[person.Role] = true
		}
		require.Len(t, roles, len(tenants.Roles()), "one of each role")
		require.Equal(t, "Nordlicht Handel", people[0].Tenant.Name)
		require.Equal(t, "Europe/Berlin", people[0].Tenant.Zone)
	})
}

// Only invented people can be continued as, not those who joined them.
func TestDemoPeopleAreTheInventedOnes(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	var owner tenants.Membership
	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		people, err := tenants.DemoPeople(ctx, stx)
		require.NoError(t, err)
		require.Empty(t, people)
		owner, err = tenants.SeedDemo(ctx, stx)
		require.NoError(t, err)
	})
	joined := signedUp(t, d, "real@example.com")
	create(t, d.db, "Real", joined)
	inTenant(t, d.db, owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) {
		require.NoError(t, tenants.AddMember(ctx, tx, owner, joined.ID, tenants.Viewer))
	})
	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		people, err := tenants.DemoPeople(ctx, stx)
		require.NoError(t, err)
		for _, person := range people {
			require.NotEqual(t, joined.ID, person.User.ID)
			require.Equal(t, owner.Tenant.ID, person.Tenant.ID)
		}
	})
}
