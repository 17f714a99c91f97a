package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
)

// A call that a limit of ours leaves no room for is not made: the step waits, without a
// worker and without money, says so, and has lost no try when there is room again.
func TestStepWithoutRoomWaitsAndLosesNoTry(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	long := 400 * time.Millisecond
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		if call.Attempt != 1 {
			t.Errorf("try %d", call.Attempt)
		}
		if asked.Add(1) <= 7 { // more often than the step is tried at most
			return engine.Reply{NotCalled: true, RetryAfter: long,
				Failure: &engine.Failure{Class: "rate_limited_here", Message: "The key’s 60,000 tokens a minute are used up."}}
		}
		return engine.Reply{Output: []byte(`{"text":"here"}`)}
	})})
	h.work()
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	p, step := h.awaitWait(run, engine.WaitRetry)
	if wait, waits := p.Waits[step]; waits { // it may be at its next look already
		require.True(t, wait.Uncalled)
		require.Contains(t, wait.Reason, "60,000 tokens")
		require.NotNil(t, wait.Due)
	}
	p = h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.EqualValues(t, 8, asked.Load())
	require.Equal(t, 1, p.Steps[0].Attempt)
	require.Zero(t, p.Steps[0].CostMicros)
	h.requireSound()
}
