package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// member is the owner of the house as a member.
func (h *house) member() tenants.Membership {
	h.t.Helper()
	var m tenants.Membership
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		m, err = tenants.MemberByUser(ctx, tx, h.owner)
		return err
	})
	return m
}

func (h *house) stopped(filter engine.StoppedFilter) ([]engine.Stopped, int) {
	h.t.Helper()
	var found []engine.Stopped
	var total int
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		found, total, err = h.engine.StoppedRuns(ctx, tx, filter)
		return err
	})
	return found, total
}

func (h *house) fitting() int {
	h.t.Helper()
	n, err := h.engine.ResumeFitting(h.t.Context())
	require.NoError(h.t, err)
	return n
}

func TestStoppedRunsSayWhatTheyNeedAndWaitForAWordWhereAsked(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.cap(0)
	h.work()
	id := h.publish(oneQuestion)
	first := h.start(id, `{"n": 1}`)
	h.awaitWait(first, engine.WaitCap)
	second := h.start(id, `{"n": 2}`)
	h.awaitWait(second, engine.WaitCap)
	found, total := h.stopped(engine.StoppedFilter{Limit: 1})
	require.Equal(t, 2, total)
	require.Len(t, found, 1)
	require.Equal(t, first, found[0].Run.ID, "the longest stopped first")
	require.Positive(t, found[0].Needs)
	require.Equal(t, ledger.Pretend, found[0].Funds)
	require.Contains(t, found[0].Reason, "cap is $0.00")
	require.False(t, found[0].AsksWord)
	_, none := h.stopped(engine.StoppedFilter{Run: tenants.NewID[engine.Run]()})
	require.Zero(t, none)

	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return engine.AskWord(ctx, tx, engine.StoppedFilter{Run: second})
	})
	h.cap(10_000_000)
	h.awaitEnd(first) // goes on by itself
	require.Zero(t, h.fitting())
	found, total = h.stopped(engine.StoppedFilter{})
	require.Equal(t, 1, total, "the other waits for a word")
	require.True(t, found[0].AsksWord)
	woken, err := h.engine.LetGoOn(t.Context(), h.member(), engine.StoppedFilter{Run: second})
	require.NoError(t, err)
	require.Equal(t, 1, woken)
	require.Equal(t, engine.RunCompleted, h.awaitEnd(second).Run.State)
	h.requireSound()
}

// At the turn of a month there is new money. Who wants to be asked is asked before runs
// that were stopped in the old one use it; who does not is not.
func TestRunsStoppedInTheOldMonthAskBeforeTheyUseTheNewOnesMoney(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.cap(0)
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	h.work()
	_, step := h.awaitWait(run, engine.WaitCap)
	_, err := h.super().Exec(t.Context(), `UPDATE waits SET opened_at = now() - interval '32 days' WHERE step_run_id = $1`, step)
	require.NoError(t, err)
	h.cap(10_000_000)
	require.Zero(t, h.fitting(), "it asks by default")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		out, err := ledger.Make(ctx, tx, ledger.Change{Settings: &ledger.Settings{TurnAsks: false}}, "", "key", h.member())
		require.True(t, out.Done)
		return err
	})
	h.fitting()
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

func TestOnlyThoseWhoMayLetStoppedRunsGoOn(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	viewer := h.member()
	viewer.Role = tenants.Viewer
	_, err := h.engine.LetGoOn(t.Context(), viewer, engine.StoppedFilter{})
	require.ErrorAs(t, err, new(*tenants.Forbidden))
}
