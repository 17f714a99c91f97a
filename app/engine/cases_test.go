package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/review"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// The cases here are numbered after the set of failures seen in other products that the
// project is tested against; others stand beside what they are about, under their number.

// River's rescue of stuck jobs may put back a job that finished meanwhile: the run's
// record stays, and nothing is done a second time.
func TestCaseS03RescuedJobOfAFinishedSliceChangesNothing(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	h := build(t, answering(seen, func(int32) {}))
	h.work()
	run := h.start(h.publish(twoQuestions), `{"n": 1}`)
	before := h.awaitEnd(run)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM river.river_job WHERE kind = 'drive_slice' AND state = 'completed'`) > 0
	}, 10*time.Second, 20*time.Millisecond)
	h.exec(`UPDATE river.river_job SET state = 'available', finalized_at = NULL, scheduled_at = now() WHERE kind = 'drive_slice'`)
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM river.river_job WHERE kind = 'drive_slice' AND state <> 'completed'`) == 0
	}, 10*time.Second, 20*time.Millisecond, "the job that came again did not end")
	require.Equal(t, before, h.progress(run))
	h.requireOnce(run, seen)
}

// An answer to the first review is none to the second, sent again or not.
func TestCaseS12AnswerCountsForItsOwnReviewOnly(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	check := func(id string) string {
		return `{"id": "` + id + `", "name": "Check ` + id + `", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]}}`
	}
	run := h.start(h.publish(`{"semantics": 1, "name": "Two reviews", "input": [{"name": "n", "type": "number"}], "steps": [`+check("a")+`,
		{"id": "inside", "name": "Inside", "kind": "branch", "with": {"cases": [{"id": "yes", "name": "Yes", "when": "input.n > 0", "steps": [`+check("b")+`]}]}}]}`), `{"n": 1}`)
	_, first := h.awaitWait(run, engine.WaitReview)
	var answer review.Decision
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, first)
		require.NoError(t, err)
		answer = h.answer(detail, review.Approve, "")
		_, err = h.engine.DecideReview(ctx, tx, answer)
		return err
	})
	var second engine.StepRunID
	h.await(run, "the second review", func(p engine.Progress) bool {
		for step, wait := range p.Waits {
			if step != first && wait.Kind == engine.WaitReview {
				second = step
			}
		}
		return !second.IsZero()
	})
	_ = h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.DecideReview(ctx, tx, answer)
		return err
	})
	p := h.progress(run)
	require.Equal(t, engine.RunRunning, p.Run.State)
	require.Contains(t, p.Waits, second, "the answer to the first counted for the second")
	h.decide(second, review.Approve, "")
	require.Equal(t, engine.RunCompleted, h.awaitEnd(run).Run.State)
}

// A database that takes no changes for a while stops the work, and loses nothing: once it
// takes them again, runs go on alone.
func TestCaseS74WorkOutlivesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	seen := &calls{}
	over := make(chan struct{})
	var h *house
	h = build(t, answering(seen, func(count int32) {
		if count == 1 {
			h.readOnly("on")
			time.AfterFunc(3*time.Second, func() { h.readOnly("off"); close(over) })
		}
	}))
	h.work()
	run := h.start(h.publish(twoQuestions), `{"n": 1}`)
	require.Eventually(t, func() bool { return h.db.Ping(t.Context()) != nil }, 10*time.Second, 20*time.Millisecond, "the check stayed green")
	<-over
	began := time.Now()
	h.requireOnce(run, seen)
	require.Less(t, time.Since(began), time.Minute)
}

// readOnly makes all sessions refuse changes, "on", or new ones take them again, "off".
func (h *house) readOnly(yes string) {
	own, err := pgx.ParseConfig(h.db.URL)
	require.NoError(h.t, err)
	server, err := pgx.Connect(context.Background(), dbtest.ServerURL(h.t))
	require.NoError(h.t, err)
	defer server.Close(context.Background())
	_, err = server.Exec(context.Background(), `ALTER DATABASE `+pgx.Identifier{own.Database}.Sanitize()+` SET default_transaction_read_only = `+yes)
	require.NoError(h.t, err)
	_, err = server.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND $2 = 'on'`, own.Database, yes)
	require.NoError(h.t, err)
}

// A run goes its way with the tenants' work behind a pooler in transaction mode, while
// every table gets a column.
func TestCaseS75RunThroughAPoolerAndAMigration(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	through, err := tenants.Open(t.Context(), tenants.Config{URL: fault.StartBouncer(t, h.db.URL, "transaction"), SystemURL: h.db.URL})
	require.NoError(t, err)
	t.Cleanup(through.Close)
	h.db.DB, h.engine.DB = through, through
	h.work()
	id := h.publish(triage)
	half := h.start(id, `{"subject": "A lamp", "amount": 1}`)
	_, step := h.awaitWait(half, engine.WaitReview)
	h.exec(`DO $$ DECLARE t record; BEGIN
		FOR t IN SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'river') LOOP
			EXECUTE format('ALTER TABLE %I.%I ADD COLUMN added_by_a_test text NOT NULL DEFAULT %L', t.schemaname, t.tablename, 'new');
		END LOOP;
	END $$`)
	h.decide(step, review.Approve, "")
	require.Equal(t, engine.RunCompleted, h.awaitEnd(half).Run.State)
	whole := h.start(id, `{"subject": "A lamp", "amount": 1}`)
	_, step = h.awaitWait(whole, engine.WaitReview)
	h.decide(step, review.Approve, "")
	require.Equal(t, engine.RunCompleted, h.awaitEnd(whole).Run.State)
	h.requireSound()
}

// A transaction that somebody left open is named, ours that are done are not.
func TestCaseS78OldTransactionIsNamed(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	watcher := h.otherWorker()
	old, err := watcher.OldTransactions(t.Context(), 0)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(old), "a forgotten session")

	config, err := pgx.ParseConfig(h.db.Super(t).Config().ConnString())
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = "a forgotten session"
	forgotten, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer forgotten.Close(context.Background())
	_, err = forgotten.Exec(t.Context(), `BEGIN; UPDATE tenants SET name = name`)
	require.NoError(t, err)

	named := func(after time.Duration) bool {
		old, err := watcher.OldTransactions(t.Context(), after)
		require.NoError(t, err)
		for _, one := range old {
			if one.Application == "a forgotten session" {
				require.Equal(t, forgotten.PgConn().PID(), uint32(one.PID))
				require.NotEmpty(t, one.User)
				return true
			}
		}
		return false
	}
	require.False(t, named(time.Minute), "it has only just begun")
	require.Eventually(t, func() bool { return named(300 * time.Millisecond) }, 5*time.Second, 50*time.Millisecond)
	_, err = forgotten.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.False(t, named(0))
}

// Finished jobs are removed after a while, and a run that has ended leaves no slice.
func TestCaseS78FinishedJobsArePruned(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { return engine.Reply{Output: []byte(`{}`)} }))
	stop := h.workUntilStopped()
	h.awaitEnd(h.start(h.publish(oneMail), `{"n": 1}`))
	stop()
	require.Zero(t, h.count(`SELECT count(*) FROM slices`))
	h.exec(`UPDATE river.river_job SET finalized_at = now() - interval '11 minutes' WHERE kind = 'drive_slice'`)
	h.work()
	require.Eventually(t, func() bool {
		return h.count(`SELECT count(*) FROM river.river_job WHERE kind = 'drive_slice'`) == 0
	}, time.Minute, 250*time.Millisecond)
}

// One slice whose rows are held keeps no other from being taken over.
func TestTakeOverGoesPastWhatIsHeld(t *testing.T) {
	t.Parallel()
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply { panic("the power is cut") }))
	dead := h.otherWorker()
	id := h.publish(oneMail)
	runs := make([]engine.RunID, 3)
	for n := range runs {
		runs[n] = h.start(id, `{"n": 1}`)
		args, job := h.slice(runs[n])
		require.Panics(t, func() { _ = dead.Drive(t.Context(), args, &handJob{id: job, tries: 1}) })
	}
	held, err := h.db.Super(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `SELECT 1 FROM step_runs WHERE run_id = $1 FOR UPDATE`, runs[0])
	require.NoError(t, err)
	reaper := h.otherWorker()
	require.NoError(t, reaper.BuryOthers(t.Context()))
	taken, err := reaper.Reap(t.Context())
	require.Error(t, err)
	require.Equal(t, 2, taken)
	require.NoError(t, held.Rollback(t.Context()))
	taken, err = reaper.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, taken)
}

// Text is cut at a whole character wherever it is cut, and one odd value breaks no list.
func TestCaseS31OddTextBreaksNoList(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	for cut := range 4 { // the limit falls on each byte of a character
		text := strings.Repeat("x", cut) + strings.Repeat("😀e\u0301", 2500)
		run := h.start(h.publish(`{"semantics": 1, "name": "Odd", "run_name": "{{ input.text }}", "input": [{"name": "text", "type": "text"}],
			"steps": [{"id": "keep", "name": "Keep", "kind": "set", "with": {"values": [{"name": "x", "formula": "input.text"}]}}]}`), `{"text": "`+text+`"}`)
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State)
		require.True(t, utf8.ValidString(p.Run.Name))
		require.JSONEq(t, `{"x": "`+text+`"}`, h.value(p.Steps[0].Output))
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			preview, err := engine.PreviewOf(ctx, tx, run, p.Steps[0].Output, 1000)
			require.False(t, preview.Whole())
			require.True(t, utf8.ValidString(expr.Preview(preview.Bytes, 1000)))
			return err
		})
	}
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		require.Len(t, page.Lines, 4)
		return err
	})
}

// An event of brackets, as deep and long as an event may be or more, is refused with its
// place, and one with a NUL comes back as it was.
func TestCasesS29AndS36HostileEvents(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	send := func(data string) (engine.Sent, error) {
		var sent engine.Sent
		err := h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			sent, err = h.engine.SendEvent(ctx, tx, engine.Event{Name: "paid", Key: "7", Data: []byte(data), Sender: "a test"})
			return err
		})
		return sent, err
	}
	for _, data := range []string{
		strings.Repeat("[", 10<<20), strings.Repeat("[", 5<<20) + strings.Repeat("]", 5<<20),
		strings.Repeat("[", 100<<10) + strings.Repeat("]", 100<<10), strings.Repeat(`{"a":`, 40<<10), "NaN", `{"a": Infinity}`,
	} {
		_, err := send(data)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
	}
	for _, data := range []string{`{"a\u0000b":"a\u0000b"}`, `"the text \\u0000 about JSON"`, `"lone \ud83d half"`, `9007199254740993`} {
		sent, err := send(data)
		require.NoError(t, err)
		require.Equal(t, data, string(sent.Event.Data))
	}
}
