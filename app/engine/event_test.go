package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// send sends an event by Ana and returns what came of it.
func (h *house) send(name, key, data string) engine.Sent {
	h.t.Helper()
	sent, err := h.trySend(engine.Event{Name: name, Key: key, Data: []byte(data), Sender: "Ana"})
	require.NoError(h.t, err)
	return sent
}

func (h *house) trySend(event engine.Event) (engine.Sent, error) {
	h.t.Helper()
	var sent engine.Sent
	err := h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		sent, err = h.engine.SendEvent(ctx, tx, event)
		return err
	})
	return sent, err
}

// parked starts runs that wait for an event, each for the key that key gives its number.
func (h *house) parked(runs int, key func(int) string) []engine.RunID {
	h.t.Helper()
	id := h.publish(`{"semantics": 1, "name": "Parked", "input": [{"name": "key", "type": "text"}],
		"steps": [{"id": "paid", "name": "Wait for the money", "kind": "review", "with": {"question": "Well?", "people": [{"email": "rita@example.com"}]}}]}`)
	all := make([]engine.RunID, runs)
	for n := range all {
		all[n] = h.start(id, fmt.Sprintf(`{"key": %q}`, key(n)))
	}
	for n, run := range all {
		h.awaitWait(run, engine.WaitReview)
		h.exec(fmt.Sprintf(`UPDATE waits SET kind = 'event', event_name = 'paid', event_key = '%s' WHERE run_id = '%s'`, key(n), run))
	}
	return all
}

func TestEventSendsItsRunsOn(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	runs := h.parked(3, func(n int) string { return fmt.Sprint(n / 2) })
	require.Equal(t, 2, h.send("paid", "0", `{"sum": 9007199254740993}`).Served)
	for _, run := range runs[:2] {
		require.Equal(t, `{"outcome":"event","data":{"sum": 9007199254740993}}`, h.value(h.awaitEnd(run).Steps[0].Output))
	}
	require.Zero(t, h.send("paid", "0", `{}`).Served)
	require.Zero(t, h.send("Paid", "1", `{}`).Served)
	h.awaitWait(runs[2], engine.WaitEvent)
}
