package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tollgate/app/engine"
	"tollgate/app/outbound"
	"tollgate/tenants"
)

// tokenStore keeps the tokens that OAuth 2 servers gave, in memory only.
type tokenStore struct {
	mu    sync.Mutex
	known map[tokenKey]token
}

// tokenKey is what a token was given for; of the secret it has a digest.
type tokenKey struct {
	tenant           tenants.ID
	url, user, scope string
	secret           [sha256.Size]byte
}

type token struct {
	value   string
	expires time.Time
}

const (
	maxTokens     = 1000
	tokenEarly    = 30 * time.Second // before its end a token is not used any more
	tokenLifetime = 5 * time.Minute  // where the server does not say
	maxTokenBytes = 64 << 10
)

func (t *tokenStore) get(key tokenKey, now time.Time) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.known[key]
	return found.value, ok && now.Before(found.expires)
}

func (t *tokenStore) put(key tokenKey, value token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxTokens {
		t.known = map[tokenKey]token{}
	}
	t.known[key] = value
}

func (t *tokenStore) drop(key tokenKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.known[key]
	delete(t.known, key)
	return ok
}

func (c *httpCall) tokenKey() tokenKey {
	auth := c.input.Auth
	return tokenKey{c.call.Tenant, auth.TokenURL, auth.User, auth.Scope, sha256.Sum256([]byte(c.secrets[auth.Secret].Value))}
}

// forgetToken drops the token that the call was made with, and tells whether there was one.
func (c *httpCall) forgetToken() bool {
	return c.input.Auth != nil && c.input.Auth.TokenURL != "" && c.tokens.drop(c.tokenKey())
}

// token is the one to call with, fetched where none is known that still holds.
func (c *httpCall) token(ctx context.Context) (string, *engine.Reply) {
	key := c.tokenKey()
	value, ok := c.tokens.get(key, time.Now())
	if !ok {
		fetched, reply := c.fetchToken(ctx)
		if reply != nil {
			return "", reply
		}
		c.tokens.put(key, fetched)
		value = fetched.value
	}
	c.masks.Hide(c.input.Auth.Secret, value)
	return value, nil
}

// fetchToken asks for a token. What goes wrong here is no doubt about the step's own call,
// which was not made.
func (c *httpCall) fetchToken(ctx context.Context) (token, *engine.Reply) {
	got, reply := c.exchange(ctx, maxTokenBytes, c.tokenRequest)
	if reply != nil {
		reply.Unsure = false
		reply.Retryable = reply.Retryable || reply.Failure.Class == classTimeout || reply.Failure.Class == classConnection
		reply.Failure.Message = "No access token was given, so nothing was sent. " + reply.Failure.Message
		return token{}, reply
	}
	var given struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	if got.status != http.StatusOK || got.broken != nil || json.Unmarshal(got.body, &given) != nil || given.AccessToken == "" ||
		strings.ContainsFunc(given.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return token{}, c.tokenRefused(got)
	}
	lifetime := tokenLifetime
	if given.ExpiresIn > 0 && given.ExpiresIn < 1e6 {
		lifetime = time.Duration(given.ExpiresIn * float64(time.Second))
	}
	return token{given.AccessToken, time.Now().Add(lifetime - tokenEarly)}, nil
}

func (c *httpCall) tokenRequest(ctx context.Context) (*http.Request, *engine.Reply) {
	auth := c.input.Auth
	form := url.Values{"grant_type": {"client_credentials"}}
	if auth.Scope != "" {
		form.Set("scope", auth.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, refusal(classBadAddress, "The address that gives tokens is not one that can be called.")
	}
	secret, reply := c.secretFor(auth.Secret, req.URL)
	if reply != nil {
		return nil, reply
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	c.setBasic(req, url.QueryEscape(auth.User), url.QueryEscape(secret))
	return req, nil
}

// tokenRefused says what came instead of a token. An answer that has one in it is not
// repeated.
func (c *httpCall) tokenRefused(got answer) *engine.Reply {
	m := statusMeanings(got.status)
	reply := &engine.Reply{
		Failure: &engine.Failure{Class: classAuth, Detail: c.detail(got), Message: fmt.Sprintf(
			"%s gave no access token, so nothing was sent: it answered %s. Check the client id, the secret and the scope of this step.", got.host, statusWords(got.status))},
	}
	if got.status == http.StatusOK {
		reply.Failure.Detail = "The answer has no access token that can be sent."
	}
	if m.again != never && got.status != http.StatusOK {
		reply.Retryable, reply.RetryAfter = true, outbound.RetryAfter(got.header, time.Now())
		reply.Failure.Class = m.class
	}
	return reply
}
