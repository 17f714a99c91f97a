package bench

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
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
	h := &house{db: dbtest.Open(t)}
	h.tenant, h.owner = h.db.Tenant(t)
	db, err := tenants.Open(t.Context(), tenants.Config{URL: h.db.URL}) // as many connections as in production
	require.NoError(t, err)
	t.Cleanup(db.Close)
	h.db.DB = db
	h.wire(t)
	return h
}

func (h *house) wire(t *testing.T) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	inserter, err := jobs.NewInserter(h.db.DB)
	require.NoError(t, err)
	outbox, err := mail.New(mail.Config{
		Sender: mail.Mailbox{}, Inserter: inserter, From: mail.Address{Email: "tollgate@example.com"},
		Links: mail.Links{Secret: secret, BaseURL: "http://tollgate.example"},
	})
	require.NoError(t, err)
	h.engine = engine.New(engine.Config{
		DB: h.db.DB, Jobs: inserter, Reviews: review.New(secret, jobs.Invitations{Outbox: outbox}), InputBound: jobs.InputBound, Log: log,
		Callers: map[pipeline.Kind]engine.Caller{pipeline.KindAI: atOnce{&h.clock}, pipeline.KindEmail: atOnce{&h.clock}},
	})
	process, err := jobs.Start(t.Context(), jobs.Config{DB: h.db.DB, Worker: h.engine.NewWorker("bench"), Outbox: outbox, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, process.Stop(context.Background())) })
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
