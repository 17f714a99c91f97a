package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

func TestAuditIsReadNewestFirstInPages(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	target := tenants.Target{Kind: "run", ID: tenants.NewID[tenants.Tenant]()}
	inTenant(t, db, tenant, func(ctx context.Context, tx tenants.Tx) {
		batch := &tenants.Batch{}
		for i := range 450 {
			require.NoError(t, tenants.QueueAudit(batch, tenant, tenants.Entry{
				Actor: tenants.BySystem("the test"), Action: "run.paused", Target: target, Detail: map[string]any{"n": i},
			}))
		}
		require.NoError(t, tx.Send(ctx, batch))
		other := tenants.Target{Kind: "run", ID: tenants.NewID[tenants.Tenant]()}
		require.NoError(t, tenants.Audit(ctx, tx, tenants.Entry{Actor: tenants.BySystem("the test"), Action: "run.paused", Target: other}))
		require.NoError(t, tenants.Audit(ctx, tx, tenants.Entry{Actor: tenants.BySystem("the test"), Action: "run.paused", Target: tenants.Target{Kind: "run"}}))

		next := 449
		var before tenants.AuditID
		for _, size := range []int{200, 200, 50, 0} {
			page, err := tenants.AuditOf(ctx, tx, target, before)
			require.NoError(t, err)
			require.Len(t, page, size)
			for _, entry := range page {
				require.EqualValues(t, json.Number(itoa(next)), entry.Detail["n"])
				next, before = next-1, entry.ID
			}
		}
		none, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "run"}, tenants.AuditID{})
		require.NoError(t, err)
		require.Len(t, none, 1, "an entry about no single thing")
	})
}

func itoa(n int) string { text, _ := json.Marshal(n); return string(text) }

// Words of people, whatever is in them, must not void the change they belong to.
func TestAuditTakesAnyWords(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	seat := tenants.NewID[tenants.Tenant]()
	target := tenants.Target{Kind: "review", ID: seat}
	inTenant(t, db, tenant, func(ctx context.Context, tx tenants.Tx) {
		require.NoError(t, tenants.Audit(ctx, tx, tenants.Entry{
			Actor:  tenants.ByLink(seat, "Eve\x00\xff"+strings.Repeat("ü", 5000)),
			Action: "review.decided",
			Target: target,
			Detail: map[string]any{"comment": "nul \x00, broken \xff, </script>", "amount": json.Number("9007199254740993")},
		}))
		entries, err := tenants.AuditOf(ctx, tx, target, tenants.AuditID{})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, tenants.ActorLink, entries[0].Actor.Kind)
		require.True(t, strings.HasPrefix(entries[0].Actor.Name, "Eve\ufffd\ufffdü"))
		require.LessOrEqual(t, len(entries[0].Actor.Name), 1024)
		require.Equal(t, map[string]any{"comment": "nul \x00, broken \ufffd, </script>", "amount": json.Number("9007199254740993")}, entries[0].Detail)
		require.Equal(t, tx.Now, entries[0].At)
	})
}

func TestAuditRefusesIncompleteEntries(t *testing.T) {
	t.Parallel()
	whole := tenants.Entry{Actor: tenants.BySystem("x"), Action: "run.paused", Target: tenants.Target{Kind: "run"}}
	for name, spoil := range map[string]func(*tenants.Entry){
		"no actor":       func(e *tenants.Entry) { e.Actor = tenants.Actor{} },
		"no target":      func(e *tenants.Entry) { e.Target.Kind = "" },
		"no action":      func(e *tenants.Entry) { e.Action = "" },
		"a sentence":     func(e *tenants.Entry) { e.Action = "Run paused" },
		"a large detail": func(e *tenants.Entry) { e.Detail = map[string]any{"x": strings.Repeat("x", 17<<10)} },
		"no JSON":        func(e *tenants.Entry) { e.Detail = map[string]any{"x": func() {}} },
	} {
		entry := whole
		spoil(&entry)
		require.ErrorContains(t, tenants.QueueAudit(&tenants.Batch{}, tenants.NewID[tenants.Tenant](), entry), "audit entry", name)
	}
}

func TestAuditGoesWithItsChange(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, user := db.Tenant(t)
	target := tenants.Target{Kind: "member", ID: user}
	undo := errors.New("undo")
	err := db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		require.NoError(t, tenants.Audit(ctx, tx, tenants.Entry{Actor: tenants.BySystem("x"), Action: "member.added", Target: target}))
		return undo
	})
	require.ErrorIs(t, err, undo)
	inTenant(t, db, tenant, func(ctx context.Context, tx tenants.Tx) {
		entries, err := tenants.AuditOf(ctx, tx, target, tenants.AuditID{})
		require.NoError(t, err)
		require.Empty(t, entries)
		for _, change := range []string{`UPDATE audit_entries SET action = 'x'`, `DELETE FROM audit_entries`} {
			inner, err := tx.Begin(ctx)
			require.NoError(t, err)
			_, err = inner.Exec(ctx, change)
			require.ErrorContains(t, err, "permission denied")
			require.NoError(t, inner.Rollback(ctx))
		}
	})
}
