package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/jobs"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

const (
	sharedKey = "sk-shared-0123456789"
	ownKey    = "sk-own-9876543210-abcd"
	newKey    = "sk-new-5555555555-efgh"
	asked     = "openai/gpt-5.6-terra"
)

// caller is a workspace whose steps ask models of one server.
type caller struct {
	t      testing.TB
	db     *dbtest.Database
	server *fakellm.Server
	vault  tenants.Vault
	tenant tenants.ID
	owner  tenants.Membership
	ai     jobs.AI
}

func newCaller(t testing.TB, shared tenants.RateLimits) *caller {
	t.Helper()
	c := &caller{t: t, db: dbtest.Open(t), server: fakellm.New(1)}
	listening := httptest.NewServer(c.server)
	t.Cleanup(func() { c.server.Close(); listening.Close() })
	var user tenants.UserID
	c.tenant, user = c.db.Tenant(t)
	c.owner = tenants.Membership{User: tenants.User{ID: user, Name: "Olga"}, Role: tenants.Owner}
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	c.vault, err = tenants.NewVault(secret)
	require.NoError(t, err)
	client, err := llm.NewHTTP(listening.Listener.Addr().String())
	require.NoError(t, err)
	guarded, err := llm.NewHTTP()
	require.NoError(t, err)
	provider, err := llm.NewOpenAI(llm.Config{BaseURL: listening.URL + "/v1", Key: llm.FixedKey(sharedKey), HTTP: client, TenantHTTP: guarded})
	require.NoError(t, err)
	own := llm.OpenAIEntry("own", provider, "gpt-5.6-terra")
	own.Models[0].OwnKeyOnly = true
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)), llm.OpenAIEntry("openai", provider, "gpt-5.6-terra"), own)
	require.NoError(t, err)
	c.ai = jobs.AI{Registry: registry, Access: jobs.NewAccess(c.db.DB, c.vault, map[string]tenants.RateLimits{"openai": shared})}
	return c
}

func (c *caller) do(fn func(context.Context, tenants.Tx) error) {
	c.t.Helper()
	require.NoError(c.t, c.db.InTx(c.t.Context(), c.tenant, fn))
}

func (c *caller) addKey(given tenants.NewProviderKey) (id tenants.ProviderKeyID) {
	c.t.Helper()
	c.do(func(ctx context.Context, tx tenants.Tx) (err error) {
		id, err = tenants.AddProviderKey(ctx, tx, c.vault, given, c.owner)
		return err
	})
	return id
}

// call asks once, for money that was reserved for the key.
func (c *caller) call(model string, key tenants.ProviderKeyID) engine.Reply {
	c.t.Helper()
	input, err := json.Marshal(engine.AIInput{Models: []string{model}, Prompt: "Hello", MaxTokens: 100})
	require.NoError(c.t, err)
	return c.ai.Call(c.t.Context(), engine.Call{Tenant: c.tenant, StepRun: tenants.NewID[engine.StepRun](), Attempt: 1, Key: "the-key", Input: input, OwnKey: key})
}

func (c *caller) authorizations() (list []string) {
	for _, seen := range c.server.Seen() {
		list = append(list, strings.TrimPrefix(seen.Authorization, "Bearer "))
	}
	return list
}

func TestOwnKeyIsUsedWhereThereIsOneAndTheSharedOneElse(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	require.Nil(t, c.call(asked, tenants.ProviderKeyID{}).Failure)
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	require.Nil(t, c.call(asked, id).Failure)
	require.Equal(t, []string{sharedKey, ownKey}, c.authorizations())
}

// The money was reserved for one key's call: with another the wrong side would pay.
func TestCallWhoseKeyWasChangedMeanwhileIsPutOff(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	gone := tenants.NewID[tenants.ProviderKey]()
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	for _, reserved := range []tenants.ProviderKeyID{{}, gone} {
		reply := c.call(asked, reserved)
		require.True(t, reply.NotCalled)
		require.Equal(t, "key_changed", reply.Failure.Class)
		require.Nil(t, reply.Bill)
	}
	c.do(func(ctx context.Context, tx tenants.Tx) error { return tenants.RemoveProviderKey(ctx, tx, id, c.owner) })
	require.True(t, c.call(asked, id).NotCalled, "a removed key's call is not paid by the installation")
	require.Empty(t, c.server.Seen())
}

func TestCallWithoutAnyKeySaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	reply := c.call("own/gpt-5.6-terra", tenants.ProviderKeyID{})
	require.Equal(t, "auth", reply.Failure.Class)
	require.Contains(t, reply.Failure.Message, "An owner or admin can add one")
	require.False(t, reply.Retryable)
	require.Nil(t, reply.Bill)
	require.Empty(t, c.server.Seen())
}

func TestCallWithAKeyThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	_, err := c.db.Super(t).Exec(t.Context(), `UPDATE provider_keys SET base_url = 'https://thief.example'`)
	require.NoError(t, err)
	reply := c.call(asked, id)
	require.Equal(t, "auth", reply.Failure.Class)
	require.Contains(t, reply.Failure.Message, "must enter it again")
	require.Empty(t, c.server.Seen())
}

// An address that a workspace gave is dialled through the guard only.
func TestOwnAddressIsGuarded(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://127.0.0.1:1", "https://localhost:1", "https://169.254.169.254", "https://[::1]:1", "https://10.0.0.1"} {
		c := newCaller(t, nil)
		id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey, BaseURL: address})
		reply := c.call(asked, id)
		require.NotNil(t, reply.Failure, address)
		require.Nil(t, reply.Bill, "%s: nothing was sent", address)
	}
}

// While the provider does not take the new key yet, the old one serves.
func TestReplacedKeyServesWhileTheNewOneIsRefused(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	c.server.RequireKey(ownKey)
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	c.do(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.RotateProviderKey(ctx, tx, c.vault, id, 1, tenants.NewProviderKey{Value: newKey}, time.Hour, c.owner)
	})
	reply := c.call(asked, id)
	require.Nil(t, reply.Failure)
	require.Contains(t, reply.Note, "did not take the workspace's new key")
	require.Equal(t, []string{newKey, ownKey}, c.authorizations())
	c.server.RequireKey(newKey)
	require.Empty(t, c.call(asked, id).Note)
	c.server.RequireKey(ownKey)
	c.do(func(ctx context.Context, tx tenants.Tx) error { return tenants.EndOldProviderKey(ctx, tx, id, c.owner) })
	require.Equal(t, "auth", c.call(asked, id).Failure.Class)
}

// A server that repeats the key gets it into no reply, however the answer is made.
func TestProviderKeyIsMaskedInAllThatComesBack(t *testing.T) {
	t.Parallel()
	c := newCaller(t, nil)
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	for name, turn := range map[string]fakellm.Turn{
		"in the answer":   {Text: "You sent " + ownKey},
		"as the model":    {Text: "x", Model: ownKey},
		"as the finish":   {Text: "x", Finish: ownKey},
		"in an error":     {Status: 400, Message: "bad key " + ownKey, Code: ownKey},
		"in a refusal":    {Refusal: ownKey},
		"in broken text":  {Text: ownKey, CutAfter: 1},
		"in a plain body": {Status: 502, Body: ownKey, ContentType: "text/plain"},
		"as request id":   {Text: "x", Header: map[string]string{"X-Request-Id": ownKey}},
	} {
		c.server.Play(turn)
		reply := c.call(asked, id)
		said := fmt.Sprintf("%+v %+v %+v %s", reply, reply.Failure, reply.Bill, reply.Output)
		require.NotContains(t, said, "9876543210", name)
	}
}

func TestSharedLimitPutsCallsOff(t *testing.T) {
	t.Parallel()
	c := newCaller(t, tenants.RateLimits{"gpt-5.6-terra": {Requests: 6}})
	require.Nil(t, c.call(asked, tenants.ProviderKeyID{}).Failure)
	reply := c.call(asked, tenants.ProviderKeyID{})
	require.True(t, reply.NotCalled)
	require.Equal(t, "rate_limited_here", reply.Failure.Class)
	require.Equal(t, "The key's limit of 6 calls a minute is used up for now.", reply.Failure.Message)
	require.InDelta(t, 10, reply.RetryAfter.Seconds(), 5)
	id := c.addKey(tenants.NewProviderKey{Provider: "openai", Value: ownKey})
	require.Nil(t, c.call(asked, id).Failure, "an own key has limits of its own")
	c.do(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 1, OpenRuns: 1, ModelCalls: tenants.RateLimit{Requests: 6, Tokens: 60_000}})
	})
	require.Nil(t, c.call(asked, id).Failure)
	reply = c.call(asked, id)
	require.True(t, reply.NotCalled)
	require.Equal(t, "The workspace's limit of 6 calls and 60,000 tokens a minute is used up for now.", reply.Failure.Message)
	require.Len(t, c.server.Seen(), 3)
}

// What the provider says counts at once, for this process and, where a limit is set, for
// all.
func TestProviderThatRefusesCallsIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]tenants.RateLimits{"no limit is set": nil, "a limit is set": {tenants.AnyModel: {Requests: 600}}} {
		c := newCaller(t, limits)
		c.server.Play(fakellm.Turn{Status: 429, Header: map[string]string{"Retry-After": "30"}})
		reply := c.call(asked, tenants.ProviderKeyID{})
		require.Equal(t, "rate_limited", reply.Failure.Class, name)
		require.False(t, reply.NotCalled)
		reply = c.call(asked, tenants.ProviderKeyID{})
		require.True(t, reply.NotCalled, name)
		require.InDelta(t, 30, reply.RetryAfter.Seconds(), 2, name)
		if limits != nil {
			other := jobs.AI{Registry: c.ai.Registry, Access: jobs.NewAccess(c.db.DB, c.vault, map[string]tenants.RateLimits{"openai": limits})}
			c.ai = other
			require.True(t, c.call(asked, tenants.ProviderKeyID{}).NotCalled, "another process")
		}
		require.Len(t, c.server.Seen(), 1, name)
	}
}
