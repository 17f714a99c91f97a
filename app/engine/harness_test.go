package engine_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/jobs"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// house is an engine with all rooms around it, on a database of its own.
type house struct {
	t       *testing.T
	db      *dbtest.Database
	engine  *engine.Engine
	outbox  *mail.Outbox
	reviews *review.Room
	secret  tenants.Secret
	tenant  tenants.ID
	owner   tenants.UserID
	log     *slog.Logger
	super   func() *pgxpool.Pool // of the superuser, to look at all rows and to break them
}

// build makes a house. callers replace the outside calls of the product.
func build(t *testing.T, callers map[pipeline.Kind]engine.Caller) *house {
	t.Helper()
	h := &house{t: t, db: dbtest.Open(t), log: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	h.tenant, h.owner = h.db.Tenant(t)
	h.super = sync.OnceValue(func() *pgxpool.Pool { return h.db.Super(t) })
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	inserter, err := jobs.NewInserter(h.db.DB)
	require.NoError(t, err)
	h.outbox, err = mail.New(mail.Config{
		Sender: mail.Mailbox{}, Inserter: inserter, From: mail.Address{Email: "tollgate@example.com"},
		Links: mail.Links{Secret: secret, BaseURL: "http://tollgate.example"},
	})
	require.NoError(t, err)
	h.secret = secret
	h.reviews = review.New(secret, jobs.Invitations{Outbox: h.outbox})
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)))
	require.NoError(t, err)
	all := map[pipeline.Kind]engine.Caller{
		pipeline.KindAI:    jobs.AI{DB: h.db.DB, Registry: registry},
		pipeline.KindEmail: jobs.Email{DB: h.db.DB, Outbox: h.outbox},
	}
	for kind, caller := range callers {
		all[kind] = caller
	}
	h.engine = engine.New(engine.Config{
		DB: h.db.DB, Jobs: inserter, Reviews: h.reviews, Callers: all, InputBound: jobs.AI{Registry: registry}.InputBound, Log: h.log,
		Callbacks: engine.Callbacks{Secret: secret, BaseURL: "http://tollgate.example"},
	})
	return h
}

// work starts a working process, stopped with the test.
func (h *house) work() *engine.Worker {
	h.t.Helper()
	worker, stop := h.startWork()
	h.t.Cleanup(stop)
	return worker
}

// workUntilStopped starts a working process that the caller stops.
func (h *house) workUntilStopped() func() {
	h.t.Helper()
	_, stop := h.startWork()
	return stop
}

func (h *house) startWork() (*engine.Worker, func()) {
	h.t.Helper()
	return h.startWorkWith(20)
}

// workWith starts a working process with so many slots, stopped with the test.
func (h *house) workWith(slots int) {
	h.t.Helper()
	_, stop := h.startWorkWith(slots)
	h.t.Cleanup(stop)
}

func (h *house) startWorkWith(slots int) (*engine.Worker, func()) {
	h.t.Helper()
	worker := h.engine.NewWorker(h.t.Name())
	process, err := jobs.Start(h.t.Context(), jobs.Config{
		DB: h.db.DB, Worker: worker, Outbox: h.outbox, Slices: slots, Patience: 5 * time.Second, Log: h.log,
	})
	require.NoError(h.t, err)
	return worker, func() { require.NoError(h.t, process.Stop(context.Background())) }
}

// publish stores a document and makes it live.
func (h *house) publish(document string) pipeline.ID {
	h.t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(h.t, err)
	var id pipeline.ID
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if id, err = pipeline.Create(ctx, tx, parsed, "", h.owner); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", h.owner)
		return err
	})
	return id
}

// start begins a run with a key of its own.
func (h *house) start(id pipeline.ID, input string) engine.RunID {
	h.t.Helper()
	return h.startKeyed(id, input, tenants.NewID[engine.Run]().String()).Run.ID
}

func (h *house) startKeyed(id pipeline.ID, input, key string) engine.Started {
	h.t.Helper()
	var started engine.Started
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		started, err = h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(input), By: h.owner, Key: key})
		return err
	})
	return started
}

func (h *house) in(fn func(context.Context, tenants.Tx) error) {
	h.t.Helper()
	require.NoError(h.t, h.db.InTx(h.t.Context(), h.tenant, fn))
}

func (h *house) progress(id engine.RunID) engine.Progress {
	h.t.Helper()
	var p engine.Progress
	var err error
	for range 20 { // where a test cuts connections, this look's may be among them
		err = h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			p, err = engine.ProgressOf(ctx, tx, id)
			return err
		})
		if !tenants.IsTrouble(err) {
			break
		}
	}
	require.NoError(h.t, err)
	return p
}

// await polls until the run's progress is as wished.
func (h *house) await(id engine.RunID, wished string, is func(engine.Progress) bool) engine.Progress {
	h.t.Helper()
	var last engine.Progress
	require.Eventually(h.t, func() bool {
		last = h.progress(id)
		return is(last)
	}, 30*time.Second, 20*time.Millisecond, "waiting for: %s", wished)
	return last
}

func (h *house) awaitEnd(id engine.RunID) engine.Progress {
	h.t.Helper()
	return h.await(id, "the run's end", func(p engine.Progress) bool { return p.Run.State.Final() })
}

func (h *house) awaitWait(id engine.RunID, kind engine.WaitKind) (engine.Progress, engine.StepRunID) {
	h.t.Helper()
	var step engine.StepRunID
	h.await(id, "a wait for "+string(kind), func(p engine.Progress) bool {
		for of, wait := range p.Waits {
			if wait.Kind == kind {
				step = of
				return true
			}
		}
		return false
	})
	return h.progress(id), step // its rows were read one after the other, maybe with the wait's begin in between
}

// answer is the decision of the first open seat's holder, who came by her link.
func (h *house) answer(detail review.Detail, verdict review.Verdict, comment string) review.Decision {
	h.t.Helper()
	for _, seat := range detail.Seats {
		if seat.State == review.SeatOpen {
			return review.Decision{
				Seat: seat.ID, Viewer: review.Viewer{Token: h.secret.SeatToken(seat.ID, seat.Generation)},
				Digest: detail.Digest, Verdict: verdict, Comment: comment,
			}
		}
	}
	h.t.Fatal("no open seat")
	return review.Decision{}
}

// callerFunc is a function as a caller.
type callerFunc func(context.Context, engine.Call) engine.Reply

func (f callerFunc) Call(ctx context.Context, call engine.Call) engine.Reply { return f(ctx, call) }

// testLog shows logs with the test that made them.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Helper()
	l.t.Log(string(line))
	return len(line), nil
}

var _ io.Writer = testLog{}

// calls counts outside calls by key.
type calls struct {
	mu    sync.Mutex
	byKey map[string]int
}

func (c *calls) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]int{}
	}
	c.byKey[key]++
}

// all is how often each key was seen so far.
func (c *calls) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byKey)
}
