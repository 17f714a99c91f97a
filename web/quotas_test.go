package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// Whoever is in a workspace sees what it may do at once, what it does, and what happens
// when a quota is full.
func TestQuotasAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	s.start(s.home, id, map[string]string{"topic": "a refund"})
	viewer := s.in(tenants.Viewer)
	viewer.get(s.at()).is(http.StatusOK).says("Quotas")
	viewer.get(s.at("settings", "quotas")).is(http.StatusOK).says("0 of 100", "1 of 20,000", "No quota is full", "Now one waits.", "no limit")

	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 1, OpenRuns: 2, ModelCalls: tenants.RateLimit{Requests: 60, Tokens: 60_000}})
	})
	s.start(s.home, id, map[string]string{"topic": "another"})
	_, err := s.db.Super(t).Exec(t.Context(), `UPDATE slices SET state = 'running' WHERE id = (SELECT id FROM slices LIMIT 1)`)
	require.NoError(t, err)
	viewer.get(s.at("settings", "quotas")).is(http.StatusOK).says("1 of 1", "2 of 2", "60 calls and 60,000 tokens", "No further run can be started")
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: 1, OpenRuns: 3})
	})
	viewer.get(s.at("settings", "quotas")).is(http.StatusOK).says("One branch waits for a place", "2 of 3")
}

func TestTheLookOfQuotasAndPauses(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"}).ID
	s.work()
	s.in(tenants.Owner).post(s.at("runs", run.String(), "pause"), "key", "k").is(http.StatusSeeOther)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("settings", "quotas"))
			p.Shot("quotas")
			p.Check(t)
			p.Go(s.web.origin + s.at("runs", run.String()))
			p.Shot("run-paused")
			p.Check(t)
		})
	}
}
