package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ProviderKey is a workspace's own key at a provider of models, by what people may know of
// it: its value is written, and never shown. Of each provider one is in use.
type ProviderKey struct {
	ID        ProviderKeyID
	Provider  string // as models' ids begin: "openai"
	BaseURL   string // where it is sent; empty: the provider's own address
	Hint      string // what people recognise the value by; may be empty
	Limits    RateLimits
	AddedBy   string
	AddedAt   time.Time
	RotatedBy string // empty: never rotated
	RotatedAt *time.Time
	RemovedBy string
	RemovedAt *time.Time // nil: in use

	// The key that the newest rotation replaced; nil where none is usable any more.
	Old *OldProviderKey
	// The newest test of the key as it is now; nil where there was none.
	Test *ProviderKeyTest
	// Generation grows with each change of the value, so that what was learnt of one value
	// is not told of the next, and a form that is sent twice changes it once.
	Generation int
}

// ProviderKeyID identifies a provider key; rotation keeps it.
type ProviderKeyID = IDOf[ProviderKey]

// OldProviderKey is a value that was replaced and is still usable for a while.
type OldProviderKey struct {
	BaseURL string
	Hint    string
	Until   time.Time
}

// ProviderKeyTest is what came of trying a key.
type ProviderKeyTest struct {
	At     time.Time
	Passed bool
	Words  string // for people
}

// AnyModel is the entry of RateLimits that holds for each model without an own one.
const AnyModel = "*"

// RateLimits are limits by model, in the provider's own id for it, and AnyModel. Each model
// is counted by itself.
type RateLimits map[string]RateLimit

// RateLimit bounds what is sent in a minute; 0 is no limit.
type RateLimit struct {
	Requests int64 `json:"requests,omitempty"`
	Tokens   int64 `json:"tokens,omitempty"`
}

// IsZero tells that nothing is limited.
func (l RateLimit) IsZero() bool { return l == RateLimit{} }

// For is the limit of a model.
func (l RateLimits) For(model string) RateLimit {
	if limit, ok := l[model]; ok {
		return limit
	}
	return l[AnyModel]
}

// Errors about provider keys.
var (
	// ErrNoProviderKey tells that the workspace has no such key, or has removed it.
	ErrNoProviderKey = errors.New("no such provider key")
	// ErrNoOldKey tells that no replaced key is usable any more.
	ErrNoOldKey = errors.New("no replaced key is usable any more")
	// ErrKeyMoved tells that the key's value was changed since its page was drawn.
	ErrKeyMoved = errors.New("this key was changed since")
	// ErrTestedJustNow tells that a key was tested a moment ago.
	ErrTestedJustNow = errors.New("this key was tested a moment ago")
)

// Bounds of what people enter.
const (
	minProviderKey = 8
	maxProviderKey = 4 << 10
	maxBaseURL     = 500
	// MaxRate is the largest limit a minute.
	MaxRate = 1_000_000_000
	// maxRateEntries is more than a provider has models.
	maxRateEntries = 200
)

// NewProviderKey is what a person entered for a key.
type NewProviderKey struct {
	Provider string // ignored where a key is rotated
	Value    string
	BaseURL  string // empty: the provider's own address
}

// cleaned takes what a person entered; the error is an *Invalid, which never repeats the
// value.
func (n NewProviderKey) cleaned() (NewProviderKey, error) {
	n.Value, n.BaseURL = strings.TrimSpace(n.Value), strings.TrimRight(strings.TrimSpace(n.BaseURL), "/")
	switch {
	case n.Value == "":
		return n, &Invalid{"value", "Enter the key itself."}
	case len(n.Value) < minProviderKey:
		return n, &Invalid{"value", fmt.Sprintf("A key has at least %d characters. Copy the whole of it.", minProviderKey)}
	case len(n.Value) > maxProviderKey:
		return n, &Invalid{"value", "A key can have up to 4 KB."}
	case strings.ContainsFunc(n.Value, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return n, &Invalid{"value", "A key has no spaces, line breaks or special letters. Copy it again."}
	}
	return n, checkKeyURL(n.BaseURL)
}

// checkKeyURL takes an address that calls may begin with. Whether it is a public one is
// judged where it is dialled.
func checkKeyURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > maxBaseURL:
		return &Invalid{"base_url", fmt.Sprintf("An address can have up to %d characters.", maxBaseURL)}
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return &Invalid{"base_url", "Write an address that begins with https, such as https://models.example.com/v1."}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(text, "?#"):
		return &Invalid{"base_url", "Write the address without a password, a question mark or a #."}
	}
	return nil
}

// place is the column that a sealed value is bound to: with the address it may be sent to.
func (n NewProviderKey) place() string { return keyPlace(n.BaseURL) }

func keyPlace(baseURL string) string { return "provider key for " + baseURL }

func (n NewProviderKey) hint() string { return NewSecretValue{Value: n.Value}.hint() }

// AddProviderKey stores the workspace's key at a provider. What a person got wrong is an
// *Invalid.
func AddProviderKey(ctx context.Context, tx Tx, vault Vault, given NewProviderKey, by Membership) (ProviderKeyID, error) {
	id := NewID[ProviderKey]()
	given, err := given.cleaned()
	if err != nil {
		return id, err
	}
	sealed, err := vault.Seal(tx.Tenant, id, given.place(), []byte(given.Value))
	if err != nil {
		return id, err
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO provider_keys (tenant_id, id, provider, base_url, sealed, key_id, hint, added_by, added_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (tenant_id, provider) WHERE removed_at IS NULL DO NOTHING`,
		tx.Tenant, id, given.Provider, given.BaseURL, sealed, vault.KeyID(), given.hint(), by.User.Name, tx.Now)
	if pg := new(pgconn.PgError); errors.As(err, &pg) && pg.ConstraintName == "provider_keys_provider_check" {
		return id, &Invalid{"provider", "Choose a provider of the list."}
	}
	if err != nil {
		return id, fmt.Errorf("add a provider key: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return id, &Invalid{"provider", "The workspace has a key at this provider already. Rotate that one."}
	}
	return id, auditKey(ctx, tx, "provider_key.added", id, given.Provider, by)
}

// auditKey tells the log of a change. Neither the value nor what it ends in is told: the
// log is kept for ever.
func auditKey(ctx context.Context, tx Tx, action string, id ProviderKeyID, provider string, by Membership) error {
	return Audit(ctx, tx, Entry{Actor: ByMember(by), Action: action, Target: Target{"provider_key", id}, Detail: map[string]any{"provider": provider}})
}

const selectProviderKeys = `
	SELECT id, provider, base_url, hint, limits, added_by, added_at, rotated_by, rotated_at, removed_by, removed_at,
		CASE WHEN old_until > now() THEN old_until END, old_base_url, old_hint, tested_at, test_passed, test_words, generation
	FROM provider_keys WHERE tenant_id = $1 `

// ProviderKeys lists the workspace's keys, those in use first, without their values.
func ProviderKeys(ctx context.Context, tx Tx) ([]ProviderKey, error) {
	rows, _ := tx.Query(ctx, selectProviderKeys+`ORDER BY removed_at IS NOT NULL, provider, removed_at DESC, id`, tx.Tenant)
	keys, err := pgx.CollectRows(rows, scanProviderKey)
	if err != nil {
		return nil, fmt.Errorf("list provider keys: %w", err)
	}
	return keys, nil
}

// ProviderKeyByID reads one key, also a removed one; ErrNoProviderKey where there is none.
func ProviderKeyByID(ctx context.Context, tx Tx, id ProviderKeyID) (ProviderKey, error) {
	rows, _ := tx.Query(ctx, selectProviderKeys+`AND id = $2`, tx.Tenant, id)
	key, err := pgx.CollectExactlyOneRow(rows, scanProviderKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return key, ErrNoProviderKey
	}
	if err != nil {
		return key, fmt.Errorf("read a provider key: %w", err)
	}
	return key, nil
}

func scanProviderKey(row pgx.CollectableRow) (ProviderKey, error) {
	var key ProviderKey
	var old OldProviderKey
	var test ProviderKeyTest
	var limits []byte
	var until, tested *time.Time
	err := row.Scan(&key.ID, &key.Provider, &key.BaseURL, &key.Hint, &limits, &key.AddedBy, &key.AddedAt, &key.RotatedBy, &key.RotatedAt,
		&key.RemovedBy, &key.RemovedAt, &until, &old.BaseURL, &old.Hint, &tested, &test.Passed, &test.Words, &key.Generation)
	if err != nil {
		return key, err
	}
	if until != nil {
		old.Until = *until
		key.Old = &old
	}
	if tested != nil {
		test.At = *tested
		key.Test = &test
	}
	return key, json.Unmarshal(limits, &key.Limits)
}
