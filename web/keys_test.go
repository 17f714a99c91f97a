package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

const (
	typedKey   = "sk-0123456789-wxyz"
	rotatedKey = "sk-9876543210-abcd"
)

// trial is a provider that knows one key.
type trial struct {
	mu    sync.Mutex
	takes string
	asked []string
}

func (o *trial) Try(_ context.Context, provider string, key tenants.OpenedProviderKey) (bool, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, provider+" "+key.Value+" "+key.BaseURL)
	if key.Value == o.takes {
		return true, "GPT answered after 0.4 s."
	}
	return false, "The provider refuses this key."
}

func withProviders(one *trial) func(*Config) {
	return func(config *Config) {
		config.KeyTrial = one
		config.Models = []Model{
			{ID: "practice/standard", Name: "Practice model", Practice: true},
			{ID: "openai/gpt-5.6-terra", Name: "GPT-5.6 Terra"}, {ID: "openai/gpt-6-astra", Name: "GPT-6 Astra"},
			{ID: "anthropic/claude-sonnet-5", Name: "Claude Sonnet 5", OwnKeyOnly: true},
		}
	}
}

// sorter asks a model of OpenAI.
const sorter = `{"semantics": 3, "name": "Sort mails", "steps": [{"id": "ask", "name": "Sort it", "kind": "ai",
	"with": {"models": ["openai/gpt-5.6-terra"], "instructions": "Sort.", "prompt": "A mail"}}]}`

func (s *site) keyIDs() (ids []tenants.ProviderKeyID) {
	s.t.Helper()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		ids = nil
		all, err := tenants.ProviderKeys(ctx, tx)
		for _, key := range all {
			ids = append(ids, key.ID)
		}
		return err
	})
	return ids
}

func (s *site) limitsOf(id tenants.ProviderKeyID) (limits tenants.RateLimits) {
	s.t.Helper()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		key, err := tenants.ProviderKeyByID(ctx, tx, id)
		limits = key.Limits
		return err
	})
	return limits
}

// A key is added, tested, limited, rotated, restored and removed, and never shown.
func TestProviderKeysOfAWorkspace(t *testing.T) {
	t.Parallel()
	provider := &trial{takes: typedKey}
	s := newSite(t, withProviders(provider))
	s.publish(s.home, parsed(t, sorter))
	owner, list := s.in(tenants.Owner), s.at("settings", "keys")
	owner.get(list).is(http.StatusOK).says("OpenAI", "this installation’s key", "used by 1 pipeline", "Anthropic", "cannot be called until one is added")
	add := s.at("settings", "keys", "add")
	owner.get(add + "?provider=openai").is(http.StatusOK).says("Add a provider key")
	owner.post(add, "provider", "practice", "value", typedKey, "base_url", "").is(http.StatusUnprocessableEntity).says("Choose a provider of the list").hides(typedKey)
	owner.post(add, "provider", "openai", "value", typedKey, "base_url", "http://127.0.0.1").is(http.StatusUnprocessableEntity).says("begins with https").hides(typedKey)
	owner.post(add, "provider", "openai", "value", typedKey, "base_url", "").is(http.StatusSeeOther)
	owner.post(add, "provider", "openai", "value", typedKey, "base_url", "").is(http.StatusUnprocessableEntity).says("Rotate that one")
	at := s.at("settings", "keys", s.keyIDs()[0].String())
	owner.get(at).is(http.StatusOK).says("…wxyz", "Not tested", "Spent this month $0.00, billed by the provider", "Sort mails", "in its live version").hides("0123456789")

	owner.post(at + "/test").is(http.StatusSeeOther)
	owner.get(at).is(http.StatusOK).says("Works", "GPT answered after 0.4 s.")
	owner.post(at + "/test").is(http.StatusTooManyRequests).says("tested a moment ago")
	require.Equal(t, []string{"openai " + typedKey + " "}, provider.asked)

	owner.post(at+"/limits", "requests_*", "60", "tokens_gpt-5.6-terra", "60,000").is(http.StatusSeeOther)
	require.Equal(t, tenants.RateLimits{tenants.AnyModel: {Requests: 60}, "gpt-5.6-terra": {Tokens: 60_000}}, s.limitsOf(s.keyIDs()[0]))
	owner.post(at+"/limits", "requests_*", "many").is(http.StatusUnprocessableEntity).says("Write a whole number up to 1,000,000,000")
	require.Len(t, s.limitsOf(s.keyIDs()[0]), 2, "what was wrong changed nothing")

	owner.post(at+"/rotate", "seen", "1", "value", rotatedKey, "base_url", "", "overlap", "100000h").is(http.StatusUnprocessableEntity).says("Choose for how long").hides(rotatedKey)
	owner.post(at+"/rotate", "seen", "1", "value", rotatedKey, "base_url", "https://models.example.com/v1", "overlap", "24h").is(http.StatusSeeOther)
	owner.post(at+"/rotate", "seen", "1", "value", rotatedKey, "base_url", "", "overlap", "24h").is(http.StatusConflict)
	owner.get(at).is(http.StatusOK).says("Rotated", "…abcd", "https://models.example.com/v1", "The key before", "…wxyz", "stays usable until", "Not tested").hides("9876543210", "0123456789")
	owner.post(at + "/restore").is(http.StatusSeeOther)
	owner.post(at + "/restore").is(http.StatusConflict).says("The key before is gone")
	owner.post(at + "/end-old").is(http.StatusConflict)
	owner.get(at).is(http.StatusOK).says("…wxyz", "the provider’s own address").hides("…abcd")

	owner.get(at+"/remove").is(http.StatusOK).says("Remove this key?", "goes on with this installation’s key")
	owner.post(at + "/remove").is(http.StatusSeeOther)
	for _, change := range []string{"/remove", "/restore", "/end-old", "/test", "/limits", "/rotate"} {
		owner.post(at+change, "seen", "1", "value", typedKey, "overlap", "24h").is(http.StatusNotFound).says("There is no such key")
	}
	owner.get(at).is(http.StatusNotFound)
	owner.get(list).is(http.StatusOK).says("Removed keys", "…wxyz")
	require.NotContains(t, s.log.String(), "0123456789")
	require.NotContains(t, s.log.String(), "9876543210")
}

// A model that the installation cannot call is offered once the workspace has a key for it.
func TestModelsOfOwnKeysAreOfferedWithTheKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, withProviders(&trial{}))
	id := s.emails()
	builder, page := s.in(tenants.Builder), s.at("pipelines", id.String())
	builder.get(page).is(http.StatusOK).says("GPT-5.6 Terra").hides("Claude Sonnet 5")
	s.in(tenants.Admin).post(s.at("settings", "keys", "add"), "provider", "anthropic", "value", typedKey, "base_url", "").is(http.StatusSeeOther)
	seen := builder.get(page).is(http.StatusOK).says("Claude Sonnet 5").field("version")
	builder.post(s.at("pipelines", id.String(), "model"), "model", "anthropic/claude-sonnet-5", "version", seen).leadsTo(page)
	builder.get(page).is(http.StatusOK).says("Its steps ask Claude Sonnet 5")
}

// A draft that asks a model without a key cannot be published, and says what to do.
func TestModelsWithoutAKeyAreNotPublished(t *testing.T) {
	t.Parallel()
	s := newSite(t, withProviders(&trial{}))
	document := parsed(t, strings.Replace(sorter, "openai/gpt-5.6-terra", "anthropic/claude-sonnet-5", 1))
	var id pipeline.ID
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) (err error) {
		id, err = pipeline.Create(ctx, tx, document, "", s.home.people[tenants.Owner].User.ID)
		return err
	})
	builder, page := s.in(tenants.Builder), s.at("pipelines", id.String(), "draft", "publish")
	builder.get(page).is(http.StatusOK).says("There is no key to call it with. An owner or admin can add one")
	builder.post(page, "note", "n", "seen", "0", "live", "0").is(http.StatusUnprocessableEntity)
	s.in(tenants.Admin).post(s.at("settings", "keys", "add"), "provider", "anthropic", "value", typedKey, "base_url", "").is(http.StatusSeeOther)
	builder.get(page).is(http.StatusOK).hides("There is no key")
}

// Only who manages a workspace sees that it has keys, and only its own.
func TestProviderKeysAreForThoseWhoManageTheWorkspace(t *testing.T) {
	t.Parallel()
	s := newSite(t, withProviders(&trial{}))
	s.in(tenants.Owner).post(s.at("settings", "keys", "add"), "provider", "openai", "value", typedKey, "base_url", "").is(http.StatusSeeOther)
	id := s.keyIDs()[0].String()
	for _, role := range []tenants.Role{tenants.Builder, tenants.Finance, tenants.Auditor, tenants.Reviewer, tenants.Viewer} {
		person := s.in(role)
		person.get(s.at("settings", "keys")).is(http.StatusForbidden)
		person.get(s.at("settings", "keys", id)).is(http.StatusForbidden)
		for _, change := range []string{"test", "limits", "rotate", "restore", "end-old", "remove"} {
			person.post(s.at("settings", "keys", id, change), "value", typedKey).is(http.StatusForbidden)
		}
	}
	s.in(tenants.Admin).get(s.at("settings", "keys", id)).is(http.StatusOK)
}

func TestTheLookOfProviderKeys(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	withProviders(&trial{takes: rotatedKey})(&s.web.Config)
	owner := s.in(tenants.Owner)
	owner.post(s.at("settings", "keys", "add"), "provider", "openai", "value", typedKey, "base_url", "").is(http.StatusSeeOther)
	s.publish(s.home, parsed(t, sorter))
	id := s.keyIDs()[0].String()
	owner.post(s.at("settings", "keys", id, "rotate"), "seen", "1", "value", rotatedKey, "base_url", "", "overlap", "168h").is(http.StatusSeeOther)
	owner.post(s.at("settings", "keys", id, "test")).is(http.StatusSeeOther)
	owner.post(s.at("settings", "keys", id, "limits"), "requests_*", "500", "tokens_*", "200000", "tokens_gpt-6-astra", "60000").is(http.StatusSeeOther)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			for name, path := range map[string]string{
				"keys": s.at("settings", "keys"), "key": s.at("settings", "keys", id),
				"key-add": s.at("settings", "keys", "add"), "key-remove": s.at("settings", "keys", id, "remove"),
			} {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
		})
	}
}
