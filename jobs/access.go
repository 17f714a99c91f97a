package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Access finds with which key a model is called, and when: within the limits of calls and
// tokens a minute that are set, and no harder than the provider bears.
type Access struct {
	db     *tenants.DB
	vault  tenants.Vault
	shared map[string]tenants.RateLimits
	paces  paces
}

// NewAccess makes it. shared are the limits of the installation's own keys by provider, as
// models' ids begin; all workspaces without a key of their own share them.
func NewAccess(db *tenants.DB, vault tenants.Vault, shared map[string]tenants.RateLimits) *Access {
	return &Access{db: db, vault: vault, shared: shared}
}

// What is said of a call that was not made.
const (
	classLimitedHere = "rate_limited_here" // a limit of ours leaves no room now
	classKeyChanged  = "key_changed"       // the money was reserved for another key's call
)

// admit looks whether a call may be made now, and with what. A reply says why not.
func (a *Access) admit(ctx context.Context, call engine.Call, model llm.Model, bound int64) (*admission, *engine.Reply) {
	provider, id, _ := strings.Cut(model.ID, "/")
	access, err := a.read(ctx, call.Tenant, provider)
	switch {
	case errors.Is(err, tenants.ErrSealed):
		return nil, refusal(classAuth, fmt.Sprintf("The workspace's key for %s cannot be opened, because the installation was given another key. An owner or admin must enter it again.", provider))
	case err != nil:
		return nil, putOff(engine.ClassInternal, "The workspace's keys could not be read just now, so the model was not called.", trouble)
	case access.Own == nil && model.OwnKeyOnly:
		return nil, refusal(classAuth, fmt.Sprintf("There is no key to call %s with. An owner or admin can add one to the workspace's provider keys, or choose another model.", model.Name))
	}
	if own := access.Own; own == nil && !call.OwnKey.IsZero() || own != nil && own.ID != call.OwnKey {
		return nil, putOff(classKeyChanged, "The workspace's key for "+provider+" was changed just now, so the call is made anew.", keyPause)
	}
	who := &admission{access: a, began: time.Now()}
	key := ledger.SharedBucket(provider, id, a.shared[provider].For(id))
	if access.Own != nil {
		who.key = llm.Credential{Secret: access.Own.Value, BaseURL: access.Own.BaseURL}
		key = ledger.KeyBucket(access.Own.ID, id, access.Limits.For(id))
	}
	if access.Old != nil {
		who.old = &llm.Credential{Secret: access.Old.Value, BaseURL: access.Old.BaseURL}
	}
	return who.enter(ctx, ledger.RateAsk{
		Tenant: call.Tenant, Ticket: ledger.StepRunID(call.StepRun), Bound: bound,
		Key: key, More: []ledger.RateBucket{ledger.TenantBucket(call.Tenant, access.Tenant)},
	})
}

// keyPause is the pause after which money is reserved anew for a call whose key was changed.
const keyPause = time.Second

// trouble is the pause before a call is tried again whose keys or limits cannot be read.
const trouble = 2 * time.Second

func (a *Access) read(ctx context.Context, tenant tenants.ID, provider string) (access tenants.ModelAccess, err error) {
	err = a.db.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) (err error) {
		access, err = tenants.AccessToModels(ctx, tx, a.vault, provider)
		return err
	})
	return access, err
}

func (a *Access) ask(ctx context.Context, ask ledger.RateAsk) (pass *ledger.RatePass, delay ledger.RateDelay, err error) {
	if !ask.Limited() {
		return nil, ledger.RateDelay{}, nil
	}
	err = a.db.InSystemTx(ctx, func(ctx context.Context, stx tenants.SystemTx) (err error) {
		pass, delay, err = ledger.AskRate(ctx, stx, ask)
		return err
	})
	return pass, delay, err
}

// putOff is a call that was not made and will be.
func putOff(class, message string, wait time.Duration) *engine.Reply {
	return &engine.Reply{NotCalled: true, RetryAfter: wait, Failure: &engine.Failure{Class: class, Message: message}}
}

// barredWords say which limit leaves no room.
func barredWords(ask ledger.RateAsk, barredBy string) string {
	whose, limits := "The key's limit", ask.Key.Limits
	if barredBy != ask.Key.Name {
		whose = "The workspace's limit"
		for _, bucket := range ask.More {
			if bucket.Name == barredBy {
				limits = bucket.Limits
			}
		}
	}
	return whose + " of " + rateWords(limits) + " is used up for now."
}

// rateWords is a limit for people.
func rateWords(limit tenants.RateLimit) string {
	switch {
	case limit.Requests == 0:
		return thousands(limit.Tokens) + " tokens a minute"
	case limit.Tokens == 0:
		return thousands(limit.Requests) + " calls a minute"
	}
	return thousands(limit.Requests) + " calls and " + thousands(limit.Tokens) + " tokens a minute"
}

func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
