package review_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

// Who can still answer is told by run; answers and ended questions drop out, and so do
// other workspaces.
func TestOpenQuestionsOfRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Policy = review.Policy{Rule: review.RuleAll}
	id := b.open(t, q)
	asked := func() []review.Asked {
		var all map[[16]byte][]review.Asked
		require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			all, err = b.room.OpenOfRuns(ctx, tx, [][16]byte{b.run, tenants.NewID[string]()}, b.ben)
			return err
		}))
		require.LessOrEqual(t, len(all), 1)
		return all[b.run]
	}
	first := asked()
	require.Len(t, first, 1)
	require.Equal(t, id, first[0].Review)
	require.Equal(t, b.stepRun, first[0].StepRun)
	require.Equal(t, []string{"Ben Okonkwo", "Chi Lin", "Kim Lee"}, first[0].Names)
	require.True(t, first[0].Asks(b.ben))
	require.False(t, first[0].Asks(b.owner))
	require.False(t, first[0].Asks(tenants.UserID{}), "somebody from outside is nobody's own")

	_, err := b.decide(t, b.byLink(t, id, "ben@example.com", review.Approve))
	require.NoError(t, err)
	require.Equal(t, []string{"Chi Lin", "Kim Lee"}, asked()[0].Names)
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		bySteps, err := b.room.OpenOfSteps(ctx, tx, [][16]byte{b.stepRun, tenants.NewID[string]()})
		require.Equal(t, map[[16]byte][]review.Asked{b.stepRun: asked()}, bySteps)
		return err
	}))

	require.NoError(t, b.db.InTx(t.Context(), b.otherTenant, func(ctx context.Context, tx tenants.Tx) error {
		all, err := b.room.OpenOfRuns(ctx, tx, [][16]byte{b.run}, b.ben)
		require.Empty(t, all)
		return err
	}))
	closed, err := b.close(t, id, review.OutcomeCancelled)
	require.NoError(t, err)
	require.True(t, closed)
	require.Empty(t, asked())
}
