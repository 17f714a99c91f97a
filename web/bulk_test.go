package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// All failed runs of a list are tried again from one page, which says how many and why
// they failed; the progress is shown and it can be stopped.
func TestBulkOfFailedRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, failingDocument("Counting"))
	for range 3 {
		s.start(s.home, id, map[string]string{"topic": "a refund"})
	}
	s.work()
	b := s.in(tenants.Builder)
	path := attr(b.get(s.at("runs")+"?state=failed").is(http.StatusOK).byTestID("bulk"), "href")
	asked := b.get(path).is(http.StatusOK).says("3 runs will be tried again", "Why they failed", "Finished steps are kept")
	stale := append(asked.seen(), "action", "retry", "state", "failed")
	s.start(s.home, id, map[string]string{"topic": "a refund"})
	s.work()
	b.post(s.at("bulk"), stale...).is(http.StatusConflict).says("Nothing was begun", "4 runs will be tried again")
	form := append(b.get(path).seen(), "action", "retry", "state", "failed")
	to := b.post(s.at("bulk"), form...).is(http.StatusSeeOther).header.Get("Location")
	require.Equal(t, to, b.post(s.at("bulk"), form...).is(http.StatusSeeOther).header.Get("Location"))
	b.get(to).is(http.StatusOK).says("0 of 4 runs tried again", "Under way", "Begun by Builder").byTestID("stop-bulk")
	_, err := s.engine.RunBulks(t.Context())
	require.NoError(t, err)
	b.get(to).says("4 of 4 runs tried again", "Done.")
	b.post(to + "/stop").leadsTo(to)

	to = b.post(s.at("bulk"), append(b.get(s.at("bulk")+"?action=cancel").seen(), "action", "cancel")...).is(http.StatusSeeOther).header.Get("Location")
	for range 2 {
		b.post(to + "/stop").leadsTo(to)
	}
	b.get(to).says("Stopped.", "4 runs were left alone")
	b.post(s.at("bulk"), "action", "cancel").is(http.StatusBadRequest)
	b.get(s.at("bulk") + "?action=explode").is(http.StatusUnprocessableEntity)
	require.Empty(t, s.in(tenants.Viewer).get(s.at("runs")+"?state=failed").all("", "data-testid", "bulk"))
}
