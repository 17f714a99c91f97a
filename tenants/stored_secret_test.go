package tenants_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

const secretValue = "erp-key-0123456789-wxyz"

// keeper is a workspace whose owner keeps secrets.
type keeper struct {
	t     *testing.T
	db    *dbtest.Database
	vault tenants.Vault
	id    tenants.ID
	owner tenants.Membership
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, db: dbtest.Open(t), vault: vaultOf(t, 's')}
	var user tenants.UserID
	k.id, user = k.db.Tenant(t)
	k.owner = tenants.Membership{User: tenants.User{ID: user, Name: "Olga"}, Role: tenants.Owner}
	return k
}

func vaultOf(t *testing.T, fill byte) tenants.Vault {
	t.Helper()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{fill}, 32))
	require.NoError(t, err)
	vault, err := tenants.NewVault(secret)
	require.NoError(t, err)
	return vault
}

func (k *keeper) in(tenant tenants.ID, fn func(context.Context, tenants.Tx) error) error {
	return k.db.InTx(k.t.Context(), tenant, fn)
}

func (k *keeper) add(name, value string, hosts ...string) (id tenants.StoredSecretID, err error) {
	err = k.in(k.id, func(ctx context.Context, tx tenants.Tx) error {
		id, err = tenants.AddSecret(ctx, tx, k.vault, tenants.NewSecretValue{Name: name, Value: value, Hosts: hosts}, k.owner)
		return err
	})
	return id, err
}

func (k *keeper) open(tenant tenants.ID, vault tenants.Vault, name string) (opened tenants.OpenedSecret, err error) {
	err = k.in(tenant, func(ctx context.Context, tx tenants.Tx) error {
		opened, err = tenants.OpenSecret(ctx, tx, vault, name)
		return err
	})
	return opened, err
}

func TestSecretsAreKeptSealedAndTold(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.add("ERP key", "  "+secretValue+"\n", "API.example.com", "")
	require.NoError(t, err)
	opened, err := k.open(k.id, k.vault, "ERP key")
	require.NoError(t, err)
	require.Equal(t, secretValue, opened.Value)
	require.True(t, opened.MayGoTo("api.example.com", "api.example.com:443"))
	require.False(t, opened.MayGoTo("evil.example", "evil.example:443"))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", opened, opened, opened), secretValue)

	var row string
	super := k.db.Super(t)
	require.NoError(t, super.QueryRow(t.Context(), `SELECT s::text || encode(s.sealed, 'escape') FROM tenant_secrets s`).Scan(&row))
	require.NotContains(t, row, "erp-key")
	require.NoError(t, k.in(k.id, func(ctx context.Context, tx tenants.Tx) error {
		listed, err := tenants.StoredSecrets(ctx, tx)
		require.Len(t, listed, 1)
		require.Equal(t, "…wxyz", listed[0].Hint)
		require.Equal(t, "Olga", listed[0].AddedBy)
		require.NoError(t, tenants.ReplaceSecret(ctx, tx, k.vault, id, tenants.NewSecretValue{Value: "another-value"}, k.owner))
		require.NoError(t, tenants.DeleteSecret(ctx, tx, id, k.owner))
		require.ErrorIs(t, tenants.DeleteSecret(ctx, tx, id, k.owner), tenants.ErrNoSecret)
		entries, err2 := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "secret", ID: id}, tenants.AuditID{})
		require.NoError(t, err2)
		var actions []string
		for _, entry := range entries {
			actions = append(actions, entry.Action)
			require.NotContains(t, fmt.Sprint(entry), secretValue)
		}
		require.Equal(t, []string{"secret.deleted", "secret.replaced", "secret.added"}, actions)
		return err
	}))
}

// A sealed value opens in its own row only, and only under its own key.
func TestSecretsCannotBeMoved(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	_, err := k.add("first", secretValue)
	require.NoError(t, err)
	_, err = k.add("second", "second-value")
	require.NoError(t, err)
	_, err = k.db.Super(t).Exec(t.Context(), `UPDATE tenant_secrets SET sealed = (SELECT sealed FROM tenant_secrets WHERE name = 'first') WHERE name = 'second'`)
	require.NoError(t, err)
	_, err = k.open(k.id, k.vault, "second")
	require.ErrorIs(t, err, tenants.ErrSealed)
	_, err = k.open(k.id, vaultOf(t, 'x'), "first")
	require.ErrorIs(t, err, tenants.ErrSealed, "another key of the installation")
	_, err = k.open(tenants.NewID[tenants.Tenant](), k.vault, "first")
	require.ErrorIs(t, err, tenants.ErrNoSecret, "another workspace")
}

func TestSecretsAreChecked(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	_, err := k.add("taken", secretValue)
	require.NoError(t, err)
	for name, tc := range map[string]struct{ name, value, host, field string }{
		"no name":        {"", secretValue, "", "name"},
		"odd name":       {"a/b", secretValue, "", "name"},
		"taken name":     {"taken", secretValue, "", "name"},
		"no value":       {"n", " ", "", "value"},
		"short value":    {"n", "12345", "", "value"},
		"long value":     {"n", strings.Repeat("x", 20_000), "", "value"},
		"several lines":  {"n", "first\nsecond", "", "value"},
		"host with path": {"n", secretValue, "https://example.com/", "hosts"},
	} {
		_, err := k.add(tc.name, tc.value, tc.host)
		var invalid *tenants.Invalid
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, tc.field, invalid.Field, name)
		if len(tc.value) > 5 {
			require.NotContains(t, invalid.Error(), tc.value)
		}
	}
}
