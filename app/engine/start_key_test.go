package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/trigger"
	"tollgate/tenants"
)

func (h *house) startOnce(by trigger.ByHand) (engine.Run, error) {
	by.By, by.FormKey = tenants.Membership{User: tenants.User{ID: h.owner, Name: "Ana"}}, tenants.NewID[int]().String()
	return by.StartNow(context.Background(), h.tenant, h.engine)
}

// S11, by a key of the caller's: the same start is one run however often and at once it
// comes; another input under the key is refused, and the first run is named.
func TestAStartWithAKeyHappensOnce(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	id, other := h.publish(flow("1", setTo("x", "1"))), h.publish(flow("2", setTo("x", "2")))
	start := trigger.ByHand{Pipeline: id, Input: []byte(numbers(1)), Once: trigger.Once{Key: "order 77"}}
	first, err := h.startOnce(start)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			again, err := h.startOnce(start)
			require.NoError(t, err)
			require.Equal(t, first.ID, again.ID)
		})
	}
	all.Wait()
	changed := start
	changed.Input = []byte(numbers(2))
	_, err = h.startOnce(changed)
	var refused *engine.OtherStart
	require.ErrorAs(t, err, &refused)
	require.Equal(t, first.ID, refused.First.ID)

	elsewhere := trigger.ByHand{Pipeline: other, Input: start.Input, Once: start.Once}
	second, err := h.startOnce(elsewhere)
	require.NoError(t, err, "the key is the pipeline's own")
	require.NotEqual(t, first.ID, second.ID)
	start.Once.Scope, elsewhere.Once.Scope = trigger.ScopeWorkspace, trigger.ScopeWorkspace
	_, err = h.startOnce(start)
	require.NoError(t, err)
	_, err = h.startOnce(elsewhere)
	require.ErrorAs(t, err, &refused, "the key is the whole workspace's")
	require.Equal(t, 3, h.count(`SELECT count(*) FROM runs`))
	require.Equal(t, 3, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'run.started'`))
}

// A key counts for 30 days; then it is free, also before it was pruned.
func TestTheKeyOfAStartCountsFor30Days(t *testing.T) {
	t.Parallel()
	h := build(t, echo(quiet))
	id := h.publish(flow("1", setTo("x", "1")))
	start := trigger.ByHand{Pipeline: id, Input: []byte(numbers(1)), Once: trigger.Once{Key: "order 77"}}
	first, err := h.startOnce(start)
	require.NoError(t, err)
	h.exec(`UPDATE runs SET created_at = created_at - interval '29 days 23 hours'`)
	again, err := h.startOnce(start)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	gone, err := h.engine.PruneKeys(t.Context())
	require.NoError(t, err)
	require.Zero(t, gone)
	h.exec(`UPDATE runs SET created_at = created_at - interval '2 hours'`)
	start.Input = []byte(numbers(2))
	second, err := h.startOnce(start)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	h.exec(`UPDATE runs SET created_at = created_at - interval '31 days'`)
	gone, err = h.engine.PruneKeys(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, gone)
	require.Zero(t, h.count(`SELECT count(*) FROM runs WHERE start_key IS NOT NULL`))
}
