package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"tollgate/app/notice"
	"tollgate/app/outbound"
	"tollgate/tenants"
)

// Hooks sends messages about runs to other systems.
type Hooks struct {
	db      *tenants.DB
	notices *notice.Room
	client  *outbound.Client
}

// Bounds of sending. A message counts as taken by its status alone.
const (
	hookTimeout  = 10 * time.Second
	hooksAtOnce  = 8
	hookAnswer   = 16 << 10
	hookUserName = "Tollgate-Webhook"
)

// NewHooks makes the sender. allow is as for NewHTTP.
func NewHooks(db *tenants.DB, notices *notice.Room, allow ...string) (*Hooks, error) {
	client, err := outbound.New(outbound.Config{Allow: allow, MaxBody: hookAnswer, Timeout: hookTimeout})
	if err != nil {
		return nil, err
	}
	return &Hooks{db: db, notices: notices, client: client}, nil
}

// Send sends what is due, some at once, and returns how many tries that were.
func (h *Hooks) Send(ctx context.Context) (int, error) {
	var due []notice.Hook
	err := h.db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		due, err = h.notices.ClaimHooks(ctx, tx, hooksAtOnce)
		return err
	})
	if err != nil || len(due) == 0 {
		return 0, err
	}
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i, hook := range due {
		all.Go(func() {
			problem, final := h.try(ctx, hook)
			errs[i] = h.db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
				return h.notices.SettleHook(ctx, tx, hook, problem, final)
			})
		})
	}
	all.Wait()
	return len(due), errors.Join(errs...)
}

// try sends a message once. problem says for people why it was not taken, and final that
// another try is of no use.
func (h *Hooks) try(ctx context.Context, hook notice.Hook) (problem string, final bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, strings.NewReader(hook.Body))
	if err != nil {
		return "The address cannot be called.", true
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", hookUserName)
	outbound.SignWebhook(request.Header, notice.HookKey(h.notices.Secret, hook.Pipeline, hook.Generation), "msg_"+hook.ID.String(), time.Now(), []byte(hook.Body))
	answer, err := h.client.Do(request)
	if err != nil {
		if fault, ok := errors.AsType[*outbound.Error](err); ok {
			return fault.Message, false
		}
		return "The address cannot be called.", false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return "", false
	case answer.StatusCode == http.StatusGone:
		return "The other side answered 410: it takes no more of these.", true
	}
	return fmt.Sprintf("The other side answered %d.", answer.StatusCode), false
}
