package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// The other side repeats the secret in its answer and in its refusal: afterwards it stands
// nowhere in the database, in no value, job, record or failure.
func TestSecretsAreNowhereInTheDatabase(t *testing.T) {
	t.Parallel()
	const secret = "erp-key-0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"you sent": "`+r.Header.Get("Authorization")+`"}`)
	}))
	t.Cleanup(server.Close)
	h := callingHouse(t, server.URL)
	vault, err := tenants.NewVault(h.secret)
	require.NoError(t, err)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := tenants.AddSecret(ctx, tx, vault, tenants.NewSecretValue{Name: "ERP key", Value: secret}, tenants.Membership{User: tenants.User{ID: h.owner, Name: "Olga"}})
		return err
	})
	h.work()
	step := func(id, path string) string {
		return fmt.Sprintf(`{"id": %q, "name": "Call", "kind": "http", "with": {"method": "POST", "url": "%s%s", "body": "{'n': input.n}", "auth": {"kind": "bearer", "secret": "ERP key"}}}`, id, server.URL, path)
	}
	run := h.start(h.publish(`{"semantics": 3, "name": "Echo", "input": [{"name": "n", "type": "number", "required": true}], "steps": [`+step("a", "/take")+`,`+step("b", "/refuse")+`]}`), `{"n": 1}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Contains(t, p.Run.Failure.Detail, "[secret ERP key]")
	require.Contains(t, h.value(p.Steps[0].Output), "[secret ERP key]")

	conn, err := h.super().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET bytea_output = 'escape'`)
	require.NoError(t, err)
	rows, _ := conn.Query(t.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('public', 'river')`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, tables, "public.stored_values")
	for _, table := range tables {
		var found int
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` r WHERE r::text LIKE '%0123456789%'`).Scan(&found))
		require.Zero(t, found, table)
	}
	var masked int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM stored_values r WHERE r::text LIKE '%[secret ERP key]%'`).Scan(&masked))
	require.NotZero(t, masked, "the look finds what stands there")
}
