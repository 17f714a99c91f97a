package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// What the watchdog finds is kept, one line for each thing however often it is found,
// with whether it could be mended; and forgotten in the end.
func TestFindingsOfTheWatchdogAreKept(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	h.exec(`DELETE FROM slices`)
	h.exec(`DELETE FROM river.river_job`)
	h.exec(`REVOKE INSERT ON slices FROM tollgate_app`) // so that a repair does not work
	h.age()
	watcher := h.otherWorker()
	for range 2 {
		_, err := watcher.Watch(t.Context())
		require.Error(t, err)
	}
	found := h.findings(time.Hour)
	require.Len(t, found, 1)
	require.Equal(t, engine.StuckNoStep, found[0].Kind)
	require.Equal(t, run, found[0].Run)
	require.Equal(t, "Test workspace", found[0].Name)
	require.Equal(t, 2, found[0].Times)
	require.False(t, found[0].Repaired)
	require.Contains(t, found[0].Error, "permission denied")

	h.exec(`GRANT INSERT ON slices TO tollgate_app`)
	_, err := watcher.Watch(t.Context())
	require.NoError(t, err)
	found = h.findings(time.Hour)
	require.Len(t, found, 1)
	require.True(t, found[0].Repaired)
	require.Empty(t, found[0].Error)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		ours, err := engine.FindingsOf(ctx, tx, run)
		require.Equal(t, found, ours)
		return err
	})

	h.exec(`UPDATE watch_findings SET last_at = now() - interval '31 days'`)
	require.Empty(t, h.findings(engine.FindingsKept))
	require.NoError(t, h.db.InSystemTx(t.Context(), watcher.ForgetFindings))
	require.Zero(t, h.count(`SELECT count(*) FROM watch_findings`))
}

func (h *house) findings(age time.Duration) []engine.Finding {
	h.t.Helper()
	var found []engine.Finding
	require.NoError(h.t, h.db.InSystemTx(h.t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		found, err = engine.Findings(ctx, tx, tx.Now.Add(-age), 10)
		return err
	}))
	return found
}

// Whoever runs the installation sees who works and what waits, by the tenants' names.
func TestOperatorsSeeWorkersAndQueues(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.start(h.publish(oneMail), `{"n": 1}`)
	alive, silent := h.otherWorker(), h.otherWorker()
	h.exec(`UPDATE slices SET state = 'running', worker_id = '` + alive.ID.String() + `'`)
	h.exec(`UPDATE workers SET beat_at = now() - interval '1 minute' WHERE id = '` + silent.ID.String() + `'`)
	require.NoError(t, h.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		workers, err := engine.Workers(ctx, tx)
		require.NoError(t, err)
		require.Len(t, workers, 2)
		require.Equal(t, alive.ID, workers[0].ID)
		require.True(t, workers[0].Alive())
		require.Equal(t, 1, workers[0].Running)
		require.False(t, workers[1].Alive())
		lines, err := engine.QueueLines(ctx, tx)
		require.NoError(t, err)
		require.Len(t, lines, 1)
		require.Equal(t, "Test workspace", lines[0].Name)
		require.Equal(t, 1, lines[0].Running)
		return nil
	}))
}
