package mail_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
	"tollgate/migrations"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// bundle is a workspace with a run, an outbox and somebody who takes its mails.
type bundle struct {
	db      *dbtest.Database
	tenant  tenants.ID
	run     [16]byte
	stepRun [16]byte
	outbox  *mail.Outbox
	worker  [16]byte
}

func links(t testing.TB) mail.Links {
	t.Helper()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	return mail.Links{Secret: secret, BaseURL: "https://tollgate.example/"}
}

func inserter(t testing.TB) mail.Inserter {
	t.Helper()
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: migrations.RiverSchema})
	require.NoError(t, err)
	return client
}

func newOutbox(t testing.TB, sender mail.Sender) *mail.Outbox {
	t.Helper()
	outbox, err := mail.New(mail.Config{
		Sender: sender, Inserter: inserter(t), Links: links(t), From: mail.Address{Email: "no-reply@tollgate.example"},
	})
	require.NoError(t, err)
	return outbox
}

func setup(t *testing.T, sender mail.Sender) bundle {
	t.Helper()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	b := bundle{db: db, tenant: tenant, outbox: newOutbox(t, sender), worker: tenants.NewID[string]()}
	b.run, b.stepRun = newRun(t, db, tenant)
	return b
}

// newRun makes the rows that a mail of a run may point to.
func newRun(t testing.TB, db *dbtest.Database, tenant tenants.ID) (run, stepRun [16]byte) {
	t.Helper()
	pipeline := tenants.NewID[string]()
	run, stepRun = tenants.NewID[string](), tenants.NewID[string]()
	err := db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO pipelines (tenant_id, id, name, draft) VALUES ($1, $2, 'Triage', '{}')`, tenant, pipeline)
		batch.Queue(`INSERT INTO pipeline_versions (tenant_id, pipeline_id, number, document, digest, semantics)
			VALUES ($1, $2, 1, '{}', sha256('{}'), 1)`, tenant, pipeline)
		batch.Queue(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key)
			VALUES ($1, $2, $3, 1, 1, 'Run', 'running', sha256('{}'), $4)`, tenant, run, pipeline, tenants.ID(run).String())
		batch.Queue(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state) VALUES ($1, $2, $3, 'tell', 'email', 'running')`,
			tenant, stepRun, run)
		return tx.SendBatch(ctx, batch).Close()
	})
	require.NoError(t, err)
	return run, stepRun
}

// newSeat makes a seat for review mails to point to.
func (b bundle) newSeat(t testing.TB) [16]byte {
	t.Helper()
	review, seat := tenants.NewID[string](), tenants.NewID[string]()
	step := tenants.NewID[string]()
	err := b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO reviews (tenant_id, id, run_id, step_run_id, title, content, digest, stages, proof, allow_requester, send_back)
			VALUES ($1, $2, $3, $4, 'Ok?', '{}', sha256('{}'), '[{}]', 'link', false, false)`, b.tenant, review, b.run, step)
		batch.Queue(`INSERT INTO seats (tenant_id, id, review_id, address, name, zone, token_hash, expires_at)
			VALUES ($1, $2, $3, 'kim@outside.example', 'Kim', 'UTC', $4, now())`, b.tenant, seat, review, tenants.HashToken(seat.String()))
		return tx.SendBatch(ctx, batch).Close()
	})
	require.NoError(t, err)
	return seat
}

// queue queues a message and returns its job.
func (b bundle) queue(t testing.TB, m mail.Message) mail.SendMail {
	t.Helper()
	job := mail.SendMail{Tenant: b.tenant}
	err := b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		job.Mail, err = b.outbox.Queue(ctx, tx, m)
		return err
	})
	require.NoError(t, err)
	return job
}

func (b bundle) request(t testing.TB) mail.SendMail {
	t.Helper()
	return b.queue(t, mail.Message{
		To: mail.Address{Name: "Kim", Email: "kim@outside.example"}, RunID: b.run, StepRunID: b.stepRun,
		SeatID: b.newSeat(t), Generation: 1, Body: mail.ReviewRequest{PipelineName: "Triage", Title: "Send this reply?"},
	})
}

// read looks a mail up as its workspace does.
func (b bundle) read(t testing.TB, id mail.ID) (mail.Mail, mail.Composed) {
	t.Helper()
	var m mail.Mail
	var composed mail.Composed
	err := b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		m, composed, err = b.outbox.ByID(ctx, tx, id)
		return err
	})
	require.NoError(t, err)
	return m, composed
}

// jobs counts the jobs that send a mail.
func (b bundle) jobs(t testing.TB, id mail.ID) int {
	t.Helper()
	var n int
	err := b.db.Super(t).QueryRow(t.Context(),
		`SELECT count(*) FROM river.river_job WHERE kind = 'send_mail' AND queue = 'mail' AND args ->> 'mail_id' = $1`, id.String()).Scan(&n)
	require.NoError(t, err)
	return n
}

// recorder is a sender that remembers, and does what it is told.
type recorder struct {
	mu   sync.Mutex
	sent []mail.Composed
	do   func(n int) error // of the n-th try, from 1; nil: takes every mail
}

func (r *recorder) Send(_ context.Context, composed mail.Composed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, composed)
	if r.do == nil {
		return nil
	}
	return r.do(len(r.sent))
}

// received is a mail as a mail server got it.
type received struct {
	From string
	To   []string
	Data []byte
}

// server is a real SMTP server in this process.
type server struct {
	addr string
	mu   sync.Mutex
	got  []received
	// answer is asked at RCPT ("rcpt") and after the data ("data"); nil takes it.
	answer func(stage, rcpt string) error
}

func startServer(t testing.TB, answer func(stage, rcpt string) error) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{addr: listener.Addr().String(), answer: answer}
	backend := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	backend.Domain, backend.MaxRecipients = "mx.example", 100
	backend.ReadTimeout, backend.WriteTimeout = 10*time.Second, 10*time.Second
	done := make(chan struct{})
	go func() { defer close(done); _ = backend.Serve(listener) }()
	t.Cleanup(func() { _ = backend.Close(); <-done })
	return s
}

func (s *server) sender(t testing.TB) *mail.SMTP {
	t.Helper()
	sender, err := mail.NewSMTP("smtp://"+s.addr, "tollgate.example")
	require.NoError(t, err)
	return sender
}

func (s *server) mails() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.got...)
}

type session struct {
	server *server
	mail   received
}

func (s *session) Reset()        { s.mail = received{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.server.answer != nil {
		if err := s.server.answer("rcpt", to); err != nil {
			return err
		}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Data = data
	s.server.mu.Lock()
	s.server.got = append(s.server.got, s.mail)
	s.server.mu.Unlock()
	if s.server.answer != nil {
		return s.server.answer("data", "")
	}
	return nil
}

// ofStep lists the mails of the bundle's step run.
func (b bundle) ofStep(t testing.TB) []mail.Mail {
	t.Helper()
	var list []mail.Mail
	require.NoError(t, b.db.InTx(t.Context(), b.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		list, err = b.outbox.OfStepRun(ctx, tx, b.stepRun)
		return err
	}))
	return list
}
