package tenants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

const (
	firstKey  = "sk-first-0123456789-aaaa"
	secondKey = "sk-second-0123456789-bbbb"
)

// do runs one change in the keeper's workspace.
func (k *keeper) do(fn func(context.Context, tenants.Tx) error) error { return k.in(k.id, fn) }

func (k *keeper) addKey(given tenants.NewProviderKey) (id tenants.ProviderKeyID, err error) {
	err = k.do(func(ctx context.Context, tx tenants.Tx) error {
		id, err = tenants.AddProviderKey(ctx, tx, k.vault, given, k.owner)
		return err
	})
	return id, err
}

func (k *keeper) rotate(id tenants.ProviderKeyID, value, baseURL string, overlap time.Duration) error {
	return k.do(func(ctx context.Context, tx tenants.Tx) error {
		key, err := tenants.ProviderKeyByID(ctx, tx, id)
		if err != nil {
			return err
		}
		return tenants.RotateProviderKey(ctx, tx, k.vault, id, key.Generation, tenants.NewProviderKey{Value: value, BaseURL: baseURL}, overlap, k.owner)
	})
}

func (k *keeper) access(vault tenants.Vault) (access tenants.ModelAccess, err error) {
	err = k.do(func(ctx context.Context, tx tenants.Tx) error {
		access, err = tenants.AccessToModels(ctx, tx, vault, "openai")
		return err
	})
	return access, err
}

func (k *keeper) key(id tenants.ProviderKeyID) (key tenants.ProviderKey) {
	require.NoError(k.t, k.do(func(ctx context.Context, tx tenants.Tx) (err error) {
		key, err = tenants.ProviderKeyByID(ctx, tx, id)
		return err
	}))
	return key
}

func TestProviderKeyIsAddedRotatedRestoredAndRemoved(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	access, err := k.access(k.vault)
	require.NoError(t, err)
	require.Nil(t, access.Own, "a workspace without a key")

	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: " " + firstKey + "\n", BaseURL: "https://models.example.com/v1/"})
	require.NoError(t, err)
	_, err = k.addKey(tenants.NewProviderKey{Provider: "openai", Value: secondKey})
	require.ErrorContains(t, err, "Rotate that one")
	access, err = k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, tenants.OpenedProviderKey{ID: id, Value: firstKey, BaseURL: "https://models.example.com/v1"}, *access.Own)

	require.NoError(t, k.rotate(id, secondKey, "", time.Hour))
	access, err = k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, tenants.OpenedProviderKey{ID: id, Value: secondKey}, *access.Own, "the id stays, the value and its address are new")
	require.Equal(t, tenants.OpenedProviderKey{ID: id, Value: firstKey, BaseURL: "https://models.example.com/v1"}, *access.Old, "the old value goes to the old address only")
	require.Equal(t, "…aaaa", k.key(id).Old.Hint)

	restore := func(ctx context.Context, tx tenants.Tx) error {
		return tenants.RestoreProviderKey(ctx, tx, id, k.owner)
	}
	require.NoError(t, k.do(restore))
	access, err = k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, firstKey, access.Own.Value)
	require.Nil(t, access.Old)
	require.ErrorIs(t, k.do(restore), tenants.ErrNoOldKey)

	require.NoError(t, k.rotate(id, secondKey, "", 0))
	access, err = k.access(k.vault)
	require.NoError(t, err)
	require.Nil(t, access.Old, "no overlap was asked for")

	require.NoError(t, k.rotate(id, firstKey, "", time.Hour))
	require.NoError(t, k.do(func(ctx context.Context, tx tenants.Tx) error { return tenants.RemoveProviderKey(ctx, tx, id, k.owner) }))
	access, err = k.access(k.vault)
	require.NoError(t, err)
	require.Nil(t, access.Own)
	require.ErrorIs(t, k.rotate(id, secondKey, "", 0), tenants.ErrNoProviderKey)
	require.Equal(t, "Olga", k.key(id).RemovedBy, "what charges name is still told")
	again, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: secondKey})
	require.NoError(t, err)
	require.NotEqual(t, id, again)

	var kept string
	require.NoError(t, k.db.Super(t).QueryRow(t.Context(), `
		SELECT (SELECT string_agg(p::text || encode(coalesce(p.sealed, ''), 'escape'), '') FROM provider_keys p) || (SELECT string_agg(a::text, '') FROM audit_entries a)`).Scan(&kept))
	for _, part := range []string{"sk-first", "sk-second", "0123456789"} {
		require.NotContains(t, kept, part)
	}
	var erased bool
	require.NoError(t, k.db.Super(t).QueryRow(t.Context(), `SELECT sealed IS NULL AND old_sealed IS NULL FROM provider_keys WHERE id = $1`, id).Scan(&erased))
	require.True(t, erased)
	require.Equal(t, []string{"provider_key.removed", "provider_key.rotated", "provider_key.rotated", "provider_key.restored", "provider_key.rotated", "provider_key.added"}, k.audited(id))
}

func (k *keeper) audited(id tenants.ProviderKeyID) (actions []string) {
	require.NoError(k.t, k.do(func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "provider_key", ID: id}, tenants.AuditID{})
		for _, entry := range entries {
			actions = append(actions, entry.Action)
		}
		return err
	}))
	return actions
}

// The overlap ends by time alone, and then the value is erased.
func TestOverlapOfProviderKeysEnds(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	require.NoError(t, k.rotate(id, secondKey, "", time.Hour))
	super := k.db.Super(t)
	sweep := func() { require.NoError(t, k.db.InSystemTx(t.Context(), tenants.SweepOldProviderKeys)) }
	left := func() (n int) {
		require.NoError(t, super.QueryRow(t.Context(), `SELECT count(old_sealed) FROM provider_keys`).Scan(&n))
		return n
	}
	sweep()
	require.Equal(t, 1, left())
	_, err = super.Exec(t.Context(), `UPDATE provider_keys SET old_until = now() - interval '1 second'`)
	require.NoError(t, err)
	access, err := k.access(k.vault)
	require.NoError(t, err)
	require.Nil(t, access.Old)
	require.Nil(t, k.key(id).Old)
	require.ErrorIs(t, k.do(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.RestoreProviderKey(ctx, tx, id, k.owner)
	}), tenants.ErrNoOldKey)
	sweep()
	require.Zero(t, left())
}

// Whoever can write into the database can neither move a key nor have it sent elsewhere.
func TestProviderKeyIsBoundToItsPlace(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]string{
		"another address":   `UPDATE provider_keys SET base_url = 'https://thief.example' WHERE id = $1`,
		"another row":       `UPDATE provider_keys SET sealed = (SELECT sealed FROM provider_keys WHERE id <> $1 LIMIT 1) WHERE id = $1`,
		"a secret of steps": `UPDATE provider_keys SET sealed = (SELECT sealed FROM tenant_secrets LIMIT 1) WHERE id = $1`,
	} {
		k := newKeeper(t)
		id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
		require.NoError(t, err)
		_, err = k.addKey(tenants.NewProviderKey{Provider: "anthropic", Value: secondKey})
		require.NoError(t, err)
		_, err = k.add("erp", secretValue)
		require.NoError(t, err)
		_, err = k.db.Super(t).Exec(t.Context(), attack, id)
		require.NoError(t, err, name)
		_, err = k.access(k.vault)
		require.ErrorIs(t, err, tenants.ErrSealed, name)
	}
}

func TestProviderKeyOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	other, _ := k.db.Tenant(t)
	for name, do := range map[string]func(context.Context, tenants.Tx) error{
		"read": func(ctx context.Context, tx tenants.Tx) error {
			_, err := tenants.ProviderKeyByID(ctx, tx, id)
			return err
		},
		"restore": func(ctx context.Context, tx tenants.Tx) error {
			return tenants.RestoreProviderKey(ctx, tx, id, k.owner)
		},
		"end":    func(ctx context.Context, tx tenants.Tx) error { return tenants.EndOldProviderKey(ctx, tx, id, k.owner) },
		"remove": func(ctx context.Context, tx tenants.Tx) error { return tenants.RemoveProviderKey(ctx, tx, id, k.owner) },
		"limit": func(ctx context.Context, tx tenants.Tx) error {
			return tenants.LimitProviderKey(ctx, tx, id, nil, k.owner)
		},
		"test": func(ctx context.Context, tx tenants.Tx) error {
			_, err := tenants.BeginKeyTest(ctx, tx, k.vault, id)
			return err
		},
		"rotate": func(ctx context.Context, tx tenants.Tx) error {
			return tenants.RotateProviderKey(ctx, tx, k.vault, id, 1, tenants.NewProviderKey{Value: secondKey}, 0, k.owner)
		},
	} {
		err := k.in(other, do)
		require.True(t, err == tenants.ErrNoProviderKey || err == tenants.ErrNoOldKey, "%s: %v", name, err)
	}
	require.NoError(t, k.in(other, func(ctx context.Context, tx tenants.Tx) error {
		listed, err := tenants.ProviderKeys(ctx, tx)
		require.Empty(t, listed)
		access, err2 := tenants.AccessToModels(ctx, tx, k.vault, "openai")
		require.Nil(t, access.Own)
		require.NoError(t, err2)
		used, err3 := tenants.KeysInUse(ctx, tx)
		require.Empty(t, used)
		require.NoError(t, err3)
		return err
	}))
	access, err := k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, firstKey, access.Own.Value)
}

func TestProviderKeysAreChecked(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	for name, tc := range map[string]struct {
		given tenants.NewProviderKey
		field string
	}{
		"no value":           {tenants.NewProviderKey{Provider: "openai"}, "value"},
		"short":              {tenants.NewProviderKey{Provider: "openai", Value: "sk-1234"}, "value"},
		"long":               {tenants.NewProviderKey{Provider: "openai", Value: strings.Repeat("k", 5000)}, "value"},
		"header injection":   {tenants.NewProviderKey{Provider: "openai", Value: "sk-12345678\r\nX-Other: 1"}, "value"},
		"not latin":          {tenants.NewProviderKey{Provider: "openai", Value: "sk-12345678é"}, "value"},
		"NUL":                {tenants.NewProviderKey{Provider: "openai", Value: "sk-12345678\x00"}, "value"},
		"odd provider":       {tenants.NewProviderKey{Provider: "Open AI", Value: firstKey}, "provider"},
		"plain http":         {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "http://example.com"}, "base_url"},
		"another scheme":     {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "file:///etc/passwd"}, "base_url"},
		"no host":            {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "https://:443/v1"}, "base_url"},
		"password inside":    {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "https://a:b@example.com"}, "base_url"},
		"query":              {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "https://example.com/?a=b"}, "base_url"},
		"empty query":        {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "https://example.com/?"}, "base_url"},
		"a very long adress": {tenants.NewProviderKey{Provider: "openai", Value: firstKey, BaseURL: "https://example.com/" + strings.Repeat("a", 600)}, "base_url"},
	} {
		_, err := k.addKey(tc.given)
		var invalid *tenants.Invalid
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, tc.field, invalid.Field, name)
		if len(tc.given.Value) > 8 {
			require.NotContains(t, invalid.Error(), tc.given.Value, name)
		}
	}
}

func TestOpenedProviderKeyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	opened := tenants.OpenedProviderKey{Value: firstKey}
	access := tenants.ModelAccess{Own: &opened}
	under := tenants.KeyUnderTest{Key: opened}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s %v %+v %+v", opened, opened, opened, &opened, access, under, struct{ K tenants.OpenedProviderKey }{opened}), "sk-first")
	_, err := json.Marshal(access)
	require.Error(t, err)
}

func TestProviderKeyTestsArePacedAndBoundToTheValue(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	begin := func() (under tenants.KeyUnderTest, err error) {
		err = k.do(func(ctx context.Context, tx tenants.Tx) (err error) {
			under, err = tenants.BeginKeyTest(ctx, tx, k.vault, id)
			return err
		})
		return under, err
	}
	end := func(under tenants.KeyUnderTest, words string) {
		require.NoError(t, k.do(func(ctx context.Context, tx tenants.Tx) error {
			return tenants.EndKeyTest(ctx, tx, under, true, words, k.owner)
		}))
	}
	under, err := begin()
	require.NoError(t, err)
	require.Equal(t, firstKey, under.Key.Value)
	_, err = begin()
	require.ErrorIs(t, err, tenants.ErrTestedJustNow)
	end(under, "It works.\x00")
	require.Equal(t, "It works.\ufffd", k.key(id).Test.Words)

	require.NoError(t, k.rotate(id, secondKey, "", 0))
	require.Nil(t, k.key(id).Test, "the new value was not tested")
	end(under, "what was learnt of the old one")
	require.Nil(t, k.key(id).Test)
}

func TestProviderKeyLimits(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	set := func(limits tenants.RateLimits) error {
		return k.do(func(ctx context.Context, tx tenants.Tx) error {
			return tenants.LimitProviderKey(ctx, tx, id, limits, k.owner)
		})
	}
	require.NoError(t, set(tenants.RateLimits{tenants.AnyModel: {Requests: 60}, "gpt-5.6-terra": {Tokens: 60_000}, "free": {}}))
	access, err := k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, tenants.RateLimit{Tokens: 60_000}, access.Limits.For("gpt-5.6-terra"))
	require.Equal(t, tenants.RateLimit{Requests: 60}, access.Limits.For("another"))
	require.True(t, access.Limits.For("free").IsZero())
	for _, bad := range []tenants.RateLimit{{Requests: -1}, {Tokens: tenants.MaxRate + 1}} {
		require.ErrorContains(t, set(tenants.RateLimits{"m": bad}), "limits")
	}
}

// After the server's secret changed, what the old one sealed opens while the old one is
// known, and is sealed anew so that it can be forgotten.
func TestRewrapUnderANewServerSecret(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	require.NoError(t, k.rotate(id, secondKey, "https://models.example.com", time.Hour))
	_, err = k.add("erp", secretValue)
	require.NoError(t, err)

	fresh, err := tenants.NewVault(testSecret(t, 'n'))
	require.NoError(t, err)
	_, err = k.access(fresh)
	require.ErrorIs(t, err, tenants.ErrSealed)
	lost, err := tenants.Rewrap(t.Context(), k.db.DB, fresh)
	require.NoError(t, err)
	require.Equal(t, tenants.Rewrapped{Unopened: 3}, lost, "nothing is lost where the old secret is not known")

	both, err := tenants.NewVault(testSecret(t, 'n'), testSecret(t, 's'))
	require.NoError(t, err)
	access, err := k.access(both)
	require.NoError(t, err)
	require.Equal(t, secondKey, access.Own.Value)
	done, err := tenants.Rewrap(t.Context(), k.db.DB, both)
	require.NoError(t, err)
	require.Equal(t, tenants.Rewrapped{Done: 3}, done)
	done, err = tenants.Rewrap(t.Context(), k.db.DB, both)
	require.NoError(t, err)
	require.Zero(t, done, "once is enough")

	access, err = k.access(fresh)
	require.NoError(t, err)
	require.Equal(t, secondKey, access.Own.Value)
	require.Equal(t, firstKey, access.Old.Value)
	opened, err := k.open(k.id, fresh, "erp")
	require.NoError(t, err)
	require.Equal(t, secretValue, opened.Value)
	_, err = k.access(k.vault)
	require.ErrorIs(t, err, tenants.ErrSealed, "the old secret opens nothing any more")
}

// A form that is sent twice rotates once, so that what it replaced stays what it was.
func TestProviderKeyIsRotatedOnceByAForm(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	id, err := k.addKey(tenants.NewProviderKey{Provider: "openai", Value: firstKey})
	require.NoError(t, err)
	seen := k.key(id).Generation
	send := func() error {
		return k.do(func(ctx context.Context, tx tenants.Tx) error {
			return tenants.RotateProviderKey(ctx, tx, k.vault, id, seen, tenants.NewProviderKey{Value: secondKey}, time.Hour, k.owner)
		})
	}
	require.NoError(t, send())
	require.ErrorIs(t, send(), tenants.ErrKeyMoved)
	access, err := k.access(k.vault)
	require.NoError(t, err)
	require.Equal(t, firstKey, access.Old.Value)
}
