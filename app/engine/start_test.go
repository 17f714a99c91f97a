package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Starts that come together share transactions, and each has its own fate: a key begins
// one run, who is refused harms nobody, and a pipeline's numbers have no gaps.
func TestStartsThatComeTogether(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	first, second := h.publish(oneMail), h.publish(oneMail)
	missing := tenants.NewID[pipeline.Pipeline]()
	type fate struct {
		started engine.Started
		err     error
	}
	const keys, tries = 40, 3
	fates := make([]fate, keys*tries)
	var over sync.WaitGroup
	for n := range fates {
		over.Go(func() {
			key := n % keys
			target := []pipeline.ID{first, second, missing}[key%3]
			fates[n].started, fates[n].err = h.engine.StartNow(t.Context(), h.tenant, engine.StartRequest{
				Pipeline: target, Input: fmt.Appendf(nil, `{"n": %d}`, key), By: h.owner, Key: fmt.Sprint(key), Actor: tenants.BySystem("a test"),
			})
		})
	}
	over.Wait()
	begun := map[int]engine.RunID{}
	fresh := 0
	for n, one := range fates {
		key := n % keys
		if key%3 == 2 {
			require.ErrorIs(t, one.err, pipeline.ErrNotFound)
			continue
		}
		require.NoError(t, one.err)
		if !one.started.Before {
			fresh++
		}
		if id, met := begun[key]; met {
			require.Equal(t, id, one.started.Run.ID, "one key, one run")
		}
		begun[key] = one.started.Run.ID
		require.JSONEq(t, fmt.Sprintf(`{"n": %d}`, key), h.value(one.started.Run.Input))
	}
	require.Len(t, begun, fresh)
	require.Equal(t, fresh, h.count(`SELECT count(*) FROM runs`))
	require.Equal(t, fresh, h.count(`SELECT count(*) FROM slices`))
	require.Equal(t, fresh, h.count(`SELECT count(*) FROM audit_entries WHERE action = 'run.started'`))
	for _, id := range []pipeline.ID{first, second} {
		require.Equal(t, 1, h.count(`SELECT (min(number) = 1 AND max(number) = count(*) AND count(*) = (SELECT run_count FROM pipelines WHERE id = $1))::int FROM runs WHERE pipeline_id = $1`, id))
	}
}

// Near the quota, and where a pipeline takes few runs at once, starts are counted one after
// the other, also within one transaction.
func TestStartsThatComeTogetherKeepTheirLimits(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 10, OpenRuns: 12})
	})
	narrow := h.publish(`{"semantics": 2, "name": "Narrow", "concurrency": {"limit": 2, "policy": "queue"}, "steps": [
		{"id": "send", "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "A", "body": "B"}}]}`)
	var over sync.WaitGroup
	refused := make([]error, 30)
	for n := range refused {
		over.Go(func() {
			_, refused[n] = h.engine.StartNow(t.Context(), h.tenant, engine.StartRequest{Pipeline: narrow, Input: []byte(`{}`), By: h.owner, Key: fmt.Sprint(n)})
		})
	}
	over.Wait()
	many := 0
	for _, err := range refused {
		if err != nil {
			require.ErrorAs(t, err, new(*engine.TooManyRuns))
			many++
		}
	}
	require.Equal(t, 18, many)
	require.Equal(t, 2, h.count(`SELECT count(*) FROM runs WHERE state = 'running'`))
	require.Equal(t, 10, h.count(`SELECT count(*) FROM runs WHERE state = 'queued'`))
}
