package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/migrations"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// site is the pages over a database of their own, with the rooms behind them, and one
// workspace with a member in each role.
type site struct {
	t       testing.TB
	db      *dbtest.Database
	web     *Server
	engine  *engine.Engine
	reviews *review.Room
	outbox  *mail.Outbox
	jobs    *jobs
	calls   *answers
	log     *record
	secret  tenants.Secret
	home    workspace
}

// workspace is a tenant with one member in each role.
type workspace struct {
	tenants.Tenant
	people map[tenants.Role]tenants.Membership
}

const siteURL = "http://tollgate.test"

// newSite makes a site. change adapts its settings before it is built.
func newSite(t testing.TB, change ...func(*Config)) *site {
	t.Helper()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{'s'}, 32))
	require.NoError(t, err)
	s := &site{t: t, db: dbtest.Open(t), log: &record{}, secret: secret, calls: &answers{}}
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: migrations.RiverSchema})
	require.NoError(t, err)
	s.jobs = &jobs{Client: client}
	config := Config{
		DB: s.db.DB, Secret: secret, BaseURL: siteURL, Log: slog.New(slog.NewJSONHandler(s.log, nil)),
	}
	for _, adapt := range change {
		adapt(&config)
	}
	s.outbox, err = mail.New(mail.Config{
		Sender: mail.Mailbox{}, Inserter: s.jobs, From: mail.Address{Email: "tollgate@example.com"},
		Links: mail.Links{Secret: secret, BaseURL: config.BaseURL},
	})
	require.NoError(t, err)
	s.reviews = review.New(secret, invitations{s.outbox})
	s.engine = engine.New(engine.Config{
		DB: s.db.DB, Jobs: s.jobs, Reviews: s.reviews, Log: slog.New(slog.DiscardHandler),
		Callers:    map[pipeline.Kind]engine.Caller{pipeline.KindAI: s.calls, pipeline.KindEmail: s.calls, pipeline.KindHTTP: s.calls},
		InputBound: func(engine.AIInput) int64 { return 1000 },
		Callbacks:  engine.Callbacks{Secret: secret, BaseURL: config.BaseURL},
	})
	config.Engine, config.Reviews, config.Outbox = s.engine, s.reviews, s.outbox
	s.web, err = New(config)
	require.NoError(t, err)
	s.web.paces = newPace(1, 1<<40) // tests are faster than people
	s.home = s.workspace("Nordlicht Handel")
	return s
}

// inLocalMode is a setting for newSite.
func inLocalMode(config *Config) {
	config.Local = &Local{}
	config.BaseURL = "http://127.0.0.1:8080"
}

// workspace makes a tenant with a member in each role.
func (s *site) workspace(name string) workspace {
	s.t.Helper()
	made := workspace{people: map[tenants.Role]tenants.Membership{}}
	for _, role := range tenants.Roles() {
		person := s.person(string(role) + "." + tenants.NewID[int]().Short() + "@example.com")
		if role == tenants.Owner {
			require.NoError(s.t, s.db.InSystemTx(s.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
				owner, err := tenants.CreateTenant(ctx, stx, name, "Europe/Berlin", person)
				made.Tenant, made.people[role] = owner.Tenant, owner
				return err
			}))
			continue
		}
		s.inTx(made.ID, func(ctx context.Context, tx tenants.Tx) error {
			return tenants.AddMember(ctx, tx, made.people[tenants.Owner], person.ID, role)
		})
		made.people[role] = tenants.Membership{Tenant: made.Tenant, User: person, Role: role}
	}
	return made
}

// person makes a user by signing in with a code, as everybody becomes one.
func (s *site) person(email string) tenants.User {
	s.t.Helper()
	var user tenants.User
	require.NoError(s.t, s.db.InSystemTx(s.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		code, err := tenants.RequestCode(ctx, stx, email, tenants.NewID[int]().String())
		if err != nil {
			return err
		}
		in, err := tenants.VerifyCode(ctx, stx, s.secret, email, tenants.LoginDigits(s.secret, code.ID))
		user = in.User
		return err
	}))
	require.False(s.t, user.ID.IsZero())
	return user
}

func (s *site) inTx(tenant tenants.ID, fn func(context.Context, tenants.Tx) error) {
	s.t.Helper()
	require.NoError(s.t, s.db.InTx(s.t.Context(), tenant, fn))
}

// publish makes a live pipeline from a document.
func (s *site) publish(in workspace, document pipeline.Document) pipeline.ID {
	s.t.Helper()
	var id pipeline.ID
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		builder := in.people[tenants.Builder].User.ID
		if id, err = pipeline.Create(ctx, tx, document, "", builder); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", builder)
		return err
	})
	return id
}

// start begins a run by the builder.
func (s *site) start(in workspace, id pipeline.ID, input any) engine.Run {
	s.t.Helper()
	data, err := json.Marshal(input)
	require.NoError(s.t, err)
	var started engine.Started
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		started, err = s.engine.Start(ctx, tx, engine.StartRequest{
			Pipeline: id, Input: data, By: in.people[tenants.Builder].User.ID, Key: tenants.NewID[int]().String(),
		})
		return err
	})
	return started.Run
}

// work does the jobs that were added, until there are none: slices are driven and mails
// go to the mailbox.
func (s *site) work() {
	s.t.Helper()
	worker := s.engine.NewWorker("test")
	worker.Slots = 100
	require.NoError(s.t, worker.Beat(s.t.Context()))
	for range 1000 {
		_, err := s.engine.PumpOnce(s.t.Context())
		require.NoError(s.t, err)
		args := s.jobs.take()
		switch job := args.(type) {
		case nil:
			return
		case engine.DriveSlice:
			require.NoError(s.t, worker.Drive(s.t.Context(), job, doneJob{}))
		case mail.SendMail:
			require.NoError(s.t, s.outbox.Deliver(s.t.Context(), s.db.DB, job, worker.ID))
		}
	}
	s.t.Fatal("the jobs never end")
}

// askingDocument asks the reviewer about the topic that the run is started with.
func askingDocument(name string) pipeline.Document {
	return pipeline.Document{
		Semantics: 1, Name: name, RunName: "{{ input.topic }}",
		Input: []pipeline.Field{{Name: "topic", Label: "Topic", Type: pipeline.TypeText, Required: true}},
		Steps: []pipeline.Step{{ID: "ask", Name: "Ask the reviewer", Kind: pipeline.KindReview, With: &pipeline.Review{
			Question: "Shall we publish {{ input.topic }}?",
			People:   []pipeline.Person{{Role: string(tenants.Reviewer)}},
		}}},
	}
}

// failingDocument fails at once, in a formula.
func failingDocument(name string) pipeline.Document {
	document := askingDocument(name)
	document.Steps = []pipeline.Step{{ID: "count", Name: "Count the words", Kind: pipeline.KindSet, With: &pipeline.Set{
		Values: []pipeline.Value{{Name: "n", Formula: `1 / size("")`}},
	}}}
	return document
}

// jobs inserts into River's table as the product does and also remembers what to do,
// since no River client works in these tests.
type jobs struct {
	*river.Client[pgx.Tx]
	mu      sync.Mutex
	waiting []river.JobArgs
}

func (j *jobs) InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error) {
	inserted, err := j.Client.InsertTx(ctx, tx, args, opts)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.waiting = append(j.waiting, args)
	}
	return inserted, err
}

func (j *jobs) InsertManyTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error) {
	inserted, err := j.Client.InsertManyTx(ctx, tx, params)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, one := range params {
			j.waiting = append(j.waiting, one.Args)
		}
	}
	return inserted, err
}

// Announce wakes nobody: the tests take the jobs themselves.
func (j *jobs) Announce(context.Context, string) error { return nil }

func (*jobs) FinishTx(context.Context, pgx.Tx, int64) error { return nil }

func (j *jobs) take() river.JobArgs {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		return nil
	}
	first := j.waiting[0]
	j.waiting = j.waiting[1:]
	return first
}

type doneJob struct{}

func (doneJob) ID() int64         { return 1 }
func (doneJob) Tries() int        { return 1 }
func (doneJob) LastError() string { return "" }

// answers stands for the world outside: model providers and mail servers. It says what
// it was told to say.
type answers struct {
	mu      sync.Mutex
	reply   engine.Reply
	recites bool
}

func (a *answers) say(reply engine.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = reply
}

// recite makes it answer with what the sample recorded, where there is something.
func (a *answers) recite() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recites = true
}

func (a *answers) Call(_ context.Context, call engine.Call) engine.Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	reply := a.reply
	var ask engine.AIInput
	if a.recites && json.Unmarshal(call.Input, &ask) == nil && ask.Sample != nil {
		reply.Output = ask.Sample
	}
	return reply
}

// invitations puts the mails of reviews into the outbox.
type invitations struct{ outbox *mail.Outbox }

func (i invitations) Invite(ctx context.Context, tx tenants.Tx, in review.Invitation) error {
	_, err := i.outbox.Queue(ctx, tx, mail.Message{
		To: mail.Address{Name: in.ToName, Email: in.ToAddress}, RunID: in.RunID, StepRunID: in.StepRunID,
		SeatID: in.Seat, Generation: in.Generation,
		Body: mail.ReviewRequest{Requester: in.Requester, PipelineName: in.PipelineName, Title: in.Title, Due: in.Due, Zone: in.Zone},
	})
	return err
}

func (i invitations) FirstSent(ctx context.Context, tx tenants.Tx, seats []review.SeatID) (time.Time, error) {
	ids := make([][16]byte, len(seats))
	for n, seat := range seats {
		ids[n] = seat
	}
	return i.outbox.FirstSent(ctx, tx, ids)
}

// record keeps what was logged.
type record struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// browser sends requests as a browser does: with its cookies, and saying that they come
// from our own page.
type browser struct {
	s       *site
	cookies map[string]*http.Cookie
}

// visitor is a browser in which nobody is signed in.
func (s *site) visitor() *browser { return &browser{s: s, cookies: map[string]*http.Cookie{}} }

// as is a browser with a person signed in.
func (s *site) as(user tenants.UserID) *browser {
	s.t.Helper()
	ctx, err := s.web.sessions.Load(s.t.Context(), "")
	require.NoError(s.t, err)
	s.web.sessions.Put(ctx, tenants.SessionUser, user.String())
	token, _, err := s.web.sessions.Commit(ctx)
	require.NoError(s.t, err)
	b := s.visitor()
	b.cookies[s.web.sessions.Cookie.Name] = &http.Cookie{Name: s.web.sessions.Cookie.Name, Value: token}
	return b
}

// in is a browser of the member with a role in the home workspace.
func (s *site) in(role tenants.Role) *browser { return s.as(s.home.people[role].User.ID) }

// at is an address in the home workspace.
func (s *site) at(parts ...string) string { return pathIn(s.home.ID, parts...) }

func (b *browser) get(path string) *page { return b.do(b.request(http.MethodGet, path, nil)) }

// post sends a form given as name, value, name, value.
func (b *browser) post(path string, pairs ...string) *page {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r := b.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

// request makes a request that a test may still change before do sends it.
func (b *browser) request(method, path string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(b.s.t.Context(), method, b.s.web.origin+path, body)
	if b.s.web.Local != nil {
		r.RemoteAddr = "127.0.0.1:54321"
	}
	if method != http.MethodGet && method != http.MethodHead {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	return r
}

func (b *browser) do(r *http.Request) *page {
	b.s.t.Helper()
	recorder := httptest.NewRecorder()
	b.s.web.Handler().ServeHTTP(recorder, r)
	answer := recorder.Result()
	for _, cookie := range answer.Cookies() {
		if b.cookies[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return readPage(b.s.t, b, r, answer)
}
