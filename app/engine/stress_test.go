package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// stressRuns are how many runs go through the storm at once.
const stressRuns = 200

// While connections are cut and workers are declared dead, people cancel and answer,
// and calls fail: in the end each run is over, with its record and its money in order.
func TestStormLeavesEverythingInOrder(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	flaky := func(output string) callerFunc {
		return func(ctx context.Context, _ engine.Call) engine.Reply {
			n := count.Add(1)
			select {
			case <-time.After(time.Duration(n%7) * 5 * time.Millisecond):
			case <-ctx.Done():
				return engine.Reply{Failure: &engine.Failure{Class: "cut", Message: "Cut."}, Retryable: true, Bill: &engine.Bill{Unknown: true}}
			}
			if n%17 == 0 {
				return engine.Reply{Failure: &engine.Failure{Class: "busy", Message: "Busy."}, Retryable: true}
			}
			return engine.Reply{Output: []byte(output), Bill: &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 5, Output: 5}}}
		}
	}
	h := build(t, map[pipeline.Kind]engine.Caller{
		pipeline.KindAI: flaky(`{"kind": "order", "text": "fine"}`), pipeline.KindEmail: flaky(`{}`),
	})
	workers := []*engine.Worker{h.work(), h.work()}
	documents := []string{triage, twoQuestions, oneMail, fmt.Sprintf(oneReview, "")}
	inputs := []string{`{"subject": "A lamp", "amount": 1}`, `{"n": 1}`, `{"n": 1}`, `{"n": 1}`}
	var ids []pipeline.ID
	for _, document := range documents {
		ids = append(ids, h.publish(document))
	}
	runs := make([]engine.RunID, stressRuns)
	for n := range runs {
		runs[n] = h.start(ids[n%len(ids)], inputs[n%len(ids)])
	}
	calm := h.storm(workers)
	h.people(runs, 6*time.Second)
	calm()
	require.Eventually(t, func() bool {
		h.answerAll()
		return h.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`) == 0
	}, 30*time.Second, 200*time.Millisecond, "runs are still open")
	h.requireOrder()
	h.age()
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// storm cuts random connections and declares workers dead until calm is called.
func (h *house) storm(workers []*engine.Worker) (calm func()) {
	h.t.Helper()
	own, err := pgx.ParseConfig(h.db.URL)
	require.NoError(h.t, err)
	server, err := pgx.Connect(h.t.Context(), dbtest.ServerURL(h.t))
	require.NoError(h.t, err)
	stop := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		defer server.Close(context.Background())
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond):
			}
			_, err := server.Exec(context.Background(), `
				SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = $1 AND application_name LIKE 'tollgate%' ORDER BY random() LIMIT 1`, own.Database)
			if err != nil {
				h.t.Error(err)
			}
			if n%10 == 9 {
				_ = workers[n/10%len(workers)].BuryOthers(context.Background()) // the buried one rises at its next beat
			}
		}
	})
	return func() { close(stop); over.Wait() }
}

// people answer reviews and cancel runs for a while. What fails by a cut connection
// they try again later.
func (h *house) people(runs []engine.RunID, long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end); {
		_ = h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			return h.engine.Cancel(ctx, tx, runs[rand.IntN(len(runs)/4)*4], "Olga Owner")
		})
		h.answerAll()
		time.Sleep(100 * time.Millisecond)
	}
}

// answerAll approves every open review, as far as the database lets it.
func (h *house) answerAll() {
	var waiting []engine.StepRunID
	_ = h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT step_run_id FROM waits WHERE state = 'open' AND kind = 'review' LIMIT 20`)
		var err error
		waiting, err = pgx.CollectRows(rows, pgx.RowTo[engine.StepRunID])
		return err
	})
	for _, step := range waiting {
		_ = h.db.InTx(context.Background(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			detail, err := h.reviews.ByStepRun(ctx, tx, step)
			if err != nil || !detail.Open() {
				return err
			}
			_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, review.Approve, ""))
			return err
		})
	}
}

// requireOrder checks what must hold once no run is open.
func (h *house) requireOrder() {
	h.t.Helper()
	for what, query := range map[string]string{
		"runs that failed without running out of tries": `SELECT count(*) FROM runs WHERE state = 'failed' AND failure ->> 'class' NOT IN ('busy', 'cut')`,
		"open step runs":  `SELECT count(*) FROM step_runs WHERE ended_at IS NULL`,
		"slices":          `SELECT count(*) FROM slices`,
		"open waits":      `SELECT count(*) FROM waits WHERE state = 'open'`,
		"open reviews":    `SELECT count(*) FROM reviews WHERE state = 'open'`,
		"open holds":      `SELECT count(*) FROM holds WHERE state = 'open'`,
		"two final tries": `SELECT count(*) FROM (SELECT 1 FROM tries WHERE outcome = 'done' GROUP BY step_run_id HAVING count(*) > 1) twice`,
		"done steps without a done try at the end": `SELECT count(*) FROM step_runs s WHERE s.kind IN ('ai', 'email') AND s.state = 'done' AND NOT EXISTS (
			SELECT 1 FROM tries a WHERE a.step_run_id = s.id AND a.outcome = 'done' AND a.number = s.attempt)`,
		"done tries of steps that are not done": `SELECT count(*) FROM tries a JOIN step_runs s ON s.id = a.step_run_id WHERE a.outcome = 'done' AND s.state <> 'done'`,
		"gaps in the tries":                     `SELECT count(*) FROM (SELECT step_run_id FROM tries GROUP BY step_run_id HAVING max(number) <> count(*)) gaps`,
		"costs that differ from the ledger": `SELECT count(*) FROM step_runs s WHERE s.cost_micros <>
			(SELECT coalesce(sum(c.cost_micros::bigint), 0) FROM charges c WHERE c.step_run_id = s.id)`,
		"calls paid twice": `SELECT count(*) FROM (SELECT 1 FROM charges GROUP BY step_run_id, attempt HAVING count(*) > 1) twice`,
		"completed runs without all their steps": `SELECT count(*) FROM runs r JOIN pipelines p ON p.id = r.pipeline_id
			WHERE r.state = 'completed' AND (SELECT count(*) FROM step_runs s WHERE s.run_id = r.id AND s.state = 'done') <>
				CASE p.name WHEN 'Triage' THEN 5 WHEN 'Two questions' THEN 2 ELSE 1 END`,
	} {
		require.Zero(h.t, h.count(query), what)
	}
	h.requireSound()
}
