package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// What a model writes can be read while it writes, by its own workspace only, however much
// and whatever it is; a look at the run says that something changed; and once the step has
// ended nothing is left of it but the answer.
func TestWhatAModelWritesIsSeenAndGoes(t *testing.T) {
	t.Parallel()
	pieces, done := make(chan string), make(chan struct{})
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(ctx context.Context, call engine.Call) engine.Reply {
		for {
			select {
			case piece := <-pieces:
				call.Live(piece)
			case <-done:
				return engine.Reply{Output: []byte(`{"text":"the answer"}`)}
			case <-ctx.Done():
				return engine.Reply{Failure: &engine.Failure{Class: "timeout"}}
			}
		}
	})})
	h.work()
	run := h.start(h.publish(oneQuestion), `{"n": 1}`)
	step := h.await(run, "a step", func(p engine.Progress) bool { return len(p.Steps) == 1 }).Steps[0].ID
	look := func(as tenants.ID) (text string, version uint64) {
		require.NoError(t, h.db.InTx(t.Context(), as, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			if text, err = engine.LiveText(ctx, tx, step); err != nil {
				return err
			}
			version, err = engine.Changed(ctx, tx, run)
			return err
		}))
		return text, version
	}
	text, before := look(h.tenant)
	require.Empty(t, text)
	pieces <- "It was a dark"
	pieces <- " and \x00 stormy <script>"
	require.Eventually(t, func() bool { text, _ := look(h.tenant); return strings.HasSuffix(text, "stormy <script>") }, 20*time.Second, 20*time.Millisecond)
	text, after := look(h.tenant)
	require.NotContains(t, text, "\x00")
	require.NotEqual(t, before, after, "watchers are told")
	stranger, _ := h.db.Tenant(t)
	text, _ = look(stranger)
	require.Empty(t, text)

	pieces <- strings.Repeat("ä", 1<<20)
	require.Eventually(t, func() bool {
		text, _ := look(h.tenant)
		return strings.HasPrefix(text, "…ä") && len(text) < 10<<10
	}, 20*time.Second, 20*time.Millisecond, "of much the end")
	close(done)
	h.awaitEnd(run)
	text, _ = look(h.tenant)
	require.Empty(t, text)
	require.Eventually(t, func() bool { return h.count(`SELECT count(*) FROM live_texts WHERE run_id = $1`, run) == 0 }, 20*time.Second, 20*time.Millisecond)
}
