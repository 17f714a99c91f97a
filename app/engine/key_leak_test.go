package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/jobs"
	"tollgate/tenants"
)

const houseKey = "sk-own-0123456789-abcd"

// keyedHouse is a house whose workspace has a key of its own for the real model.
func keyedHouse(t *testing.T) (*house, *fakellm.Server, tenants.ProviderKeyID) {
	t.Helper()
	h, server := pacedHouse(t, tenants.RateLimit{})
	server.RequireKey(houseKey)
	vault, err := tenants.NewVault(h.secret)
	require.NoError(t, err)
	var id tenants.ProviderKeyID
	h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
		id, err = tenants.AddProviderKey(ctx, tx, vault, tenants.NewProviderKey{Provider: "openai", Value: houseKey}, tenants.Membership{User: tenants.User{ID: h.owner, Name: "Olga"}})
		return err
	})
	return h, server, id
}

// logged collects a log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// question is a step that asks the model in free text.
func question(id string) string {
	return step(id, "ai", `{"models": ["openai/gpt-5.6-terra"], "instructions": "Answer.", "prompt": "Question `+id+`", "max_tokens": 200, "keep": "request"}`)
}

// A workspace's own key pays, and is told with the charge.
func TestOwnKeyPays(t *testing.T) {
	t.Parallel()
	h, _, id := keyedHouse(t)
	h.work()
	run := h.start(h.publish(`{"semantics": 3, "name": "Ask", "steps": [`+question("a")+`]}`), `{}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	charges := h.charges(run)
	require.Len(t, charges, 1)
	require.Equal(t, ledger.PayerOwn, charges[0].Payer)
	require.Equal(t, ledger.KeyID(id), charges[0].Key)
}

// The server repeats the key in its answer, in pieces and whole, and in its refusals:
// afterwards it stands nowhere in the database or in the log.
func TestProviderKeysAreNowhereInTheDatabaseOrTheLog(t *testing.T) {
	t.Parallel()
	h, server, _ := keyedHouse(t)
	log := &logged{}
	h.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.engine.Log = h.log
	server.Play(
		fakellm.Turn{Text: "You sent Bearer " + houseKey + " to us", Model: houseKey},
		fakellm.Turn{Status: 500, Message: "trouble with " + houseKey, Code: houseKey},
		fakellm.Turn{Text: houseKey + houseKey, CutAfter: 1},
		fakellm.Turn{Status: 400, Message: "bad key " + houseKey, Code: houseKey, Header: map[string]string{"X-Request-Id": houseKey}},
	)
	h.work()
	run := h.start(h.publish(`{"semantics": 3, "name": "Ask", "steps": [`+question("a")+`,`+question("b")+`]}`), `{}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Contains(t, h.value(p.Steps[0].Output), "[secret provider key]")

	conn, err := h.super().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET bytea_output = 'escape'`)
	require.NoError(t, err)
	rows, _ := conn.Query(t.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('public', 'river')`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, tables, "public.provider_keys")
	found := ""
	for _, table := range tables {
		_ = conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(left(r::text, 2000), ' '), '') FROM `+table+` r WHERE r::text LIKE '%0123456789%'`).Scan(&found)
		require.Empty(t, found, table)
	}
	var masked int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM stored_values r WHERE r::text LIKE '%[secret provider key]%'`).Scan(&masked))
	require.NotZero(t, masked, "the look finds what stands there")
	log.mu.Lock()
	defer log.mu.Unlock()
	require.NotContains(t, log.text.String(), "0123456789")
}

// A key that was removed while its call waited for its turn is not replaced by the
// installation's: the money is reserved anew, for whoever pays then.
func TestKeyRemovedBeforeTheCallIsNotPaidByTheWrongSide(t *testing.T) {
	t.Parallel()
	h, server, id := keyedHouse(t)
	before := h.engine.Callers[pipeline.KindAI].(jobs.AI)
	removed := sync.OnceFunc(func() {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			return tenants.RemoveProviderKey(ctx, tx, id, tenants.Membership{User: tenants.User{ID: h.owner, Name: "Olga"}})
		})
		server.RequireKey("sk-house")
	})
	h.engine.Callers[pipeline.KindAI] = callerFunc(func(ctx context.Context, call engine.Call) engine.Reply {
		require.True(t, call.OwnKey == id || call.OwnKey.IsZero())
		removed()
		return before.Call(ctx, call)
	})
	h.work()
	run := h.start(h.publish(`{"semantics": 3, "name": "Ask", "steps": [`+question("a")+`]}`), `{}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, 1, p.Steps[0].Attempt, "nothing was tried in vain")
	charges := h.charges(run)
	require.Len(t, charges, 1, fmt.Sprint(charges))
	require.Equal(t, ledger.PayerPlatform, charges[0].Payer)
	require.True(t, charges[0].Key.IsZero())
	require.Len(t, server.Seen(), 1)
}
