package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// replayed puts the run's step to a model, twice by the same form.
func (h *house) replayed(run engine.RunID, step engine.StepRunID, model string) engine.ReplayID {
	h.t.Helper()
	hand := engine.Hand{By: tenants.ByMember(h.member()), Key: tenants.NewID[engine.Replay]().String()}
	var ids [2]engine.ReplayID
	for i := range ids {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			plan, err := h.engine.PlanReplay(ctx, tx, run, step, []string{model, "nobody/knows"})
			require.NoError(h.t, err)
			require.True(h.t, plan.Choices[0].Known)
			require.Positive(h.t, plan.Choices[0].Quote.Amount)
			require.False(h.t, plan.Choices[1].Known)
			ids[i], err = h.engine.StartReplay(ctx, tx, run, step, model, plan.Mark, hand)
			return err
		})
	}
	require.Equal(h.t, ids[0], ids[1])
	require.Equal(h.t, 1, h.count(`SELECT count(*) FROM replays WHERE id = $1`, ids[0]))
	return ids[0]
}

func (h *house) awaitReplay(run engine.RunID, id engine.ReplayID) engine.Replay {
	h.t.Helper()
	var replay engine.Replay
	require.Eventually(h.t, func() bool {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			var err error
			replay, err = engine.ReplayByID(ctx, tx, run, id)
			return err
		})
		return replay.State.Final()
	}, 20*time.Second, 20*time.Millisecond)
	return replay
}

// A finished step is put to another model: it is asked the same, its answer stands beside,
// its cost is a test's, and neither the run nor the step is another one after it.
func TestStepIsPutToAnotherModel(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	servers[firstModel].Play(fakellm.Turn{Text: `{"kind":"order"}`})
	servers[secondModel].Play(fakellm.Turn{Text: `{"kind":"other"}`, Usage: []byte(`{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}`)})
	h.work()
	run := h.start(h.publish(asksModels([]string{firstModel}, oneField)), `{"n": 12}`)
	before := h.awaitEnd(run)
	step := before.Steps[0]
	id := h.replayed(run, step.ID, secondModel)
	replay := h.awaitReplay(run, id)
	require.Equal(t, engine.ReplayDone, replay.State, "%+v", replay.Failure)
	require.JSONEq(t, `{"kind": "other"}`, h.value(replay.Output))
	require.NotNil(t, replay.Charge)
	require.Equal(t, ledger.Test, replay.Charge.Kind)
	require.EqualValues(t, 100*2+10*10, replay.Charge.Cost)
	require.Equal(t, servers[firstModel].Seen()[0].User, servers[secondModel].Seen()[0].User, "it is asked the same")
	after := h.progress(run)
	require.Equal(t, before.Run, after.Run)
	require.Equal(t, step, after.Steps[0])
	h.requireSound()

	stranger, _ := h.db.Tenant(t)
	err := h.db.InTx(t.Context(), stranger, func(ctx context.Context, tx tenants.Tx) error {
		_, err := engine.ReplayByID(ctx, tx, run, id)
		return err
	})
	require.ErrorIs(t, err, engine.ErrNoReplay)
	err = h.db.InTx(t.Context(), stranger, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.PlanReplay(ctx, tx, run, step.ID, nil)
		return err
	})
	require.ErrorIs(t, err, engine.ErrNoRun)
}

// What a replay may cost is held under the test budget: one that does not fit is not made.
func TestReplayBeyondTheTestBudgetIsNotMade(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	h.work()
	run := h.start(h.publish(asksModels([]string{firstModel}, "")), `{"n": 12}`)
	step := h.awaitEnd(run).Steps[0]
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		limit := ledger.Micros(10)
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTests(h.tenant), Funds: ledger.Real, Limit: &limit})
	})
	replay := h.awaitReplay(run, h.replayed(run, step.ID, secondModel))
	require.Equal(t, engine.ReplayFailed, replay.State)
	require.Contains(t, replay.Failure.Message, "AI spend cap")
	require.Empty(t, servers[secondModel].Seen())
	require.Nil(t, replay.Charge)
	h.requireSound()
}

// A replay whose worker died is ended and booked, and not made again.
func TestReplayOfADeadWorkerIsEndedAndBooked(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	hangs := make(chan struct{})
	servers[secondModel].Play(fakellm.Turn{Hang: true, OnArrival: func() { close(hangs) }})
	h.work()
	run := h.start(h.publish(asksModels([]string{firstModel}, "")), `{"n": 12}`)
	step := h.awaitEnd(run).Steps[0]
	id := h.replayed(run, step.ID, secondModel)
	<-hangs
	_, err := h.super().Exec(t.Context(), `UPDATE replays SET worker_id = $1`, tenants.NewID[engine.Worker]())
	require.NoError(t, err)
	_, err = h.super().Exec(t.Context(), `INSERT INTO workers (id, name, semantics, slots, stopped_at) SELECT worker_id, 'gone', 1, 0, now() FROM replays`)
	require.NoError(t, err)
	other := h.otherWorker()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go other.RunReplays(ctx)
	replay := h.awaitReplay(run, id)
	require.Equal(t, engine.ReplayFailed, replay.State)
	require.Equal(t, engine.ClassInterrupted, replay.Failure.Class)
	require.NotNil(t, replay.Charge)
	require.True(t, replay.Charge.Tokens.Estimated)
	require.Equal(t, replay.Charge.Reserved, replay.Charge.Cost)
}
