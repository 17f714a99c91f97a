package bench

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/jobs"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// house is Tollgate as it works in production, but for its outside calls: they answer
// at once, each with something else.
type house struct {
	db     *dbtest.Database
	engine *engine.Engine
	tenant tenants.ID
	owner  tenants.UserID
	clock  clock
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{}
	h.open(t, atOnce{&h.clock})
	return h
}

// open makes a database of its own, and a process whose outside calls a caller answers.
func (h *house) open(t *testing.T, caller engine.Caller) {
	t.Helper()
	h.openDatabase(t)
	h.engine = wire(t, h.db.DB, caller)
}

func (h *house) openDatabase(t *testing.T) {
	t.Helper()
	h.db = dbtest.Open(t)
	h.tenant, h.owner = h.db.Tenant(t)
	db, err := tenants.Open(t.Context(), tenants.Config{URL: h.db.URL}) // as many connections as in production
	require.NoError(t, err)
	t.Cleanup(db.Close)
	h.db.DB = db
}

// newIdleHouse starts runs and leaves the work to others.
func newIdleHouse(t *testing.T) *house {
	t.Helper()
	h := &house{}
	h.openDatabase(t)
	h.engine, _ = newEngine(t, h.db.DB, nil)
	return h
}

// wire is an engine with one working process on a database.
func wire(t *testing.T, db *tenants.DB, caller engine.Caller) *engine.Engine {
	t.Helper()
	made, outbox := newEngine(t, db, caller)
	process, err := jobs.Start(t.Context(), jobs.Config{
		DB: db, Worker: made.NewWorker("bench"), Outbox: outbox, Slices: slots, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop(context.Background())) })
	return made
}

func newEngine(t *testing.T, db *tenants.DB, caller engine.Caller) (*engine.Engine, *mail.Outbox) {
	t.Helper()
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	inserter, err := jobs.NewInserter(db)
	require.NoError(t, err)
	outbox, err := mail.New(mail.Config{
		Sender: mail.Mailbox{}, Inserter: inserter, From: mail.Address{Email: "tollgate@example.com"},
		Links: mail.Links{Secret: secret, BaseURL: "http://tollgate.example"},
	})
	require.NoError(t, err)
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)))
	require.NoError(t, err)
	return engine.New(engine.Config{
		DB: db, Jobs: inserter, Reviews: review.New(secret, jobs.Invitations{Outbox: outbox}), InputBound: jobs.AI{Registry: registry}.InputBound,
		Callers: map[pipeline.Kind]engine.Caller{pipeline.KindAI: caller, pipeline.KindEmail: caller},
		Log:     slog.New(slog.DiscardHandler),
	}), outbox
}

// atOnce answers every call at once.
type atOnce struct{ clock *clock }

// Call notes the step. Its answer differs from every other, as answers do.
func (a atOnce) Call(_ context.Context, call engine.Call) engine.Reply {
	a.clock.step()
	return engine.Reply{
		Output: []byte(`{"text": "Answer to ` + call.Key + `", "message_id": "` + call.Key + `"}`),
		Bill:   &engine.Bill{Model: "practice/standard", Tokens: ledger.Tokens{Input: 10, Output: 10}},
	}
}
