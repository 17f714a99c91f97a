package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// stalled is a caller whose first call hangs until it is let go, as on a worker that is
// frozen.
type stalled struct {
	began   chan struct{}
	release chan struct{}
	seen    calls
	count   atomic.Int32
}

func newStalled() *stalled { return &stalled{began: make(chan struct{}), release: make(chan struct{})} }

func (s *stalled) Call(_ context.Context, call engine.Call) engine.Reply {
	s.seen.add(call.Key)
	if s.count.Add(1) == 1 {
		close(s.began)
		<-s.release
		return engine.Reply{Output: []byte(`{"by": "frozen"}`)}
	}
	return engine.Reply{Output: []byte(`{"by": "second"}`)}
}

// A step whose worker fell silent is done by another, under the same key; when the first
// one thaws, its answer changes nothing.
func TestTakeOverFencesTheFrozenWorker(t *testing.T) {
	t.Parallel()
	caller := newStalled()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindEmail: caller})
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	first, second := h.otherWorker(), h.otherWorker() // by hand: a frozen process fetches nothing more
	args, id := h.slice(run)
	drove := make(chan error, 1)
	go func() { drove <- first.Drive(t.Context(), args, &handJob{id: id, tries: 1}) }()
	<-caller.began
	require.NoError(t, second.BuryOthers(t.Context())) // stands for ten seconds of silence
	taken, err := second.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	args, id = h.slice(run)
	require.NoError(t, second.Drive(t.Context(), args, &handJob{id: id, tries: 1}))
	p := h.progress(run)
	require.Equal(t, engine.RunCompleted, p.Run.State)
	require.JSONEq(t, `{"by": "second"}`, h.value(p.Steps[0].Output))
	close(caller.release)
	require.NoError(t, <-drove)
	attempts := h.attempts(p.Steps[0].ID)
	require.Len(t, attempts, 2)
	require.Equal(t, engine.AttemptInterrupted, attempts[0].Outcome)
	require.Equal(t, engine.AttemptDone, attempts[1].Outcome)
	require.Len(t, caller.seen.all(), 1, "each try carries the same key")
	require.NoError(t, first.Beat(t.Context()))
	after := h.progress(run)
	require.Equal(t, p.Steps, after.Steps, "the frozen worker changed the record")
}

// A commit that is held before it writes, while its slice is taken over and carried on,
// changes nothing when it goes on.
func TestCommitHeldUntilItsSliceIsTakenOverChangesNothing(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	var gate *fault.Gate
	var count atomic.Int32
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		seen.add(call.Key)
		n := count.Add(1)
		if n == 1 {
			gate.Close()
		}
		return engine.Reply{Output: fmt.Appendf(nil, `{"text": "answer %d"}`, n), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 10, Output: 10}}}
	})})
	gate = fault.NewGate(t, h.db.Super(t).Config().ConnString(), `BEFORE INSERT ON stored_values FOR EACH STATEMENT`) // the answer, before its step run is locked
	stop := h.workUntilStopped()
	run := h.start(h.publish(twoQuestions), `{"n": 1}`)
	gate.AwaitHeld()
	other := *h // as in another process
	other.engine = engine.New(h.engine.Config)
	require.NoError(t, other.work().BuryOthers(t.Context()))
	before := h.await(run, "the second step", func(p engine.Progress) bool { return len(p.Steps) == 2 })
	gate.Open() // the run's end would wait for it: it has the run's lock, shared
	p := h.awaitEnd(run)
	stop()
	require.Equal(t, engine.RunCompleted, p.Run.State)
	after := h.progress(run).Steps[0]
	require.Equal(t, 180*int64(p.Steps[0].Attempt), after.CostMicros, "what was booked as an estimate is known by now")
	after.CostMicros = before.Steps[0].CostMicros
	require.Equal(t, before.Steps[0], after, "the held commit changed the record")
	require.EqualValues(t, p.Steps[0].Attempt-1, h.count(`SELECT count(*) FROM corrections`))
	for _, step := range p.Steps {
		require.Equal(t, step.Attempt, seen.all()[step.ID.String()], "each call is on record")
	}
	require.GreaterOrEqual(t, p.Steps[0].Attempt, 2)
	require.EqualValues(t, count.Load(), h.count(`SELECT count(*) FROM charges`), "each call is paid for, once")
	h.requireSound()
}

// Silence alone, without anybody's word, is noticed within the lease and a tick.
func TestSilentWorkerIsTakenOverWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	caller := newStalled()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindEmail: caller})
	h.work()
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	<-caller.began
	h.silence()
	began := time.Now()
	other := h.otherWorker()
	require.Eventually(t, func() bool {
		_, err := other.Reap(t.Context())
		require.NoError(t, err)
		return len(h.attemptsOfRun(run)) > 0 || h.progress(run).Run.State.Final() || h.dispatched(run)
	}, 15*time.Second, 500*time.Millisecond)
	require.Greater(t, time.Since(began), 8*time.Second, "taken over before the lease had run out")
	close(caller.release)
}

// silence moves the working process's beats into a worker that never beats again.
func (h *house) silence() {
	h.t.Helper()
	_, err := h.db.Super(h.t).Exec(h.t.Context(), `
		WITH dead AS (INSERT INTO workers (id, name, semantics) VALUES (gen_random_uuid(), 'silent', 1) RETURNING id)
		UPDATE slices SET worker_id = dead.id FROM dead`)
	require.NoError(h.t, err)
}

// otherWorker is a worker that only reaps; it drives nothing.
func (h *house) otherWorker() *engine.Worker {
	h.t.Helper()
	worker := h.engine.NewWorker("reaper")
	require.NoError(h.t, worker.Beat(h.t.Context()))
	return worker
}

func (h *house) attemptsOfRun(run engine.RunID) []engine.Attempt {
	h.t.Helper()
	return h.attempts(h.progress(run).Steps[0].ID)
}

func (h *house) dispatched(run engine.RunID) bool {
	h.t.Helper()
	var found bool
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM slices WHERE run_id = $1 AND state = 'dispatched')`, run).Scan(&found)
	})
	return found
}

// A commit that meets its row in the hands of another transaction waits, and then judges
// the row as that left it: a cost that was added leaves it in its place, a new fence does not.
func TestCommitJudgesTheNewestVersionOfItsRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		lands  bool
	}{
		"cost":  {`UPDATE step_runs SET cost_micros = cost_micros + 7`, true},
		"fence": {`UPDATE step_runs SET fence = fence + 1`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h *house
			changed := make(chan error, 1)
			h = build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
				ctx, super := t.Context(), h.db.Super(t)
				tx, err := super.Begin(ctx)
				require.NoError(t, err)
				_, err = tx.Exec(ctx, c.change)
				require.NoError(t, err)
				go func() {
					watch := h.db.Super(t)
					for waits := false; !waits; {
						if err := watch.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
							WHERE NOT l.granted AND a.datname = current_database())`).Scan(&waits); err != nil {
							changed <- err
							return
						}
					}
					changed <- tx.Commit(ctx)
				}()
				return engine.Reply{Output: []byte(`{"by": "us"}`)}
			}))
			run := h.start(h.publish(oneMail), `{"n": 1}`)
			args, id := h.slice(run)
			err := h.engine.NewWorker("by hand").Drive(t.Context(), args, &handJob{id: id, tries: 1})
			require.NoError(t, <-changed)
			p := h.progress(run)
			if !c.lands {
				require.Error(t, err)
				require.Equal(t, engine.RunRunning, p.Run.State)
				return
			}
			require.NoError(t, err)
			require.Equal(t, engine.RunCompleted, p.Run.State)
			require.EqualValues(t, 7, p.Steps[0].CostMicros)
		})
	}
}
