package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// MaxOverlap is the longest time that a replaced key stays usable.
const MaxOverlap = 30 * 24 * time.Hour

// RotateProviderKey gives a key another value, used from the next call on. The one before
// stays usable for the overlap: where the provider does not take the new one yet, and for
// RestoreProviderKey. An overlap of 0 erases it at once. seen is the generation that the
// person saw; if it has passed by, that is ErrKeyMoved.
func RotateProviderKey(ctx context.Context, tx Tx, vault Vault, id ProviderKeyID, seen int, given NewProviderKey, overlap time.Duration, by Membership) error {
	given, err := given.cleaned()
	if err != nil {
		return err
	}
	if overlap < 0 || overlap > MaxOverlap {
		return &Invalid{"overlap", "The old key can stay usable for up to 30 days."}
	}
	sealed, err := vault.Seal(tx.Tenant, id, given.place(), []byte(given.Value))
	if err != nil {
		return err
	}
	var until *time.Time
	if overlap > 0 {
		end := tx.Now.Add(overlap)
		until = &end
	}
	err = changeKey(ctx, tx, "provider_key.rotated", id, by, `
		old_base_url = CASE WHEN $3::timestamptz IS NULL THEN '' ELSE base_url END, old_sealed = CASE WHEN $3::timestamptz IS NULL THEN NULL ELSE sealed END,
		old_key_id = CASE WHEN $3::timestamptz IS NULL THEN '' ELSE key_id END, old_hint = CASE WHEN $3::timestamptz IS NULL THEN '' ELSE hint END, old_until = $3,
		base_url = $4, sealed = $5, key_id = $6, hint = $7, generation = generation + 1,
		tested_at = NULL, test_passed = false, test_words = '', rotated_by = $8, rotated_at = $9`, `AND generation = $10`,
		until, given.BaseURL, sealed, vault.KeyID(), given.hint(), by.User.Name, tx.Now, seen)
	return whyUnchanged(ctx, tx, id, err, ErrKeyMoved)
}

// whyUnchanged tells a key that is gone from one that is as the guard did not expect it.
func whyUnchanged(ctx context.Context, tx Tx, id ProviderKeyID, err, unexpected error) error {
	if !errors.Is(err, ErrNoProviderKey) {
		return err
	}
	key, err := ProviderKeyByID(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case key.RemovedAt != nil:
		return ErrNoProviderKey
	}
	return unexpected
}

// RestoreProviderKey takes a rotation back: the replaced key is used again, and the new one
// is erased. It returns ErrNoOldKey where the overlap has ended.
func RestoreProviderKey(ctx context.Context, tx Tx, id ProviderKeyID, by Membership) error {
	err := changeKey(ctx, tx, "provider_key.restored", id, by, `
		base_url = old_base_url, sealed = old_sealed, key_id = old_key_id, hint = old_hint, generation = generation + 1,
		tested_at = NULL, test_passed = false, test_words = '', rotated_by = $3, rotated_at = $4, `+noOldKey, `AND old_until > now()`, by.User.Name, tx.Now)
	return whyUnchanged(ctx, tx, id, err, ErrNoOldKey)
}

// EndOldProviderKey erases a replaced key before its overlap ends.
func EndOldProviderKey(ctx context.Context, tx Tx, id ProviderKeyID, by Membership) error {
	err := changeKey(ctx, tx, "provider_key.old_ended", id, by, noOldKey, `AND old_until IS NOT NULL`)
	return whyUnchanged(ctx, tx, id, err, ErrNoOldKey)
}

const noOldKey = `old_base_url = '', old_sealed = NULL, old_key_id = '', old_hint = '', old_until = NULL`

// RemoveProviderKey erases a key, and what it replaced. Its row stays: charges name it.
func RemoveProviderKey(ctx context.Context, tx Tx, id ProviderKeyID, by Membership) error {
	return changeKey(ctx, tx, "provider_key.removed", id, by, `sealed = NULL, removed_by = $3, removed_at = $4, `+noOldKey, ``, by.User.Name, tx.Now)
}

// LimitProviderKey sets how much may be sent under a key in a minute.
func LimitProviderKey(ctx context.Context, tx Tx, id ProviderKeyID, limits RateLimits, by Membership) error {
	if len(limits) > maxRateEntries {
		return &Invalid{"limits", "These are too many models."}
	}
	kept := RateLimits{}
	for model, limit := range limits {
		if limit.Requests < 0 || limit.Requests > MaxRate || limit.Tokens < 0 || limit.Tokens > MaxRate {
			return &Invalid{"limits", fmt.Sprintf("A limit is a whole number up to %d.", MaxRate)}
		}
		if !limit.IsZero() || model != AnyModel {
			kept[model] = limit
		}
	}
	document, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("write a key's limits: %w", err)
	}
	return changeKey(ctx, tx, "provider_key.limited", id, by, `limits = $3`, ``, string(document))
}

// changeKey changes a key that is in use and tells the log. The parameters of set begin at
// $3.
func changeKey(ctx context.Context, tx Tx, action string, id ProviderKeyID, by Membership, set, where string, args ...any) error {
	var provider string
	err := tx.QueryRow(ctx, `UPDATE provider_keys SET `+set+` WHERE tenant_id = $1 AND id = $2 AND removed_at IS NULL `+where+` RETURNING provider`,
		append([]any{tx.Tenant, id}, args...)...).Scan(&provider)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoProviderKey
	}
	if err != nil {
		return fmt.Errorf("change a provider key: %w", err)
	}
	return auditKey(ctx, tx, action, id, provider, by)
}

// testPause is the least time between two tests of a key: each is a call that costs.
const testPause = 10 * time.Second

// BeginKeyTest opens a key to be tried, outside of any transaction. Tests too close
// together are ErrTestedJustNow.
func BeginKeyTest(ctx context.Context, tx Tx, vault Vault, id ProviderKeyID) (KeyUnderTest, error) {
	under := KeyUnderTest{id: id}
	var baseURL string
	var sealed []byte
	err := tx.QueryRow(ctx, `
		UPDATE provider_keys SET test_began_at = now()
		WHERE tenant_id = $1 AND id = $2 AND removed_at IS NULL AND (test_began_at IS NULL OR test_began_at <= now() - $3::interval)
		RETURNING provider, base_url, sealed, generation`, tx.Tenant, id, testPause).
		Scan(&under.Provider, &baseURL, &sealed, &under.generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return under, whyUnchanged(ctx, tx, id, ErrNoProviderKey, ErrTestedJustNow)
	}
	if err != nil {
		return under, fmt.Errorf("begin to test a provider key: %w", err)
	}
	under.Key, err = openKey(tx.Tenant, vault, id, baseURL, sealed)
	return under, err
}

// KeyUnderTest is a key that is being tried.
type KeyUnderTest struct {
	Provider   string
	Key        OpenedProviderKey
	id         ProviderKeyID
	generation int
}

// EndKeyTest notes what came of a test. What was learnt of a value that was replaced
// meanwhile is dropped.
func EndKeyTest(ctx context.Context, tx Tx, under KeyUnderTest, passed bool, words string, by Membership) error {
	tag, err := tx.Exec(ctx, `
		UPDATE provider_keys SET tested_at = $4, test_passed = $5, test_words = $6
		WHERE tenant_id = $1 AND id = $2 AND generation = $3 AND removed_at IS NULL`,
		tx.Tenant, under.id, under.generation, tx.Now, passed, stripped(words, maxTestWords))
	if err != nil {
		return fmt.Errorf("note a test of a provider key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return auditKey(ctx, tx, "provider_key.tested", under.id, under.Provider, by)
}

const maxTestWords = 1000
