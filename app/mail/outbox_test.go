package mail_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestQueueIsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, &recorder{})
	undone := errors.New("undone")
	var id mail.ID
	err := b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = b.outbox.Queue(ctx, tx, mail.Message{To: mail.Address{Email: "a@b.example"}, StepRunID: b.stepRun,
			Body: mail.Step{To: []mail.Address{{Email: "a@b.example"}}, Subject: "x"}})
		require.NoError(t, err)
		return undone
	})
	require.ErrorIs(t, err, undone)
	require.Zero(t, b.jobs(t, id))
	require.ErrorIs(t, b.outbox.Deliver(t.Context(), b.db.DB, mail.SendMail{Mail: id, Tenant: b.tenant}, b.worker), mail.ErrNotFound)
}

func TestDeliverSendsOnce(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	job := b.request(t)
	require.Equal(t, 1, b.jobs(t, job.Mail))
	for range 3 {
		require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	}
	require.Len(t, sender.sent, 1)
	m, composed := b.read(t, job.Mail)
	require.Equal(t, mail.StateSent, m.State)
	require.Equal(t, 1, m.Attempt)
	require.NotNil(t, m.SentAt)
	require.Equal(t, composed, sender.sent[0], "the mailbox shows what went out")
	require.Equal(t, "Test workspace reviews", composed.From.Name)
	require.Equal(t, 1, b.jobs(t, job.Mail))
}

func TestDeliverOfManyAtOnceSendsOnce(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	job := b.request(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := b.outbox.Deliver(t.Context(), b.db.DB, job, tenants.NewID[string]())
			require.True(t, err == nil || errors.Is(err, mail.ErrBusy), "%v", err)
		})
	}
	group.Wait()
	require.Len(t, sender.sent, 1)
}

func TestDeliverTriesAgainLaterWhatFailedForNow(t *testing.T) {
	t.Parallel()
	sender := &recorder{do: func(n int) error {
		if n == 1 {
			return &mail.SendError{Message: "The mail server cannot be reached."}
		}
		return nil
	}}
	b := setup(t, sender)
	job := b.request(t)
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	m, _ := b.read(t, job.Mail)
	require.Equal(t, mail.StateQueued, m.State)
	require.Equal(t, "The mail server cannot be reached.", m.LastError)
	require.InDelta(t, 10, m.NextTryAt.Sub(m.CreatedAt).Seconds(), 5)
	require.Equal(t, 2, b.jobs(t, job.Mail), "the next try has a job")

	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	m, _ = b.read(t, job.Mail)
	require.Equal(t, mail.StateSent, m.State)
	require.Empty(t, m.LastError)
	require.Equal(t, 2, m.Attempt)
	require.Equal(t, sender.sent[0].MessageID, sender.sent[1].MessageID)
}

func TestDeliverGivesUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failure error
		before  string
	}{
		"refused for good": {&mail.SendError{Permanent: true, Message: "The mail server refused a recipient."}, `SELECT 1`},
		"too late":         {errors.New("no answer"), `UPDATE mails SET give_up_at = now()`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, &recorder{do: func(int) error { return test.failure }})
			job := b.request(t)
			_, err := b.db.Super(t).Exec(t.Context(), test.before)
			require.NoError(t, err)
			require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
			m, _ := b.read(t, job.Mail)
			require.Equal(t, mail.StateFailed, m.State)
			require.NotEmpty(t, m.LastError)
			require.Equal(t, 1, b.jobs(t, job.Mail), "no further try")
		})
	}
}

// The worker dies after the mail server took the mail and before that is recorded.
func TestMailOfADeadWorkerGoesOutAgainUnderItsMessageID(t *testing.T) {
	t.Parallel()
	mx := startServer(t, nil)
	b := setup(t, mx.sender(t))
	job := b.request(t)

	dying, kill := context.WithCancel(t.Context())
	dead := mail.Config{Inserter: inserter(t), Links: links(t), From: mail.Address{Email: "no-reply@tollgate.example"},
		Sender: senderFunc(func(ctx context.Context, composed mail.Composed) error {
			err := mx.sender(t).Send(ctx, composed)
			kill()
			panic(errors.Join(errors.New("killed"), err))
		})}
	outbox, err := mail.New(dead)
	require.NoError(t, err)
	require.Panics(t, func() { _ = outbox.Deliver(dying, b.db.DB, job, b.worker) })
	require.Len(t, mx.mails(), 1)
	require.ErrorIs(t, b.outbox.Deliver(t.Context(), b.db.DB, job, tenants.NewID[string]()), mail.ErrBusy, "nobody else takes it yet")

	var freed int
	err = b.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		freed, err = b.outbox.Requeue(ctx, tx, b.worker, tenants.NewID[string]())
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 1, freed)
	require.Equal(t, 2, b.jobs(t, job.Mail))
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, tenants.NewID[string]()))

	got := mx.mails()
	require.Len(t, got, 2)
	require.Equal(t, header(t, got[0], "Message-ID"), header(t, got[1], "Message-ID"))
	require.Equal(t, string(stripBoundary(got[0].Data)), string(stripBoundary(got[1].Data)), "both are one mail")
	m, _ := b.read(t, job.Mail)
	require.Equal(t, mail.StateSent, m.State)
	require.Equal(t, 2, m.Attempt)
}

type senderFunc func(context.Context, mail.Composed) error

func (f senderFunc) Send(ctx context.Context, c mail.Composed) error { return f(ctx, c) }

func TestAttemptThatWasTakenOverRecordsNothing(t *testing.T) {
	t.Parallel()
	var b bundle
	var job mail.SendMail
	b = setup(t, &recorder{do: func(n int) error {
		if n == 1 { // meanwhile the reaper takes the slow worker for dead, and another one sends
			require.NoError(t, b.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
				_, err := b.outbox.Requeue(ctx, tx, b.worker)
				return err
			}))
			_, err := b.db.Super(t).Exec(t.Context(), `UPDATE mails SET state = 'sending', attempt = attempt + 1`)
			require.NoError(t, err)
		}
		return nil
	}})
	job = b.request(t)
	require.ErrorContains(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker), "taken over")
	m, _ := b.read(t, job.Mail)
	require.Equal(t, mail.StateSending, m.State)
}

func TestAbandonedMailIsTakenOverAfterAWhile(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	job := b.request(t)
	_, err := b.db.Super(t).Exec(t.Context(), `UPDATE mails SET state = 'sending', attempt = 1, claimed_at = now() - interval '6 minutes'`)
	require.NoError(t, err)
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	require.Len(t, sender.sent, 1)
}

func TestEndIsRecordedAlsoWhenTheWorkIsToldToStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	b := setup(t, &recorder{do: func(int) error { stop(); return nil }})
	job := b.request(t)
	require.NoError(t, b.outbox.Deliver(ctx, b.db.DB, job, b.worker))
	m, _ := b.read(t, job.Mail)
	require.Equal(t, mail.StateSent, m.State)
}

func TestSeatGetsOneMailAGeneration(t *testing.T) {
	t.Parallel()
	b := setup(t, &recorder{})
	m := mail.Message{To: mail.Address{Email: "kim@outside.example"}, SeatID: b.newSeat(t), Generation: 1, Body: mail.ReviewRequest{Title: "x"}}
	b.queue(t, m)
	err := b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := b.outbox.Queue(ctx, tx, m)
		return err
	})
	_, duplicate := tenants.IsDuplicate(err)
	require.True(t, duplicate)
	m.Generation = 2
	b.queue(t, m)
}

func TestOtherWorkspaceSeesNoMail(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	job := b.request(t)
	other, _ := b.db.Tenant(t)
	job.Tenant = other
	require.ErrorIs(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker), mail.ErrNotFound)
	require.NoError(t, b.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		list, err := b.outbox.List(ctx, tx)
		require.NoError(t, err)
		require.Empty(t, list)
		_, _, err = b.outbox.ByID(ctx, tx, job.Mail)
		require.ErrorIs(t, err, mail.ErrNotFound)
		ofStep, err := b.outbox.OfStepRun(ctx, tx, b.stepRun)
		require.NoError(t, err)
		require.Empty(t, ofStep)
		return nil
	}))
	require.Empty(t, sender.sent)
}

func TestSystemMailIsSeenByNoWorkspace(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	outbox := newOutbox(t, sender)
	code := mail.LoginCode{ID: tenants.NewID[tenants.LoginCode](), Expires: time.Now().Add(tenants.CodeLifetime)}
	var job mail.SendMail
	require.NoError(t, db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		job.Mail, err = outbox.QueueSystem(ctx, tx, mail.Message{To: mail.Address{Email: "ana@example.com"}, Body: code})
		return err
	}))
	require.NoError(t, outbox.Deliver(t.Context(), db.DB, job, tenants.NewID[string]()))
	digits := tenants.LoginDigits(links(t).Secret, code.ID)
	require.Len(t, sender.sent, 1)
	require.Contains(t, sender.sent[0].Text, digits[:3]+" "+digits[3:])

	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		var n int
		require.NoError(t, tx.QueryRow(ctx, `SELECT count(*) FROM mails`).Scan(&n))
		require.Zero(t, n)
		return nil
	}))
	require.NoError(t, db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		list, err := outbox.ListSystem(ctx, tx)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, mail.StateSent, list[0].State)
		_, composed, err := outbox.SystemByID(ctx, tx, job.Mail)
		require.NoError(t, err)
		require.Equal(t, sender.sent[0], composed)
		return nil
	}))
}

func TestExpiredCodeIsNotSent(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	job := mail.SendMail{}
	require.NoError(t, b.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		job.Mail, err = b.outbox.QueueSystem(ctx, tx, mail.Message{To: mail.Address{Email: "ana@example.com"},
			Body: mail.LoginCode{ID: tenants.NewID[tenants.LoginCode](), Expires: tx.Now}})
		return err
	}))
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	require.Empty(t, sender.sent)
}

func TestNoRowHoldsALinkOrACode(t *testing.T) {
	t.Parallel()
	b := setup(t, mail.Mailbox{})
	job := b.request(t)
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, job, b.worker))
	m, _ := b.read(t, job.Mail)
	token := links(t).Secret.SeatToken(m.SeatID, 1)
	var rows string
	require.NoError(t, b.db.Super(t).QueryRow(t.Context(), `SELECT (SELECT string_agg(m::text, '') FROM mails m) ||
		(SELECT string_agg(j::text, '') FROM river.river_job j)`).Scan(&rows))
	require.NotContains(t, rows, token)
	require.NotContains(t, rows, "/r/")
}

func TestFirstSentTellsWhenSomebodyWasReached(t *testing.T) {
	t.Parallel()
	b := setup(t, &recorder{})
	first, second := b.request(t), b.request(t)
	one, _ := b.read(t, first.Mail)
	two, _ := b.read(t, second.Mail)
	ask := func() (at time.Time) {
		require.NoError(t, b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			at, err = b.outbox.FirstSent(ctx, tx, [][16]byte{one.SeatID, two.SeatID})
			return err
		}))
		return at
	}
	require.Zero(t, ask())
	require.NoError(t, b.outbox.Deliver(t.Context(), b.db.DB, second, b.worker))
	two, _ = b.read(t, second.Mail)
	require.WithinDuration(t, *two.SentAt, ask(), 0)
}
