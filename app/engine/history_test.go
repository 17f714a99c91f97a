package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

func TestHistoryHasEveryWaitAndTry(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		if tries.Add(1) == 1 {
			return engine.Reply{Retryable: true, Failure: &engine.Failure{Class: "mail_trouble", Message: "Not reached."}}
		}
		return engine.Reply{Output: []byte(`{}`)}
	}))
	h.work()
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	p := h.awaitEnd(run)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		history, err := engine.HistoryOf(ctx, tx, run, []engine.StepRunID{p.Steps[0].ID})
		require.NoError(t, err)
		step := p.Steps[0].ID
		require.Len(t, history.Waits, 1)
		require.Len(t, history.Waits[step], 1)
		wait := history.Waits[step][0]
		require.Equal(t, engine.WaitRetry, wait.Kind)
		require.NotNil(t, wait.ClosedAt)
		require.Equal(t, "Not reached.", wait.Reason)
		require.Len(t, history.Attempts[step], 2)
		require.Equal(t, "Not reached.", history.Attempts[step][0].Failure.Message)
		require.Nil(t, history.Attempts[step][1].Failure, "a failure belongs to its try only")
		none, err := engine.HistoryOf(ctx, tx, tenants.NewID[engine.Run](), []engine.StepRunID{p.Steps[0].ID})
		require.Empty(t, none.Waits)
		require.Empty(t, none.Attempts)
		return err
	})
}

// A run's values are had by that run only, in whole or as a beginning, also those that
// are kept in pieces.
func TestValuesOfARun(t *testing.T) {
	t.Parallel()
	large := `"` + string(bytes.Repeat([]byte("wörter "), 400_000)) + `"`
	h := build(t, nil)
	id := h.publish(oneReviewWithout())
	run, other := h.start(id, `{"n": 1}`), h.start(id, `{"n": `+"2"+`, "text": `+large+`}`)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		small, err := engine.RunByID(ctx, tx, run)
		require.NoError(t, err)
		big, err := engine.RunByID(ctx, tx, other)
		require.NoError(t, err)

		preview, err := engine.PreviewOf(ctx, tx, run, small.Input, 100)
		require.NoError(t, err)
		require.True(t, preview.Whole())
		require.JSONEq(t, `{"n": 1}`, string(preview.Bytes))
		preview, err = engine.PreviewOf(ctx, tx, other, big.Input, 100)
		require.NoError(t, err)
		require.False(t, preview.Whole())
		require.Len(t, preview.Bytes, 100)
		require.Greater(t, preview.Size, int64(2_000_000))

		whole, err := engine.ValueOf(ctx, tx, other, big.Input)
		require.NoError(t, err)
		require.Equal(t, preview.Size, int64(len(whole.Bytes)))
		require.True(t, json.Valid(whole.Bytes))
		require.Equal(t, preview.Bytes, whole.Bytes[:100])

		_, err = engine.ValueOf(ctx, tx, run, big.Input)
		require.ErrorIs(t, err, engine.ErrNoValue, "another run's")
		_, err = engine.PreviewOf(ctx, tx, run, big.Input, 100)
		require.ErrorIs(t, err, engine.ErrNoValue)
		_, err = engine.ValueOf(ctx, tx, run, engine.DigestOf([]byte("unknown")))
		require.ErrorIs(t, err, engine.ErrNoValue)
		return nil
	})
}

func oneReviewWithout() string { return fmt.Sprintf(oneReview, "") }

// Lists, counts and the line of one run agree on how runs stand and since when.
func TestLinesSayHowRunsStand(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(oneReviewWithout())
	h.work()
	asked := h.start(id, `{"n": 1}`)
	_, step := h.awaitWait(asked, engine.WaitReview)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		line, err := engine.LineByID(ctx, tx, asked)
		require.NoError(t, err)
		require.Equal(t, engine.StandingPerson, line.Standing)
		require.Equal(t, engine.WaitReview, line.Wait)
		require.Equal(t, "Check", line.StepName)
		history, err := engine.HistoryOf(ctx, tx, asked, []engine.StepRunID{step})
		require.NoError(t, err)
		require.True(t, history.Waits[step][0].OpenedAt.Equal(line.Since))
		newest, err := engine.NewestRuns(ctx, tx)
		require.NoError(t, err)
		require.Equal(t, asked, newest[id].Run.ID)
		sizes, err := engine.GroupSizes(ctx, tx, engine.Filter{Pipeline: id})
		require.NoError(t, err)
		require.Equal(t, map[engine.Group]int{"": 1, engine.GroupOpen: 1, engine.GroupPerson: 1, engine.GroupCapped: 0, engine.GroupPaused: 0, engine.GroupQueued: 0,
			engine.GroupFailed: 0, engine.GroupCompleted: 0, engine.GroupCancelled: 0}, sizes)
		sizes, err = engine.GroupSizes(ctx, tx, engine.Filter{Pipeline: tenants.NewID[pipeline.Pipeline]()})
		require.Zero(t, sizes[""])
		_, missing := engine.LineByID(ctx, tx, tenants.NewID[engine.Run]())
		require.ErrorIs(t, missing, engine.ErrNoRun)
		return err
	})
}

// The cap that a pipeline says for its runs binds each run from its start.
func TestRunHasTheCapOfItsPipeline(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	document, err := pipeline.Parse([]byte(oneQuestion))
	require.NoError(t, err)
	tiny := int64(1)
	document.RunCap = &tiny
	run := h.start(h.publish(string(document.JSON())), `{"n": 1}`)
	p, step := h.awaitWait(run, engine.WaitCap)
	require.Contains(t, p.Waits[step].Reason, "This run's pretend AI spend cap")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		cost, err := ledger.RunCost(ctx, tx, ledger.RunID(run))
		require.Equal(t, ledger.Micros(1), *cost.Pretend.Limit)
		require.Equal(t, ledger.Micros(1), *cost.Real.Limit)
		return err
	})
}
