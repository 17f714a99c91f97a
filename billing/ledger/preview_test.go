package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// What the next run may cost is read off the newest that ended well, with the runs that
// they started.
func TestPreviewOfWhatARunCosts(t *testing.T) {
	t.Parallel()
	b := open(t)
	preview := func(version, runs int) ledger.Preview {
		var p ledger.Preview
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			got, err := ledger.PreviewOf(ctx, tx, b.pipeline, version, ledger.Real, runs)
			p = got
			return err
		})
		return p
	}
	require.Zero(t, preview(1, 12).Runs)
	finish := func(s step) {
		_, err := b.Super(t).Exec(t.Context(), `UPDATE runs SET state = 'completed', ended_at = now() WHERE id = $1`, s.run)
		require.NoError(t, err)
	}
	var last step
	for n := range 4 {
		last = b.run(t)
		b.charge(t, last, time.Time{}, int64(100*n))
		b.charge(t, last, time.Time{}, 5)
		finish(last)
	}
	child := b.run(t)
	h := child.hold(40)
	h.Ancestors = []ledger.RunID{last.run}
	require.NoError(t, b.hold(t, h))
	require.NoError(t, b.settle(t, ledger.SettleUnknown(h.ID)))
	b.charge(t, b.run(t), time.Time{}, 10_000) // that has not ended

	require.Equal(t, ledger.Preview{Runs: 3, Average: (105 + 205 + 345) / 3, Least: 105, Most: 345,
		Steps: []ledger.StepPreview{{StepID: "ask", Calls: 6, Each: 103, PerRun: 205}}}, preview(1, 3))
	require.Equal(t, 4, preview(1, 12).Runs)
	require.Zero(t, preview(2, 12).Runs)
}
