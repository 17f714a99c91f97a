package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// asksOutside hands an address on by mail and waits for the answer there.
func asksOutside(more string) string {
	return caughtFlow("steps.signed.data", step("send", "email", `{"to": ["kim@example.com"], "subject": "{{ callback.signed }}", "body": "b"}`),
		step("signed", "event", `{"name": "signed", "callback": true`+more+`}`))
}

// tokens catches the addresses that mails hand on.
type tokens struct {
	mu    sync.Mutex
	found []string
	hold  chan struct{} // mails wait for it
}

func (c *tokens) call(ctx context.Context, call engine.Call) engine.Reply {
	var input engine.EmailInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return engine.Reply{Failure: &engine.Failure{Class: "input", Message: err.Error()}}
	}
	c.mu.Lock()
	c.found = append(c.found, strings.TrimPrefix(input.Subject, "http://tollgate.example"+engine.CallbackPath))
	c.mu.Unlock()
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
		}
	}
	return engine.Reply{Output: []byte(`{}`)}
}

func (c *tokens) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.found...)
}

func (h *house) awaitToken(c *tokens, n int) string {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return len(c.all()) >= n }, 30*time.Second, 10*time.Millisecond)
	return c.all()[n-1]
}

// An answer ends the wait once, also where it comes before it; the same again is the same,
// another is none, and with the wait the address is over.
func TestAnswersComeToTheirAddressOnce(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprint("early: ", early), func(t *testing.T) {
			t.Parallel()
			got := &tokens{hold: make(chan struct{})}
			h := build(t, mailCaller(got.call))
			h.work()
			run := h.start(h.publish(asksOutside("")), numbers(1))
			token := h.awaitToken(got, 1)
			if !early {
				close(got.hold)
				h.awaitWait(run, engine.WaitEvent)
			}
			require.NoError(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"ok": true}`)))
			if early {
				require.NoError(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"ok": true}`)))
				require.ErrorIs(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"ok": false}`)), engine.ErrNoCallback)
				close(got.hold)
			}
			require.JSONEq(t, `{"ok": true}`, h.result(h.awaitEnd(run)))
			require.ErrorIs(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"ok": false}`)), engine.ErrNoCallback)
			require.NoError(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"ok": true}`)), "a sender that missed our word may repeat")
			require.Equal(t, 1, h.count(`SELECT count(*) FROM events`))
			require.Zero(t, h.count(`SELECT count(*) FROM events WHERE strpos(key, $1) > 0 OR strpos(sender_id, $1) > 0`, token))
			require.Zero(t, h.count(`SELECT count(*) FROM waits WHERE strpos(event_key, $1) > 0`, token))
		})
	}
}

// With its wait an address is over: by the deadline, by cancelling, by the run's end.
func TestAnAddressDiesWithItsWait(t *testing.T) {
	t.Parallel()
	got := &tokens{}
	h := build(t, mailCaller(got.call))
	h.work()
	id := h.publish(asksOutside(`, "deadline": "1h", "on_deadline": "continue"`))
	end := map[int]func(engine.RunID){
		1: func(engine.RunID) { h.exec(`UPDATE waits SET due_at = now() WHERE state = 'open'`) },
		2: func(run engine.RunID) {
			h.in(func(ctx context.Context, tx tenants.Tx) error { return h.engine.Cancel(ctx, tx, run, "Ana") })
		},
	}
	for n := 1; n <= 2; n++ {
		run := h.start(id, numbers(1))
		h.awaitWait(run, engine.WaitEvent)
		token := h.awaitToken(got, n)
		end[n](run)
		h.awaitEnd(run)
		require.ErrorIs(t, h.engine.AnswerCallback(t.Context(), token, []byte(`1`)), engine.ErrNoCallback)
	}
	require.Zero(t, h.count(`SELECT count(*) FROM events`))
}

// Each round and item has an address of its own, and what is not ours opens nothing.
func TestAddressesAreForOneExecutionEach(t *testing.T) {
	t.Parallel()
	got := &tokens{}
	h := build(t, mailCaller(got.call))
	h.work()
	run := h.start(h.publish(caughtFlow("steps.all.results", step("all", "each", `{"items": "[0, 1, 2]", "at_once": 3, "result": "steps.signed.data", "steps": [`+
		step("send", "email", `{"to": ["kim@example.com"], "subject": "{{ callback.signed }}", "body": "b"}`)+`,`+
		step("signed", "event", `{"name": "signed", "callback": true}`)+`]}`))), numbers(1))
	h.awaitToken(got, 3)
	all := got.all()
	require.Len(t, map[string]bool{all[0]: true, all[1]: true, all[2]: true}, 3)
	for _, forged := range []string{
		"", ".", "signed.", "signed", strings.ToUpper(all[0]), all[0] + "A", all[0][:len(all[0])-1], "other" + strings.TrimPrefix(all[0], "signed"),
		all[0][:40] + "AAAA" + all[0][44:], strings.Repeat("a", 100_000), "signed.\x00", "signed." + strings.Repeat("A", 107), "sig%6eed" + strings.TrimPrefix(all[0], "signed"),
	} {
		require.ErrorIs(t, h.engine.AnswerCallback(t.Context(), forged, []byte(`9`)), engine.ErrNoCallback, "%q", forged)
	}
	for _, token := range all {
		require.Error(t, h.engine.AnswerCallback(t.Context(), token, []byte(`{"deep`)))
		require.NoError(t, h.engine.AnswerCallback(t.Context(), token, []byte(`5`)))
	}
	require.JSONEq(t, `[5, 5, 5]`, h.result(h.awaitEnd(run)))
}
