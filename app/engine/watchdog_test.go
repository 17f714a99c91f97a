package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
)

// breakages put a run into each state in which nothing would wake it. They are done to
// the rows by hand: the product must never get there by itself.
var breakages = map[engine.StuckKind]struct {
	document string
	until    func(*house, engine.RunID)
	damage   []string
}{
	engine.StuckJobGone: {
		document: oneMail,
		until:    func(*house, engine.RunID) {},
		damage:   []string{`DELETE FROM river.river_job`},
	},
	engine.StuckNoStep: {
		document: oneMail,
		until:    func(*house, engine.RunID) {},
		damage:   []string{`DELETE FROM slices`, `DELETE FROM river.river_job`},
	},
	engine.StuckNoWait: {
		document: oneQuestion,
		until: func(h *house, run engine.RunID) {
			h.cap(0)
			h.passBy(run, engine.WaitCap)
			h.cap(10_000_000)
		},
		damage: []string{`UPDATE waits SET state = 'cancelled', closed_at = now()`},
	},
	engine.StuckNoSlice: {
		document: oneMail,
		until:    func(h *house, run engine.RunID) { h.pretendRunning(run) },
		damage:   []string{`DELETE FROM slices`, `DELETE FROM river.river_job`},
	},
}

func TestWatchdogMendsEveryKindOfStuck(t *testing.T) {
	t.Parallel()
	for kind, broken := range breakages {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			run := h.start(h.publish(broken.document), `{"n": 1}`)
			broken.until(h, run)
			for _, statement := range broken.damage {
				h.exec(statement)
			}
			h.age()
			watcher := h.otherWorker()
			found, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, kind, found[0].Kind)
			require.Equal(t, run, found[0].Run)
			require.True(t, found[0].Repaired)

			h.age()
			again, err := watcher.Watch(t.Context())
			require.NoError(t, err)
			require.Empty(t, again, "it found its own repair")
			h.work()
			require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
		})
	}
}

// A lost wait of a review that is still open is opened again, and the answer counts.
func TestWatchdogReopensTheWaitOfAnOpenReview(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	step := h.passBy(run, engine.WaitReview)
	h.exec(`DELETE FROM slices`)
	h.exec(`UPDATE waits SET state = 'cancelled', closed_at = now()`)
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	h.work()
	h.decide(step, review.Approve, "")
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// What works or waits as it should is left alone.
func TestWatchdogLeavesSoundRunsAlone(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	waiting := h.start(h.publish(fmt.Sprintf(oneReview, "")), `{"n": 1}`)
	h.passBy(waiting, engine.WaitReview)
	h.start(h.publish(oneMail), `{"n": 1}`) // queued behind nobody
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// passBy lets a working process bring the run to a wait, and stops it again.
func (h *house) passBy(run engine.RunID, kind engine.WaitKind) engine.StepRunID {
	h.t.Helper()
	stop := h.workUntilStopped()
	defer stop()
	_, step := h.awaitWait(run, kind)
	return step
}

// pretendRunning puts the run where a worker would have begun its step.
func (h *house) pretendRunning(run engine.RunID) {
	h.t.Helper()
	input := `{"to":["kim@example.com"],"subject":"Hello","body":"Hello."}`
	digest := engine.DigestOf([]byte(input))
	_, err := h.db.Super(h.t).Exec(h.t.Context(), `
		INSERT INTO stored_values (tenant_id, digest, size, media_type, content) VALUES (@tenant, @digest, @size, 'application/json', @content)`,
		pgx.NamedArgs{"tenant": h.tenant, "digest": digest[:], "size": len(input), "content": []byte(input)})
	require.NoError(h.t, err)
	_, err = h.db.Super(h.t).Exec(h.t.Context(), `
		INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, fence, slice_id, input_digest)
		SELECT tenant_id, gen_random_uuid(), run_id, 'send', 'email', 'running', 1, id, @digest FROM slices WHERE run_id = @run`,
		pgx.NamedArgs{"run": run, "digest": digest[:]})
	require.NoError(h.t, err)
}

// age makes everything look as if it had been so for a while.
func (h *house) age() {
	h.t.Helper()
	for _, statement := range []string{
		`UPDATE slices SET dispatched_at = dispatched_at - interval '1 minute', claimed_at = claimed_at - interval '1 minute'`,
		`UPDATE step_runs SET begun_at = begun_at - interval '1 minute'`,
		`UPDATE runs SET created_at = created_at - interval '1 minute'`,
	} {
		h.exec(statement)
	}
}

func (h *house) exec(statement string) {
	h.t.Helper()
	_, err := h.db.Super(h.t).Exec(context.Background(), statement)
	require.NoError(h.t, err)
}
