package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Promise 1: nothing is lost, nothing is executed twice in the record. Workers die in
// the middle of calls; every run ends, and each finished step has one finished try.
func TestPromise1NothingIsLost(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	h := build(t, answering(seen, func(count int32) {
		if count%3 == 1 {
			panic("the power is cut")
		}
	}))
	id := h.publish(twoQuestions)
	var runs []engine.RunID
	for range 5 {
		run := h.start(id, `{"n": 1}`)
		args, job := h.slice(run)
		dying := h.otherWorker()
		func() {
			defer func() { _ = recover() }()
			_ = dying.Drive(t.Context(), args, &handJob{id: job, tries: 1})
		}()
		runs = append(runs, run)
	}
	require.NoError(t, h.work().BuryOthers(t.Context()))
	for _, run := range runs {
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State)
		for _, step := range p.Steps {
			attempts := h.attempts(step.ID)
			require.Equal(t, engine.AttemptDone, attempts[len(attempts)-1].Outcome)
			for _, cut := range attempts[:len(attempts)-1] {
				require.Equal(t, engine.AttemptInterrupted, cut.Outcome)
			}
			require.Len(t, attempts, seen.all()[step.ID.String()], "each call is on record")
		}
		h.requireCharges(run, len(p.Steps))
	}
	h.requireSound()
}

// Promise 2: every open run says what it waits for, since when, and what happens next;
// one that nothing could wake is found. The watchdog's tests hold the kinds of stuck.
func TestPromise2EveryOpenRunSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Retryable: true, RetryAfter: time.Minute, Failure: &engine.Failure{Class: "busy", Message: "Come back later."}}
	}))
	h.cap(0)
	h.work()
	for kind, document := range map[engine.WaitKind]string{
		engine.WaitCap: oneQuestion, engine.WaitReview: fmt.Sprintf(oneReview, `, "due": "2d"`), engine.WaitRetry: oneMail,
	} {
		run := h.start(h.publish(document), `{"n": 1}`)
		h.awaitWait(run, kind)
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			line, err := engine.LineByID(ctx, tx, run)
			require.NoError(t, err)
			require.Equal(t, kind, line.Wait)
			require.NotEmpty(t, line.StepName)
			require.WithinDuration(t, tx.Now, line.Since, time.Minute)
			require.Equal(t, kind != engine.WaitCap, line.Due != nil, "what happens next, and when")
			if kind != engine.WaitReview {
				require.NotEmpty(t, line.Reason)
			}
			return nil
		})
	}
	h.age()
	h.exec(`UPDATE waits SET opened_at = opened_at - interval '1 minute'`)
	found, err := h.otherWorker().Watch(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// Promise 3: a cap is a cap. With room for three of ten calls no more than three are
// made; the rest is stopped, not killed, and goes on by itself once there is room.
func TestPromise3ACapIsACap(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	h := build(t, answering(seen, func(int32) {}))
	h.cap(0)
	h.work()
	id := h.publish(oneQuestion)
	runs := make([]engine.RunID, 10)
	for i := range runs {
		runs[i] = h.start(id, `{"n": 1}`)
	}
	for _, run := range runs {
		h.awaitWait(run, engine.WaitCap)
	}
	require.Empty(t, seen.all())
	h.cap(3 * h.reserve(runs[0]))
	require.Eventually(t, func() bool {
		return len(seen.all()) >= 3
	}, 20*time.Second, 20*time.Millisecond, "nobody set the runs going after the raise")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		status, err := ledger.Month(ctx, tx)
		pretend := status.Of(ledger.Pretend)
		require.LessOrEqual(t, pretend.Spent+pretend.Held, *pretend.Limit)
		return err
	})
	h.cap(ledger.Micros(1_000_000_000))
	for _, run := range runs {
		h.awaitEnd(run)
	}
	for _, run := range runs {
		h.requireOnce(run, seen)
	}
}

// Promise 5: silence never approves unless the step says so, and then the record says
// that it was silence.
func TestPromise5SilenceNeverApproves(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	said := h.start(h.publish(`{"semantics": 1, "name": "Silence", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}], "due": "1s", "on_deadline": "approve"}}],
		"result": [{"name": "by", "formula": "steps.check.by"}]}`), `{"n": 1}`)
	silent := h.start(h.publish(fmt.Sprintf(oneReview, `, "due": "1s", "on_deadline": "fail"`)), `{"n": 1}`)
	p := h.awaitEnd(said)
	require.JSONEq(t, `{"by": "by timeout"}`, h.value(p.Run.Result))
	p = h.awaitEnd(silent)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, engine.ClassExpired, p.Run.Failure.Class)
}

// reserve is what the call of the run's first step needs.
func (h *house) reserve(run engine.RunID) ledger.Micros {
	h.t.Helper()
	var ask engine.AIInput
	require.NoError(h.t, json.Unmarshal([]byte(h.value(h.progress(run).Steps[0].Input)), &ask))
	quote, err := ledger.QuoteFor(ask.Models[0], time.Now(), time.Minute, h.engine.InputBound(ask), int64(ask.MaxTokens))
	require.NoError(h.t, err)
	return quote.Amount
}

// Promise 6: the cost of a step grows neither with the history of its run nor with the
// open runs beside it. What counts is how many rows the engine reads for a step.
func TestPromise6AStepCostsTheSameInALongRun(t *testing.T) {
	t.Parallel()
	short := readsPerStep(t, 60, 1500)
	require.Positive(t, short)
	t.Logf("%.1f rows a step", short)
	require.Less(t, readsPerStep(t, 400, 1500), 1.5*short, "a step reads more in a longer run")
	require.Less(t, readsPerStep(t, 60, 5000), 1.5*short, "a step reads more beside more runs")
}

// readsPerStep drives a run of so many steps by hand and counts the rows that were read
// for each.
func readsPerStep(t *testing.T, steps, neighbours int) float64 {
	t.Helper()
	var list []string
	for n := range steps {
		if n == 0 {
			list = append(list, `{"id": "s0", "name": "Begin", "kind": "set", "with": {"values": [{"name": "x", "formula": "input.n"}]}}`)
			continue
		}
		list = append(list, fmt.Sprintf(`{"id": "s%d", "name": "Send %d", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "{{ steps.s0.x }}", "body": "Hello."}}`, n, n))
	}
	return readsOf(t, `{"semantics": 1, "name": "Long", "input": [{"name": "n", "type": "number"}], "steps": [`+strings.Join(list, ",")+`]}`, `{"n": 1}`, neighbours) / float64(steps)
}

// readsOf drives a run by hand and counts the rows that were read for it.
func readsOf(t *testing.T, document, input string, neighbours int) float64 {
	t.Helper()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { return engine.Reply{Output: []byte(`{}`)} }))
	run := h.start(h.publish(document), input)
	args, _ := h.slice(run)
	h.crowd(run, neighbours)
	before := h.rowsRead()
	counted, err := tenants.Open(t.Context(), tenants.Config{URL: h.db.URL, AppConns: 2, SysConns: 2})
	require.NoError(t, err)
	h.engine.DB = counted
	worker := h.engine.NewWorker("by hand")
	require.NoError(t, worker.Drive(t.Context(), args, &handJob{id: 1, tries: 1}))
	counted.Close() // a connection tells what it has read when it ends
	read := h.rowsRead() - before
	require.Equal(t, engine.RunCompleted, h.progress(run).Run.State)
	return float64(read)
}

// rowsRead is how many rows of the engine's tables were read. A connection tells what
// it has read now and then, and when it ends, so the figure is taken once it stands still.
func (h *house) rowsRead() int {
	h.t.Helper()
	last := -1
	require.Eventually(h.t, func() bool {
		now := h.count(`SELECT coalesce(sum(coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0)), 0)::bigint FROM pg_stat_user_tables
			WHERE relname IN ('runs', 'step_runs', 'waits', 'slices', 'attempts', 'stored_values')`)
		still := now == last
		last = now
		return still
	}, 20*time.Second, 500*time.Millisecond)
	return last
}

// crowd puts open runs beside a run, in tables that the planner has no figures of yet.
func (h *house) crowd(run engine.RunID, neighbours int) {
	h.t.Helper()
	for _, table := range []string{"runs", "step_runs", "waits", "slices"} {
		h.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = false)`)
	}
	conn, err := pgx.Connect(h.t.Context(), h.db.Super(h.t).Config().ConnString())
	require.NoError(h.t, err)
	defer conn.Close(context.Background()) // so that what it read is counted before
	_, err = conn.Exec(h.t.Context(), `
		WITH r AS (
			INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key)
			SELECT tenant_id, gen_random_uuid(), pipeline_id, version, 1000 + n, 'A run', 'running', input_digest, 'crowd' || n
			FROM runs, generate_series(1, @many::int) n WHERE id = @run RETURNING tenant_id, id, number
		), s AS (
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, fence, slice_id)
			SELECT tenant_id, gen_random_uuid(), id, 's1', 'email', CASE number % 2 WHEN 0 THEN 'running' ELSE 'waiting' END, 1,
				CASE number % 2 WHEN 0 THEN gen_random_uuid() END FROM r RETURNING tenant_id, id, run_id, slice_id
		), w AS (
			INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'review' FROM s WHERE slice_id IS NULL
		)
		INSERT INTO slices (tenant_id, id, run_id, step_run_id, state, semantics)
		SELECT tenant_id, slice_id, run_id, id, 'running', 1 FROM s WHERE slice_id IS NOT NULL`,
		pgx.NamedArgs{"run": run, "many": neighbours})
	require.NoError(h.t, err)
}

// Promise 7: waiting is free. A waiting run holds no slice, no job and no money.
func TestPromise7WaitingIsFree(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Retryable: true, RetryAfter: time.Minute, Failure: &engine.Failure{Class: "busy", Message: "Later."}}
	}))
	stop := h.workUntilStopped()
	for kind, document := range map[engine.WaitKind]string{engine.WaitReview: triage, engine.WaitRetry: oneMail} {
		input := `{"n": 1}`
		if kind == engine.WaitReview {
			input = `{"subject": "A lamp", "amount": 1}`
		}
		h.awaitWait(h.start(h.publish(document), input), kind)
	}
	stop()
	require.Zero(t, h.count(`SELECT count(*) FROM slices`))
	require.Zero(t, h.count(`SELECT count(*) FROM river.river_job WHERE kind = 'drive_slice' AND finalized_at IS NULL`))
	require.Zero(t, h.count(`SELECT count(*) FROM holds WHERE state = 'open'`))
	require.Zero(t, h.count(`SELECT count(*) FROM step_runs WHERE state = 'waiting' AND slice_id IS NOT NULL`))
}

// Promise 9: no tenant sees or touches another's run, whichever function it asks.
func TestPromise9NoTenantTouchesAnothersRun(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	stop := h.workUntilStopped()
	id := h.publish(fmt.Sprintf(oneReview, ""))
	started := h.startKeyed(id, `{"n": 1}`, "the key")
	_, step := h.awaitWait(started.Run.ID, engine.WaitReview)
	stop()
	var answer review.Decision
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		answer = h.answer(detail, review.Approve, "")
		return err
	})
	before := h.progress(started.Run.ID)
	other, stranger := h.db.Tenant(t)
	theirs := map[string]func(context.Context, tenants.Tx) error{
		"read": func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.ProgressOf(ctx, tx, started.Run.ID)
			return err
		},
		"line": func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.LineByID(ctx, tx, started.Run.ID)
			return err
		},
		"key": func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.RunByKey(ctx, tx, "the key")
			return err
		},
		"cancel": func(ctx context.Context, tx tenants.Tx) error {
			return h.engine.Cancel(ctx, tx, started.Run.ID, "A stranger")
		},
		"decide": func(ctx context.Context, tx tenants.Tx) error {
			_, err := h.engine.DecideReview(ctx, tx, answer)
			return err
		},
		"start": func(ctx context.Context, tx tenants.Tx) error {
			_, err := h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(`{}`), By: stranger, Key: "their key"})
			return err
		},
		"value": func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.Value(ctx, tx, before.Run.Input)
			return err
		},
		"value of run": func(ctx context.Context, tx tenants.Tx) error {
			_, err := engine.ValueOf(ctx, tx, started.Run.ID, before.Run.Input)
			return err
		},
	}
	for name, touch := range theirs {
		require.Error(t, h.db.InTx(t.Context(), other, touch), name)
	}
	require.NoError(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		require.Empty(t, page.Lines)
		attempts, _ := engine.AttemptsOf(ctx, tx, step)
		require.Empty(t, attempts)
		return err
	}))
	require.Equal(t, before, h.progress(started.Run.ID))
	queued := h.start(id, `{"n": 1}`)
	args, job := h.slice(queued)
	require.NoError(t, h.otherWorker().Drive(t.Context(), engine.DriveSlice{Tenant: other, Slice: args.Slice, Fence: args.Fence}, &handJob{id: job, tries: 1}))
	require.Empty(t, h.progress(queued).Steps, "a job in another tenant's name drove the slice")
}
