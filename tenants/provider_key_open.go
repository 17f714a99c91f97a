package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// OpenedProviderKey is a key that is about to be used. Nothing prints it.
type OpenedProviderKey struct {
	ID      ProviderKeyID
	Value   string
	BaseURL string // where it is sent; empty: the provider's own address
}

// String hides the value, whatever prints it.
func (o OpenedProviderKey) String() string { return masked }

// GoString hides the value from %#v.
func (o OpenedProviderKey) GoString() string { return masked }

// MarshalText refuses: a key is never part of a document.
func (o OpenedProviderKey) MarshalText() ([]byte, error) {
	return nil, errors.New("a provider key cannot be written out")
}

// ModelAccess is with what, and how fast, a workspace may call a provider's models.
type ModelAccess struct {
	Own    *OpenedProviderKey // nil: the workspace has none, and the installation's is used
	Old    *OpenedProviderKey // what it replaced, where that is still usable
	Limits RateLimits         // of the own key
	Tenant RateLimit          // of the workspace, over all its calls
}

// AccessToModels reads how a workspace calls a provider, for a call that is about to be
// made. It returns ErrSealed for a key that was stored under another server secret; what
// was replaced is left out where it cannot be opened.
func AccessToModels(ctx context.Context, tx Tx, vault Vault, provider string) (ModelAccess, error) {
	var access ModelAccess
	var id ProviderKeyID
	var baseURL, oldBaseURL string
	var sealed, old, limits []byte
	err := tx.QueryRow(ctx, `
		SELECT k.id, coalesce(k.base_url, ''), k.sealed, k.limits, coalesce(k.old_base_url, ''), CASE WHEN k.old_until > now() THEN k.old_sealed END,
			coalesce(q.requests_per_minute, 0), coalesce(q.tokens_per_minute, 0)
		FROM (VALUES ($1::uuid)) AS t (id)
		LEFT JOIN provider_keys k ON k.tenant_id = t.id AND k.provider = $2 AND k.removed_at IS NULL
		LEFT JOIN tenant_quotas q ON q.tenant_id = t.id`, tx.Tenant, provider).
		Scan(&id, &baseURL, &sealed, &limits, &oldBaseURL, &old, &access.Tenant.Requests, &access.Tenant.Tokens)
	if err != nil {
		return access, fmt.Errorf("read a provider key: %w", err)
	}
	if sealed == nil {
		return access, nil
	}
	if err := json.Unmarshal(limits, &access.Limits); err != nil {
		return access, fmt.Errorf("read a key's limits: %w", err)
	}
	own, err := openKey(tx.Tenant, vault, id, baseURL, sealed)
	if err != nil {
		return access, err
	}
	access.Own = &own
	if old == nil {
		return access, nil
	}
	if replaced, err := openKey(tx.Tenant, vault, id, oldBaseURL, old); err == nil {
		access.Old = &replaced
	}
	return access, nil
}

func openKey(tenant ID, vault Vault, id ProviderKeyID, baseURL string, sealed []byte) (OpenedProviderKey, error) {
	value, err := vault.Open(tenant, id, keyPlace(baseURL), sealed)
	return OpenedProviderKey{ID: id, Value: string(value), BaseURL: baseURL}, err
}

// KeysInUse are the ids of the workspace's own keys by provider: who pays for a call is
// known before it is made.
func KeysInUse(ctx context.Context, tx Tx) (map[string]ProviderKeyID, error) {
	rows, _ := tx.Query(ctx, `SELECT provider, id FROM provider_keys WHERE tenant_id = $1 AND removed_at IS NULL`, tx.Tenant)
	keys := map[string]ProviderKeyID{}
	var provider string
	var id ProviderKeyID
	_, err := pgx.ForEachRow(rows, []any{&provider, &id}, func() error {
		keys[provider] = id
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the provider keys in use: %w", err)
	}
	return keys, nil
}

// SweepOldProviderKeys erases replaced keys whose overlap has ended.
func SweepOldProviderKeys(ctx context.Context, stx SystemTx) error {
	_, err := stx.Exec(ctx, `UPDATE provider_keys SET `+noOldKey+` WHERE old_until <= now()`)
	if err != nil {
		return fmt.Errorf("erase replaced provider keys: %w", err)
	}
	return nil
}
