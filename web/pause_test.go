package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

func (s *site) state(run engine.RunID) engine.RunState {
	s.t.Helper()
	var state engine.RunState
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `SELECT state FROM runs WHERE id = $1`, run).Scan(&state))
	return state
}

// A run is paused and resumed by a button; its page and the lists say so, and who did it.
func TestRunIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"}).ID
	s.work()
	b := s.in(tenants.Builder)
	show := func() *page { return b.get(s.at("runs", run.String())).is(http.StatusOK) }
	key := func(p *page, button string) string {
		p.byTestID(button)
		return attr(p.all("input", "name", "key")[0], "value")
	}
	first := key(show(), "pause-run")
	b.post(s.at("runs", run.String(), "pause"), "key", first).leadsTo(s.at("runs", run.String()))
	require.Equal(t, engine.RunPaused, s.state(run))
	paused := show().says("Paused by Builder", "Nothing begins until somebody resumes it", "paused the run", "Paused")
	require.Empty(t, paused.all("", "data-testid", "pause-run"))
	b.get(s.at("runs") + "?state=paused").is(http.StatusOK).says("a refund")

	b.post(s.at("runs", run.String(), "pause"), "key", "another").leadsTo(s.at("runs", run.String()))
	second := key(paused, "resume-run")
	b.post(s.at("runs", run.String(), "resume"), "key", second).leadsTo(s.at("runs", run.String()))
	require.Equal(t, engine.RunRunning, s.state(run))
	show().says("resumed the run", "Waiting for")

	b.post(s.at("runs", run.String(), "pause"), "key", first).leadsTo(s.at("runs", run.String()))
	require.Equal(t, engine.RunRunning, s.state(run), "a form that is sent again does nothing")
	require.Empty(t, s.in(tenants.Viewer).get(s.at("runs", run.String())).is(http.StatusOK).all("", "data-testid", "pause-run"))

	b.post(s.at("runs", run.String(), "cancel")).is(http.StatusSeeOther)
	b.post(s.at("runs", run.String(), "pause"), "key", "late").is(http.StatusConflict).says("ended already")
}

// A run that is about to be paused, and one that its pipeline does not take yet, are told
// apart from those that are paused or about to begin.
func TestPausingAndQueuedRunsSaySo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"}).ID
	b := s.in(tenants.Builder)
	for state, says := range map[string][]string{
		"pausing": {"Pausing", "the steps under way are finished first", "Resume"},
		"queued":  {"Queued", "It starts when an earlier run of this pipeline has ended."},
	} {
		_, err := s.db.Super(t).Exec(t.Context(), `UPDATE runs SET state = $2 WHERE id = $1`, run, state)
		require.NoError(t, err)
		page := b.get(s.at("runs", run.String())).is(http.StatusOK).says(says...)
		require.Equal(t, says[0], badgeOn(page))
		require.Empty(t, page.all("", "data-testid", "pause-run"))
		filter := map[string]string{"pausing": "paused", "queued": "queued"}[state]
		b.get(s.at("runs") + "?state=" + filter).is(http.StatusOK).says("a refund")
	}
}
